"""The command line as people use it: arguments in, text, files and exit codes out."""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from demo.broker import free_ports
from kafka_sla import __version__
from kafka_sla.cli.commands import COMMANDS
from kafka_sla.cli.console.arguments import parser
from kafka_sla.cli.main import main
from kafka_sla.config.settings import load_settings
from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.tables import TABLES
from kafka_sla.text.timestamps import instant_text

CONFIG = """\
clusters: {old: {}}
slas:
  - {name: payments within 30 s, group: service, topic: payments, max_latency: 30s, for: 2m, objective: 99%}
"""
Captured = pytest.CaptureFixture[str]


pytestmark = pytest.mark.usefixtures("empty_folder")


def configured(text: str = CONFIG, name: str = "kafka_sla.yml") -> None:
    Path(name).write_text(text)


def begun(*folders: str) -> None:
    """Stores that hold nothing yet."""
    for folder in folders:
        Ledger(Store.embedded(Path(folder))).open(writing=True)


def test_without_a_configuration_one_message_says_what_is_missing(capsys: Captured) -> None:
    assert main(["status"]) == 2
    assert capsys.readouterr() == (
        "",
        "kafka-sla: cannot read the configuration kafka_sla.yml: No such file or directory; name the file to read\n",
    )


def test_a_wrong_configuration_is_told_without_a_traceback(capsys: Captured) -> None:
    configured("clusters: {old: {}}\nwindw: 1m\n")
    assert main(["check"]) == 2
    assert "line 2: windw: unknown key; did you mean 'window'?" in capsys.readouterr().err


