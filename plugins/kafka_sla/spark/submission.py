"""What a driver that runs elsewhere and whoever waits for it leave for each other in the job's folder, the only place
that both reach.

`submitted.txt` names the last submission of the job: drivers of earlier ones end. `waits-<id>.txt` is written anew
while somebody waits, and `driver-<id>.txt` while the driver lives; the latter says in the end how it ended.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Event, Thread

from kafka_sla.errors import SparkFailed, StoreError
from kafka_sla.files import read_text, write_text
from kafka_sla.spark import failures

SIGNS_EVERY = timedelta(seconds=5)
"""How often a driver looks whether it is wanted, and leaves its sign of life."""
UNWANTED_AFTER = timedelta(minutes=10)
"""A driver that nobody has waited for for so long ends; another triggerer takes a trigger over in less."""
SILENT_AFTER = timedelta(minutes=3)
"""A driver that left no sign of life for so long is lost."""
_WAITS_EVERY = timedelta(minutes=1)
_MEASURED, _FAILED, _NOBODY = "measured", "failed", "nobody"


@dataclass(frozen=True, slots=True)
class Submission:
    """One try to have a job measured elsewhere."""

    output: str
    """Folder of the job."""
    id: str

    @classmethod
    def new(cls, output: str) -> Submission:
        """The only one of this job that is wanted from here on."""
        failures.clear(output)
        made = cls(output, uuid.uuid4().hex)
        made.wait()
        write_text(f"{output}/submitted.txt", made.id)
        return made

    def wait(self) -> None:
        """Its driver may go on for a while."""
        write_text(f"{self.output}/waits-{self.id}.txt", uuid.uuid4().hex)

    def withdraw(self) -> None:
        """Its driver is to end."""
        write_text(f"{self.output}/waits-{self.id}.txt", _NOBODY)

    def sign(self) -> str | None:
        """What its driver left last."""
        return _text(f"{self.output}/driver-{self.id}.txt")

    @contextmanager
    def reported(self) -> Iterator[None]:
        """For the driver: signs of life while the block runs, and then how it ended."""
        if not self._is_wanted():
            raise SparkFailed("this submission is not wanted any more: another took its place, or its task was ended")
        self._leave(uuid.uuid4().hex)
        ended, how = Event(), _FAILED
        signs = Thread(target=self._leave_signs, args=(ended,), daemon=True)
        signs.start()
        try:
            yield
            how = _MEASURED
        finally:
            ended.set()
            signs.join()
            self._leave(how)

    def _leave_signs(self, ended: Event) -> None:
        waits, alone = self._waits(), timedelta()
        while not ended.wait(SIGNS_EVERY.total_seconds()):
            found = self._waits()
            alone = timedelta() if found not in (None, waits) else alone + SIGNS_EVERY
            waits = found or waits
            if alone >= UNWANTED_AFTER or not self._is_wanted():
                os._exit(1)  # whatever cluster manager started this process, ends the application with it
            with suppress(StoreError):  # the next one may be written
                self._leave(uuid.uuid4().hex)

    def _is_wanted(self) -> bool:
        """A folder that cannot be read tells nobody to end."""
        return self._waits() != _NOBODY and _text(f"{self.output}/submitted.txt") in (None, self.id)

    def _waits(self) -> str | None:
        return _text(f"{self.output}/waits-{self.id}.txt")

    def _leave(self, sign: str) -> None:
        write_text(f"{self.output}/driver-{self.id}.txt", sign)


@dataclass(slots=True)
class Watch:
    """Waits for a submission's driver, look by look. It keeps nothing that another could not see for itself."""

    submission: Submission
    name: str
    """Of the application, as a person finds it at the cluster's manager."""
    begin_by: datetime
    until: datetime
    _sign: str | None = field(default=None, init=False)
    _signed_at: datetime | None = field(default=None, init=False)
    _waited_at: datetime | None = field(default=None, init=False)

    def look(self, now: datetime) -> str | None:
        """None: it goes on. Else why the job was not measured, empty where it was."""
        sign = self.submission.sign() or self._sign
        if sign == _MEASURED:
            return ""
        if sign != self._sign:
            self._sign, self._signed_at = sign, now
        why = self._why_not(now)
        with suppress(StoreError):  # a driver that hears nothing goes on for a while, and then ends
            if why:
                self.submission.withdraw()
            elif self._waited_at is None or now - self._waited_at >= _WAITS_EVERY:
                self.submission.wait()
                self._waited_at = now
        return why

    def _why_not(self, now: datetime) -> str | None:
        if self._sign == _FAILED:
            return failures.left(self.submission.output) or f"{self.name} failed; the log of its driver says why"
        if now >= self.until:
            return f"{self.name} was not done in time, and was ended"
        if self._signed_at is None and now >= self.begin_by:
            return (
                f"{self.name} did not begin in time: the cluster has no room for it or cannot start its driver there;"
                " the cluster's manager and the driver's log say which"
            )
        if self._signed_at is not None and now - self._signed_at >= SILENT_AFTER:
            return (
                f"{self.name} has left no sign of life for {SILENT_AFTER.total_seconds():.0f} s: its driver was killed,"
                " or does not reach the warehouse any more; the cluster's manager and the driver's log say which"
            )
        return None


def _text(path: str) -> str | None:
    try:
        return read_text(path)
    except OSError:
        return None
