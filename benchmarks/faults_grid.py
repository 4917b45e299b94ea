"""What Airflow's grid shows of a step, and the table of all faults. Knows Airflow's rules for retries, and no fault."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kafka_sla.tasks.flow import DEFAULTS

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One fault: a line of the table."""

    fault: str
    happened: str
    state: str
    recovered: str
    equal: bool | None
    """None: there are no rows to compare."""

    @property
    def held(self) -> bool:
        return self.equal is not False


class StepFailed(RuntimeError):
    """A step was red after all its tries: a person would have to come."""


@dataclass(slots=True)
class Grid:
    """Runs steps with the retries that the DAGs have, and remembers the states that the grid would show."""

    told: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    waited: float = 0.0
    """Seconds from the first failure of a step to its success, of the step that took longest."""

    def run(self, name: str, step: Callable[[], T]) -> T:
        began: float | None = None
        for number in range(1, DEFAULTS["retries"] + 2):
            try:
                answer = step()
            except Exception as error:  # whatever a task raises, Airflow sees
                began = began or time.monotonic()
                self.errors.append(f"{type(error).__name__}: {error}")
                if number > DEFAULTS["retries"] or _hopeless(error, number):
                    self.told.append(f"`{name}` failed")
                    raise StepFailed(f"{name}: {error}") from error
                self.told.append(f"`{name}` up_for_retry ({type(error).__name__})")
                time.sleep(DEFAULTS["retry_delay"].total_seconds())
                continue
            if began:
                self.told.append(f"`{name}` success")
                self.waited = max(self.waited, time.monotonic() - began)
            return answer
        raise AssertionError("the last try answers or fails")

    @property
    def states(self) -> str:
        return ", ".join(self.told) or "success at the first try"


def _hopeless(error: Exception, number: int) -> bool:
    decision: Any = DEFAULTS["retry_policy"].evaluate(error, number, DEFAULTS["retries"])
    return bool(decision.action.value == "fail")


HEAD = (
    "| fault | what happened | state in the grid | recovered after | rows equal to a run without it |\n"
    + "| --- " * 5
    + "|"
)
"""Of the table in docs/reference/faults.md."""


def line(one: Outcome) -> str:
    """One fault in that table."""
    words = {True: "yes", False: "**no**", None: "–"}
    return f"| {one.fault} | {one.happened} | {one.state} | {one.recovered} | {words[one.equal]} |"