def test_a_defect_is_one_message_too_and_its_traceback_is_asked_for(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(COMMANDS, "status", lambda place, asked: 1 / 0)
    assert main(["status"]) == 1
    (message,) = capsys.readouterr().err.splitlines()
    assert message.startswith("kafka-sla: unexpected ZeroDivisionError in test_main.py, line ")
    assert main(["status", "--debug"]) == 1
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_configuration_and_store_may_be_named_before_and_after_the_command_and_by_environment(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    configured(name="mine.yml")
    begun("here", "there", "elsewhere")
    assert main(["--config", "mine.yml", "--store", "here", "status"]) == 0
    assert main(["status", "--config", "mine.yml", "--store", "there"]) == 0
    monkeypatch.setenv("KAFKA_SLA_CONFIG", "mine.yml")
    monkeypatch.setenv("KAFKA_SLA_STORE", "elsewhere")
    assert main(["status"]) == 0
    assert not Path("kafka_sla_store").exists()
    assert capsys.readouterr().out.count("nothing published") == 3


def test_the_configured_store_connection_wins_over_the_environments_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    configured()
    monkeypatch.setenv("KAFKA_SLA_STORE", "folder")
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_SLA_STORE", '{"conn_type": "sqlite", "host": "shared/state.db"}')
    Path("shared").mkdir()
    write_history()
    assert main(["import", "--log-offsets", "log.csv"]) == 0
    assert main(["status"]) == 0
    assert Path("shared/state.db").exists() and not Path("folder").exists()


def test_schema_prints_the_published_schema(capsys: Captured) -> None:
    assert main(["schema"]) == 0
    published = Path(__file__).parents[3] / "docs" / "reference" / "kafka_sla.schema.json"
    assert capsys.readouterr().out == published.read_text("utf-8")
    assert json.loads(published.read_text("utf-8"))["title"] == "kafka_sla"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("", "required: COMMAND"),
        ("frobnicate", "invalid choice: 'frobnicate'"),
        ("run --from 2026-11-01", "required: --to"),
        ("run --from yesterday --to 2026-11-01", "'yesterday' is not a time"),
        ("export nothing", "invalid choice: 'nothing' (choose from"),
        ("export nothing", "consumer_latency"),
        ("export sla_misses --format xml", "invalid choice: 'xml'"),
        (
            "run --from 1h --to now --driver-memory 2x",
            "--driver-memory: '2x' is not a size of memory; allowed: a whole",
        ),
        ("run --from 1h --to now --driver-memory -2g", "--driver-memory"),
        ("spark-server --driver-memory 2gb", "--driver-memory: '2gb' is not a size of memory"),
        ("spark-server --driver-memory 100m", "--driver-memory: '100m' is less than Spark starts with"),
        ("spark-server --driver-memory 2,5g", "--driver-memory: '2,5g' is not a size of memory"),
        ("spark-server --port 65536", "--port: '65536' is not a port; allowed: a whole number from 1 to 65535"),
        ("spark-server --port http", "--port: 'http' is not a port"),
    ],
)
def test_a_wrong_command_line_is_answered_with_what_is_allowed(capsys: Captured, line: str, told: str) -> None:
    with pytest.raises(SystemExit) as caught:
        main(line.split())
    assert caught.value.code == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("run --from 2026-11-02 --to 2026-11-01", "--to must be after --from"),
        ("run --from 2026-11-01T00:00:30Z --to 2026-11-02", "not the edge of a window of 1m"),
        ("run --from 2026-11-01 --to 9000-01-01", "--to is in the future"),
        ("run --from 2026-01-01 --to 2026-01-02 --cluster new", "no cluster 'new'; it has: old"),
        ("misses --sla payment", "no SLA 'payment'; did you mean 'payments within 30 s'?"),
        ("import", "nothing to import: name files with --log-offsets or --committed-offsets"),
        ("export sla_misses --by topic", "--by topic sums up consumer_latency only"),
        ("export sla_misses --format parquet", "name a file with --output"),
        ("export sla_misses --output no/such/file.csv", "the folder of --output no/such/file.csv does not exist"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_cure(capsys: Captured, line: str, told: str) -> None:
    configured()
    assert main(line.split()) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith("kafka-sla: ") and told in captured.err


START = datetime(2026, 11, 1, 8, tzinfo=UTC)
STOPPED, BACK = 480.0, 840.0
"""Seconds: the consumer commits a second after production, but nothing between these two."""


def stamp(seconds: float) -> str:
    return instant_text(START + timedelta(seconds=seconds))


def write_history() -> None:
    """Ten records a second for twenty minutes, looked at every ten seconds; a consumer that stops for six minutes."""
    looks = [f"old,payments,0,{stamp(s)},0,{s * 10},exporter" for s in range(0, 1201, 10)]
    Path("log.csv").write_text("\n".join(["cluster,topic,partition,at,log_start_offset,log_end_offset,source", *looks]))
    seconds = [s for s in range(1, 1200, 5) if not STOPPED < s < BACK]
    commits = [f"old,service,payments,0,{stamp(s)},{(s - 1) * 10},commit_log" for s in seconds]
    Path("commits.csv").write_text("\n".join(["cluster,group,topic,partition,at,committed_offset,source", *commits]))


def test_history_from_files_becomes_a_miss_and_rows_to_export(capsys: Captured) -> None:
    unread = "  - {name: unread, group: nobody, topic: payments, max_latency: 30s}\n"
    configured(CONFIG.replace("slas:\n", f"slas:\n{unread}"))
    write_history()
    assert main(["import", "--log-offsets", "log.csv", "--committed-offsets", "commits.csv"]) == 0
    assert capsys.readouterr().out == "log.csv: 121 new rows\ncommits.csv: 168 new rows\n"
    assert main(["import", "--log-offsets", "log.csv"]) == 0
    assert capsys.readouterr().out == "log.csv: 0 new rows\n"

    assert main(["run", "--from", "2026-11-01T08:00Z", "--to", "2026-11-01T08:20Z"]) == 0
    captured = capsys.readouterr()
    assert "measure 2026-11-01T08:00:00Z/2026-11-01T08:20:00Z with Spark: " in captured.err
    said = "this does not hold of what was measured: consumer_latency: every group that an SLA names has rows"
    assert f"kafka-sla: warning: {said} (observed absent: nobody" in captured.err
    line = captured.out.splitlines()[-1]
    assert line.startswith("payments within 30 s") and "(recovered)" in line

    assert main(["misses"]) == 0
    miss = capsys.readouterr().out
    assert miss.startswith("RECOVERED: payments within 30 s at 2026-11-01 08:15:00 UTC, missed for 7 min: ")
    assert "Since: 2026-11-01 08:08:00 UTC" in miss
    assert "consumed nothing from " in miss and "unknown" not in miss

    assert main(["status"]) == 0
    assert "old      2026-11-01 08:00:00 UTC  2026-11-01 08:20:00 UTC  100 %    0" in capsys.readouterr().out

    assert main(["export", "consumer_latency", "--format", "json", "--by", "topic"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["window_start"] for row in rows] == [stamp(60 * m) for m in range(20)]
    assert sum(row["records_consumed"] for row in rows) == 11_950
    asked = ["report", "--from", "2026-11-01T08:00Z", "--to", "2026-11-01T08:20Z", "--output", "r.html", "--json"]
    assert main(asked) == 0
    assert json.loads(capsys.readouterr().out) == {"page": "r.html", "slas": ["unread", "payments within 30 s"]}
    assert "payments within 30 s" in Path("r.html").read_text("utf-8")
    assert main(["export", "sla_misses", "--output", "misses.csv"]) == 0
    header, row = Path("misses.csv").read_text().splitlines()
    assert header.startswith("miss_id,sla,cluster,state") and ",old,recovered,,2026-11-01T08:08:00.000Z," in row
    exported = sorted(path.name for path in Path.cwd().iterdir())
    assert exported == ["commits.csv", "kafka_sla.yml", "kafka_sla_store", "log.csv", "misses.csv", "r.html"]

    (damaged,) = Path("kafka_sla_store/warehouse").glob("staging/*/consumer_latency/*.parquet")
    damaged.write_bytes(damaged.read_bytes()[:-10])
    with closing(sqlite3.connect("kafka_sla_store/kafka_sla.db")) as database:
        database.execute("UPDATE sla_rollups SET bad_ms = 0 WHERE width_ms = 86400000")
        database.commit()
    assert main(["store", "check"]) == 1
    said = capsys.readouterr().out
    assert "the sums of the SLA 'payments within 30 s' differ from its judged windows" in said
    assert "touches consumer_latency: 2026-11-01T08:00:00Z/2026-11-01T08:20:00Z of old" in said
    assert main(["store", "repair", "--yes", "--json"]) == 0
    repaired = json.loads(capsys.readouterr().out)
    assert {"metrics", "sums"} <= {damage["kind"] for damage in repaired["before"]}
    assert repaired["after"]["damages"] == [] and repaired["after"]["rows"] > 0
    assert main(["export", "consumer_latency", "--format", "json", "--by", "topic"]) == 0
    assert json.loads(capsys.readouterr().out) == rows
    assert main(["export", "sla_misses"]) == 0
    assert capsys.readouterr().out.splitlines() == [header, row]


def test_every_table_can_be_exported_from_an_empty_store(capsys: Captured) -> None:
    configured()
    begun("kafka_sla_store")
    for table in TABLES.values():
        assert main(["export", table.name]) == 0
        assert capsys.readouterr().out == ",".join(table.names) + "\n"


def test_a_file_with_a_row_that_cannot_be_is_refused_as_a_whole(capsys: Captured) -> None:
    configured()
    begun("kafka_sla_store")
    write_history()
    with Path("log.csv").open("a") as log:
        log.write("\nold,payments,zero,yesterday,0,1,exporter\n")
    assert main(["import", "--log-offsets", "log.csv"]) == 1
    captured = capsys.readouterr()
    assert "zero" in captured.err and "yesterday" in captured.err and captured.out == ""
    assert main(["export", "log_offsets"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


WRITING = (
    ("export", "sla_misses"),
    ("export", "sla_misses", "--format", "parquet"),
    ("export-slo",),
    ("report", "--from", "2026-11-01", "--to", "2026-11-02"),
    ("digest", "All", "--day", "2026-11-01"),
)


@pytest.mark.parametrize("command", [*WRITING, ("suggest",), ("init",)], ids=" ".join)
@pytest.mark.parametrize("leads_to", ["pipe", "/proc/self/fd/1", "/dev/kafka_sla/no.csv", "away", "circle"])
def test_a_device_or_a_pipe_is_not_replaced_by_a_file_nor_is_a_link_to_one(
    command: tuple[str, ...], leads_to: str, capsys: Captured
) -> None:
    configured(f"{CONFIG}digests: [{{name: All, every: day}}]\n")
    begun("kafka_sla_store")
    os.mkfifo("pipe")
    for link, to in (("link", leads_to), ("away", "/proc/self/fd/2"), ("circle", "link")):
        Path(link).symlink_to(to)

    assert main([*command, "--output", "link"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(("kafka-sla: --output link is ", "kafka-sla: link is there already"))
    assert (Path("pipe").is_fifo(), Path("link").readlink()) == (True, Path(leads_to))
    assert main([*command, "--output", "pipe"]) == 2
    assert Path("pipe").is_fifo()


@pytest.mark.parametrize("command", WRITING, ids=" ".join)
def test_what_is_written_to_a_link_is_in_the_file_that_it_leads_to(command: tuple[str, ...]) -> None:
    configured(f"{CONFIG}digests: [{{name: All, every: day}}]\n")
    begun("kafka_sla_store")
    Path("kept").mkdir()
    Path("kept/file").write_text("before")
    for link, to in (("link", "kept/again"), ("kept/again", "file"), ("dangling", "kept/new")):
        Path(link).symlink_to(to)

    for name, written in (("link", "kept/file"), ("dangling", "kept/new")):
        assert main([*command, "--output", name]) == 0
        assert Path(name).is_symlink() and not Path(written).is_symlink()
        assert Path(written).read_bytes() not in (b"before", b"")
    assert Path("kept/again").is_symlink()
    assert sorted(path.name for path in Path("kept").iterdir()) == ["again", "file", "new"]


def test_a_first_configuration_is_written_once_and_is_valid(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ["init", "--cluster", "prod-eu.central", "--group", "billing.alerts-authorised-v2", "--topic", "*.events"]
    assert main(asked) == 0
    assert "kafka-sla check" in capsys.readouterr().out
    settings = load_settings("kafka_sla.yml")

    assert [(c.name, c.connection) for c in settings.clusters] == [("prod-eu.central", "kafka_prod_eu_central")]
    (sla,) = settings.slas
    assert sla.groups.matches("billing.alerts-authorised-v2") and sla.topics.matches("orders.events")
    assert "AIRFLOW_CONN_KAFKA_PROD_EU_CENTRAL" in Path("kafka_sla.yml").read_text()

    assert main(["init"]) == 2
    assert "kafka_sla.yml is there already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "name", "told"),
    [
        ("--cluster", "prod eu", "--cluster 'prod eu' is not allowed here; allowed: letters, digits, _ . -, 100"),
        ("--group", "/[", "--group '/[' is "),
        ("--topic", "", "--topic '' is "),
    ],
)
def test_a_first_configuration_that_check_would_refuse_is_not_written(
    capsys: Captured, option: str, name: str, told: str
) -> None:
    assert main(["init", option, name]) == 2
    assert capsys.readouterr().err.startswith(f"kafka-sla: {told}")
    assert not Path("kafka_sla.yml").exists()


@pytest.mark.parametrize("command", [("export", "sla_misses"), ("report", "--from", "2h", "--to", "1h"), ("init",)])
def test_a_file_that_cannot_be_written_is_called_what_it_was_asked_for_as(
    capsys: Captured, command: tuple[str, ...]
) -> None:
    """Root may write in every folder but those of the kernel."""
    configured()
    begun("kafka_sla_store")

    assert main([*command, "--output", "/sys/mine.out"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("kafka-sla: /sys/mine.out cannot be read or written: ")
    assert set(re.findall(r"/sys/[^ ']*", said)) == {"/sys/mine.out"}


def test_a_report_of_time_to_come_is_refused(capsys: Captured) -> None:
    configured()
    begun("kafka_sla_store")

    assert main(["report", "--from", "2999-01-01", "--to", "2999-01-02", "--output", "r.html"]) == 2
    said = capsys.readouterr().err
    assert (
        said.startswith("kafka-sla: --from 2999-01-01T00:00:00.000Z is in the future") and not Path("r.html").exists()
    )
    assert main(["report", "--from", "2h", "--to", "2999-01-02", "--output", "r.html"]) == 0


def test_a_home_that_may_not_be_written_is_no_news(tmp_path: Path) -> None:
    configured()
    begun("kafka_sla_store")
    code = "import sys; from kafka_sla.cli.main import main; sys.exit(main())"
    asked = [sys.executable, "-c", code, "report", "--from", "2h", "--to", "1h", "--output", "r.html"]
    there = {name: value for name, value in os.environ.items() if name not in ("MPLCONFIGDIR", "XDG_CONFIG_HOME")}
    ran = subprocess.run(
        asked, capture_output=True, text=True, check=False, env=there | {"HOME": "/proc/none", "XDG_CACHE_HOME": ""}
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "r.html\n", "")


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_port_that_is_in_use_is_told_in_one_sentence(address: str) -> None:
    with socket.create_server((address, 0), family=socket.AF_INET6 if ":" in address else socket.AF_INET) as taken:
        port = taken.getsockname()[1]
        asked = ["spark-server", "--address", address, "--port", str(port)]
        code = "import sys; from kafka_sla.cli.main import main; sys.exit(main())"
        ran = subprocess.run([sys.executable, "-c", code, *asked], capture_output=True, text=True, check=False)
    (said,) = ran.stderr.splitlines()
    assert (ran.returncode, ran.stdout) == (1, "")
    assert said.startswith(f"kafka-sla: spark-server cannot listen at {address}, port {port}: Address already in use; ")


def test_times_may_be_relative(capsys: Captured) -> None:
    before = datetime.now(UTC)
    asked = parser().parse_args(["misses", "--from", "2h", "--to", "now"])
    after = datetime.now(UTC)

    assert before - timedelta(hours=2, minutes=1) <= asked.start <= after - timedelta(hours=2)
    assert before - timedelta(minutes=1) <= asked.end <= after
    assert (asked.start.second, asked.start.microsecond) == (0, 0)


def test_status_misses_and_check_are_also_json(capsys: Captured) -> None:
    configured()
    begun("kafka_sla_store")
    assert main(["status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["clusters"][0]["cluster"] == "old"
    assert main(["misses", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    main(["check", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert {"ok", "text", "remediation", "entry"} == set(found[0])
    assert found[0]["text"] == "configuration: 1 cluster, 1 SLA"


def test_what_a_command_did_is_also_json(capsys: Captured) -> None:
    def printed(*asked: str) -> Any:
        main([*asked, "--json"])
        return json.loads(capsys.readouterr().out)

    assert printed("init", "--output", "first.yml") == {"configuration": "first.yml"}
    configured(f"{CONFIG}digests: [{{name: All, every: day}}]\n")
    write_history()
    assert printed("import", "--log-offsets", "log.csv") == [{"file": "log.csv", "new_rows": 121}]
    checked = printed("store", "check")
    assert (checked["rows"], checked["damages"]) == (121, [])
    digest = printed("digest", "All", "--day", "2026-11-01", "--output", "d.html")
    assert (digest["digest"], digest["mailed_to"]) == ("All", None)
    copied = printed("store", "copy", "copied")
    assert (copied["warehouse"], copied["files"] > 0) == (str(Path("copied/warehouse").absolute()), True)


def test_every_command_has_json_but_those_whose_output_has_a_format_of_its_own() -> None:
    def without(commands: dict[str, argparse.ArgumentParser]) -> set[str]:
        return {name for name, each in commands.items() if "--json" not in each.format_help()}

    commands = subcommands(parser())
    grouped = {"store", "exclusions"}
    assert without(commands) == {"schema", "completion", "export", "export-slo", "import-slo", "spark-server"} | grouped
    assert [without(subcommands(commands[name])) for name in sorted(grouped)] == [set(), set()]


def subcommands(of: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    (found,) = (action.choices for action in of._actions if isinstance(action, argparse._SubParsersAction))
    return dict(found)


def test_repair_asks_nobody_where_json_is_read(capsys: Captured) -> None:
    configured()
    assert main(["store", "repair", "--json"]) == 2
    assert "add --yes" in capsys.readouterr().err


@pytest.mark.parametrize("quiet", [True, False])
def test_quiet_leaves_no_progress(capsys: Captured, quiet: bool) -> None:
    configured()
    write_history()
    assert main([*(["--quiet"] if quiet else []), "import", "--log-offsets", "log.csv"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "log.csv: 121 new rows\n"
    assert (captured.err == "") == quiet


def test_sampling_that_never_succeeded_fails_and_says_why_even_when_quiet(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    configured("clusters: {prod: {connection: kafka_prod}}\n")
    nowhere = {"bootstrap.servers": f"127.0.0.1:{free_ports(1)[0]}"}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_PROD", json.dumps({"conn_type": "kafka", "extra": nowhere}))

    assert main(["sample", "--for", "1s", "--quiet"]) == 1
    printed = capsys.readouterr()

    *warnings, error = printed.err.splitlines()
    assert printed.out == "" and warnings
    assert all(said.startswith("kafka-sla: warning: no sample of prod: ") for said in warnings)
    assert error.startswith("kafka-sla: no sample of prod succeeded, for the reasons above; see what `kafka-sla check`")


def test_the_version_is_printed_without_loading_what_no_version_needs() -> None:
    code = "import sys; from kafka_sla.cli.main import main\ntry: main(['--version'])\nexcept SystemExit: pass\n"
    code += "print(sorted({'sqlalchemy', 'pydantic', 'pyarrow', 'yaml', 'rich', 'jinja2'} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == f"kafka-sla {__version__}\n[]\n"


def test_a_terminal_that_knows_no_dash_shows_a_question_mark() -> None:
    code = "from kafka_sla.cli.main import main; main(['completion']); print('\\u2212')"
    there = {**os.environ, "PYTHONIOENCODING": "ascii"}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=there)
    assert ran.stdout.splitlines()[-1] == "?"


def test_the_help_names_every_exit_code(capsys: Captured) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    text = capsys.readouterr().out
    assert all(words in text for words in ("0 done", "1 failed", "2 usage error", "130 stopped"))


def test_the_help_says_of_quiet_what_the_reference_says(capsys: Captured) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    reference = Path(__file__).parents[3] / "docs" / "reference" / "command-line.md"
    assert "--quiet leaves results, warnings and errors" in capsys.readouterr().out
    assert "`--quiet` leaves results, warnings and errors" in reference.read_text("utf-8")


@pytest.mark.parametrize(
    ("line", "word", "found"),
    [
        ("kafka-sla", "mis", ["misses"]),
        ("kafka-sla misses", "--op", ["--open"]),
        ("kafka-sla --quiet export", "sla_mis", ["sla_misses"]),
    ],
)
def test_a_shell_completes_commands_options_and_tables(
    capsys: Captured, line: str, word: str, found: list[str]
) -> None:
    assert main(["completion"]) == 0
    words = [*line.split(), word]
    typed = " ".join(f"'{one}'" for one in words)
    press_tab = f'COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _kafka_sla; echo "${{COMPREPLY[@]}}"'
    script = f"{capsys.readouterr().out}\n{press_tab}"
    ran = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == found


def test_a_copy_into_a_connection_that_is_missing_is_told_how_a_store_is_defined(capsys: Captured) -> None:
    configured()
    begun("kafka_sla_store")
    assert main(["store", "copy", "--to-connection", "kafka_sla_backup"]) == 2
    told = capsys.readouterr().err
    assert "AIRFLOW_CONN_KAFKA_SLA_BACKUP" in told and '"warehouse"' in told and "bootstrap.servers" not in told
