"""The command line where the extra `worker` is not installed: what needs it says so at once, and how to get it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger

INSTALL = "is not installed here, which this command needs: pip install 'kafka-sla[worker]'"
DAY = ["--from", "2026-11-01", "--to", "2026-11-02"]
RUN = ["run", *DAY]


@pytest.fixture(autouse=True)
def _configured(empty_folder: None) -> None:
    config = (
        "clusters: {prod: {connection: kafka_prod}}\nslas: []\ndigests: [{name: weekly, recipients: [a@b.example]}]\n"
    )
    Path("kafka_sla.yml").write_text(config)
    Ledger(Store.embedded(Path("kafka_sla_store"))).open(writing=True)


def told(words: list[str], *missing: str, **environment: str) -> str:
    """What the command says on a machine without these packages."""
    code = f"import sys; sys.modules.update(dict.fromkeys({missing!r}))\n"
    code += "from kafka_sla.cli.main import main; sys.exit(main(sys.argv[1:]))"
    env = {**os.environ, **environment}
    ran = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False, env=env)
    assert ran.returncode == 1, ran
    return ran.stderr


@pytest.mark.parametrize(
    "words",
    [["report", *DAY, "--output", "report.html"], ["digest", "weekly"], ["suggest", "--plots", "plots"]],
    ids=lambda words: words[0],
)
def test_pictures_need_it(words: list[str]) -> None:
    assert told(words, "matplotlib") == f"kafka-sla: matplotlib {INSTALL}\n"
    assert not Path("plots").exists()


@pytest.mark.parametrize("words", [RUN, ["spark-server"]], ids=["run", "spark-server"])
@pytest.mark.parametrize("client", [True, False], ids=["only the client of Spark Connect", "nothing of Spark"])
def test_spark_needs_it_and_no_broker_is_asked_before(words: list[str], client: bool) -> None:
    Path("packages/pyspark").mkdir(parents=True)
    Path("packages/pyspark/__init__.py").touch()

    said = told(words, PYTHONPATH=str(Path("packages").absolute())) if client else told(words, "pyspark")

    assert said == f"kafka-sla: pyspark {INSTALL}\n"


@pytest.mark.parametrize("environment", [{}, {"SPARK_REMOTE": "sc://localhost:1"}], ids=["own Spark", "standing Spark"])
def test_validation_needs_it_and_no_broker_is_asked_before(environment: dict[str, str]) -> None:
    assert told(RUN, "great_expectations", **environment) == f"kafka-sla: great_expectations {INSTALL}\n"


def test_a_module_that_is_none_of_it_stays_a_defect() -> None:
    assert "unexpected ModuleNotFoundError" in told(["status"], "kafka_sla.cli.status")
