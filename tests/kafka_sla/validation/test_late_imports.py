"""Great Expectations without the libraries that nobody asks it for."""

from __future__ import annotations

import subprocess
import sys

_LOADED = """
import importlib.util
import sys
from kafka_sla.validation import suites

suites.load()
asked_for = ("scipy.stats._distn_infrastructure", "altair.vegalite", "great_expectations")
print([name for name in asked_for if name in sys.modules])
assert importlib.util.find_spec("altair")
import altair, scipy.stats
from scipy import stats
from scipy.stats import norm
import scipy.stats.distributions
print(scipy.stats.norm.cdf(0), stats.norm is norm, scipy.stats.distributions.norm is norm)
import altair.vegalite.v6
print(altair.Chart.__name__)
from great_expectations.expectations.core import ExpectColumnKLDivergenceToBeLessThan
"""


_ASKED = """
import importlib.util
import inspect
import sys
from concurrent.futures import ThreadPoolExecutor
from kafka_sla.validation.late_imports import import_late

import_late("scipy.stats", "altair", "nobody.has.this", "nor_this")
inspect.getmodule(inspect.currentframe())  # looks for the files of all modules
print("scipy.stats._stats_py" in sys.modules)
from scipy.stats.distributions import norm
import altair, scipy.stats
print(altair.Chart is sys.modules["altair"].Chart, norm is scipy.stats.norm)
import_late("xml.dom.minidom")
import xml.dom.minidom
with ThreadPoolExecutor(8) as pool:
    found = list(pool.map(lambda _: xml.dom.minidom.parseString, range(64)))
print(len(set(found)), found[0] is sys.modules["xml.dom.minidom"].parseString)
"""


def test_whoever_asks_gets_what_is_installed_in_many_threads_too() -> None:
    run = subprocess.run([sys.executable, "-c", _ASKED], capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == ["False", "True True", "1 True"]


def test_what_no_suite_needs_is_imported_by_who_uses_it() -> None:
    run = subprocess.run([sys.executable, "-c", _LOADED], capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[-3:] == ["['great_expectations']", "0.5 True True", "Chart"]
