"""What a driver elsewhere and whoever waits for it learn of each other, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kafka_sla.errors import SparkFailed
from kafka_sla.model.entities import Interval
from kafka_sla.spark.job_spec import Job
from kafka_sla.spark.package_zip import application, package_folder
from kafka_sla.spark.submission import SILENT_AFTER, Submission, Watch

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
_DRIVER = """
import sys, time
from datetime import timedelta
from pathlib import Path
from kafka_sla.spark import submission

submission.SIGNS_EVERY = timedelta(seconds=0.1)
submission.UNWANTED_AFTER = timedelta(seconds=float(sys.argv[3]))
with submission.Submission(sys.argv[1], sys.argv[2]).reported():
    while not Path(sys.argv[1], "work-is-done").exists():
        time.sleep(0.05)
"""


class Drivers:
    """Processes that do nothing but leave their signs until they are let go."""

    def __init__(self, output: Path) -> None:
        self.output, self.started = output, list[subprocess.Popen[bytes]]()

    def start(self, submission: Submission, *, unwanted_after: float = 600) -> subprocess.Popen[bytes]:
        """One that has begun."""
        words = [sys.executable, "-c", _DRIVER, submission.output, submission.id, str(unwanted_after)]
        self.started.append(subprocess.Popen(words))
        wait_until(lambda: submission.sign() is not None)
        return self.started[-1]

    def let_go(self) -> None:
        (self.output / "work-is-done").touch()


@pytest.fixture
def drivers(tmp_path: Path) -> Iterator[Drivers]:
    started = Drivers(tmp_path)
    yield started
    for process in started.started:
        process.kill()
        process.wait()


def watch(submission: Submission) -> Watch:
    return Watch(submission, "application_1", begin_by=NOW + 20 * MINUTE, until=NOW + 120 * MINUTE)


def wait_until(true: object) -> None:
    deadline = time.monotonic() + 300
    while not true():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_whoever_waits_hears_that_the_driver_has_measured(drivers: Drivers, tmp_path: Path) -> None:
    submission = Submission.new(str(tmp_path))
    waiting = watch(submission)
    before = waiting.look(NOW)
    driver = drivers.start(submission)
    meanwhile = waiting.look(NOW + 20 * MINUTE)
    drivers.let_go()

    assert driver.wait(300) == 0
    assert (before, meanwhile, waiting.look(NOW + MINUTE)) == (None, None, "")


@pytest.mark.slow
def test_the_cause_of_a_failed_application_reaches_whoever_waits(tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    interval = Interval(NOW, NOW + 5 * MINUTE)
    facts = {"log_offsets": [str(tmp_path / "removed.parquet")], "committed_offsets": []}
    Job("1", interval, 60_000, (), (), facts, {}, out, {}, 0, 0).write(f"{out}/job.json")
    submission = Submission.new(out)

    arguments = [str(application()), "--job", f"{out}/job.json", "--submission", submission.id]
    command = [str(package_folder("pyspark") / "bin" / "spark-submit"), "--master", "local[1]", *arguments]
    own = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    ended = subprocess.run(command, env=os.environ | own, capture_output=True, check=False)

    assert ended.returncode != 0
    assert "removed.parquet" in (watch(submission).look(NOW) or "")


def test_a_driver_ends_when_another_submission_takes_its_place(drivers: Drivers, tmp_path: Path) -> None:
    first = drivers.start(Submission.new(str(tmp_path)))
    second = drivers.start(Submission.new(str(tmp_path)))

    assert first.wait(300) == 1
    assert second.poll() is None


def test_a_driver_ends_when_its_submission_is_withdrawn(drivers: Drivers, tmp_path: Path) -> None:
    submission = Submission.new(str(tmp_path))
    driver = drivers.start(submission)
    submission.withdraw()

    assert driver.wait(300) == 1
    assert submission.sign() not in ("measured", "failed"), "nobody hears of it"


def test_a_driver_that_nobody_waits_for_ends(drivers: Drivers, tmp_path: Path) -> None:
    driver = drivers.start(Submission.new(str(tmp_path)), unwanted_after=1)

    assert driver.wait(300) == 1


def test_a_driver_goes_on_as_long_as_somebody_waits(drivers: Drivers, tmp_path: Path) -> None:
    submission = Submission.new(str(tmp_path))
    driver, waiting = drivers.start(submission, unwanted_after=10), watch(submission)
    until, looked = time.monotonic() + 15, NOW
    while time.monotonic() < until:
        assert waiting.look(looked := looked + MINUTE) is None
        time.sleep(0.5)

    assert driver.poll() is None


def test_a_driver_that_begins_when_nobody_wants_it_any_more_does_nothing(drivers: Drivers, tmp_path: Path) -> None:
    late = Submission.new(str(tmp_path))
    Submission.new(str(tmp_path))
    drivers.let_go()
    words = [sys.executable, "-c", _DRIVER, late.output, late.id, "600"]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)

    assert "this submission is not wanted any more" in ended.stderr
    assert late.sign() is None


def test_a_driver_that_does_not_begin_in_time_is_given_up(drivers: Drivers, tmp_path: Path) -> None:
    submission = Submission.new(str(tmp_path))
    waiting = watch(submission)

    assert waiting.look(NOW + 19 * MINUTE) is None
    assert "application_1 did not begin in time" in (waiting.look(NOW + 20 * MINUTE) or "")
    assert is_turned_away(submission)


def test_a_driver_that_falls_silent_is_given_up(drivers: Drivers, tmp_path: Path) -> None:
    submission = Submission.new(str(tmp_path))
    driver, waiting = drivers.start(submission), watch(submission)
    driver.kill()
    driver.wait()

    assert waiting.look(NOW) is None
    assert waiting.look(NOW + SILENT_AFTER - timedelta(seconds=1)) is None
    found = waiting.look(NOW + SILENT_AFTER)

    assert "application_1 has left no sign of life for 180 s" in (found or "")
    assert is_turned_away(submission)


def test_a_driver_that_does_not_end_in_time_is_ended(drivers: Drivers, tmp_path: Path) -> None:
    submission = Submission.new(str(tmp_path))
    driver, waiting = drivers.start(submission), watch(submission)

    assert "application_1 was not done in time" in (waiting.look(NOW + 120 * MINUTE) or "")
    assert driver.wait(300) == 1


def is_turned_away(submission: Submission) -> bool:
    """Whether a driver that comes now is told that it is not wanted."""
    with pytest.raises(SparkFailed, match="not wanted any more"), submission.reported():
        return False
    return True
