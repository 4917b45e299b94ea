"""The same rules in Prometheus' own words, evaluated by `promtool test rules`. Knows nothing of how ours are
computed."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from kafka_sla.model.entities import BurnPair

MINUTE_MS = 60_000
DAY = 1_440
Alerts = list[tuple[str, tuple[int, int | None]]]


def agrees(tool: str, years: list[tuple[Any, Alerts]], pairs: tuple[BurnPair, ...]) -> str:
    """How many alerts promtool finds where ours are; its own words where it does not."""
    with tempfile.TemporaryDirectory() as folder:
        rules, test = Path(folder, "rules.yml"), Path(folder, "test.yml")
        rules.write_text(json.dumps({"groups": [{"name": "burn", "interval": "1m", "rules": _rules(pairs)}]}))
        test.write_text(
            json.dumps(
                {
                    "rule_files": ["rules.yml"],
                    "evaluation_interval": "1m",
                    "tests": [_test(of, alerts, pairs) for of, alerts in years],
                }
            )
        )
        done = subprocess.run([tool, "test", "rules", str(test)], capture_output=True, text=True, check=False)
    alerts = sum(len(of) for _, of in years)
    return (
        f"{alerts} of {alerts} alerts of {len(years)} busy SLAs, to the minute"
        if done.returncode == 0
        else (f"no: {(done.stdout + done.stderr)[:2_000]}")
    )


def _rules(pairs: tuple[BurnPair, ...]) -> list[dict[str, Any]]:
    """A burn begins when a pair holds, and is over when none does, unless nothing is known of its shortest time."""
    rules = []
    for severity in dict.fromkeys(pair.severity for pair in pairs):
        mine = [pair for pair in pairs if pair.severity == severity]
        shortest = _range(min(pair.short_ms for pair in mine))
        name = f"burn:{severity}"
        holds = " or ".join(f"({_holds(pair)})" for pair in mine)
        kept = f"(last_over_time({name}[90s]) == 1) unless on() (sum_over_time(known[{shortest}]) > 0)"
        rules.append({"record": name, "expr": f"(({holds}) * 0 + 1) or ({kept}) or vector(0)"})
    return rules


def _holds(pair: BurnPair) -> str:
    limit = f"{pair.burn_rate} * (1 - 0.999)"
    rates = " and ".join(
        f"sum_over_time(bad[{length}]) / sum_over_time(known[{length}]) > {limit}"
        for length in (_range(pair.long_ms), _range(pair.short_ms))
    )
    return f"{rates} and sum_over_time(bad[{_range(pair.long_ms)}]) >= {pair.min_bad / MINUTE_MS:g}"


def _range(length_ms: int) -> str:
    return f"{length_ms // MINUTE_MS}m"


def _test(of: Any, alerts: Alerts, pairs: tuple[BurnPair, ...]) -> dict[str, Any]:
    """The state just before and at each beginning and end, and how many minutes burned on each day: a query of
    promtool may read ten thousand samples."""
    length = len(of.known)
    expected = [
        (f"burn:{severity}", minute, float(burning))
        for severity, (start, end) in alerts
        for minute, burning in ((start - 1, 0), (start, 1), *(((end - 1, 1), (end, 0)) if end else ()))
    ]
    for severity in dict.fromkeys(pair.severity for pair in pairs):
        expected += [
            (f"sum_over_time(burn:{severity}[{DAY}m])", day + DAY, float(_burned(alerts, severity, day)))
            for day in range(0, length, DAY)
        ]
    return {
        "interval": "1m",
        "input_series": [
            {"series": "known", "values": _values(of.known, of.known)},
            {"series": "bad", "values": _values(of.known, of.bad)},
        ],
        "promql_expr_test": [
            {"expr": f"{expr} + 0", "eval_time": f"{minute}m", "exp_samples": [{"labels": "{}", "value": value}]}
            for expr, minute, value in expected
        ],
    }


def _burned(alerts: Alerts, severity: str, day: int) -> int:
    """Evaluations of the day after that minute at which it burned."""
    first, last = day + 1, day + DAY
    spans = [(start, last + 1 if end is None else end) for of, (start, end) in alerts if of == severity]
    return sum(max(0, min(end - 1, last) - max(start, first) + 1) for start, end in spans)


def _values(known: Any, values: Any) -> str:
    """A sample a minute, the window that ends then; `_` where there is none. Minute 0 has none."""
    return " ".join(
        ["_", *("_" if not there else "1" if value else "0" for there, value in zip(known, values, strict=True))]
    )
