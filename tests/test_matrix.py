"""This environment is one more cell of `make matrix`: the rows are those of every Airflow, Python and Spark there."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from benchmarks import matrix
from benchmarks.printed import PAGES

pytestmark = pytest.mark.slow


def test_the_rows_are_those_that_the_printed_matrix_shows(tmp_path: Path) -> None:
    printed = (PAGES / "compatibility.md").read_text().partition("<!-- make matrix -->")[2].partition("<!-- end -->")[0]
    shown = set(re.findall(rf"\| ([0-9a-f]{{{matrix.SHOWN}}}) \|", printed))

    here = matrix.measured(Path(sys.executable).parent, tmp_path)

    assert {here[: matrix.SHOWN]} == shown, "what a run exports is not what it was: print `make matrix` again"
