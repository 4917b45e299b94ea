from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import BaseNotifier

from kafka_sla.errors import SettingsError
from kafka_sla.ledger.alerts.report_rows import AlertMessage
from kafka_sla.model.entities import Miss, Notifier, Patterns, Sla, SteadyState
from kafka_sla.notifications.notices import BurnMessage, BurnNotice, IncidentNotice, Notice, NoticeKind
from kafka_sla.sla.alerts import Report
from kafka_sla.tasks.events.burn_notifiers import about_burns
from kafka_sla.tasks.events.notifiers import about, caller
from tests.kafka_sla.ledger.test_alert_reports import alert_of
from tests.kafka_sla.notifications.misses import miss
from tests.kafka_sla.notifications.test_burn_email import BURN

HEARD: list[str] = []
SLA = Sla("orders", "eu", Patterns(), Patterns(), 30_000, 300_000, 0.999, SteadyState(30_000), team="Shop")


def notice(kind: NoticeKind, *misses: Miss, still_open: tuple[Miss, ...] = ()) -> IncidentNotice:
    notices = tuple(Notice(kind, found) for found in misses or (miss(),))
    others = tuple(Notice("opened", left) for left in still_open)
    return IncidentNotice(kind, "chat", "i1", notices, others, len(notices) + len(others))


def alert_message(kind: NoticeKind, *misses: Miss, still_open: tuple[Miss, ...] = ()) -> AlertMessage:
    reports = tuple(report_of(found) for found in misses or (miss(),))
    others, state = tuple(report_of(found) for found in still_open), "open" if kind == "opened" else "resolved"
    size = len(reports) + len(others)
    return AlertMessage("miss", state, "chat", "i1", reports, others, size)  # type: ignore[arg-type]


def report_of(found: Miss) -> Report:
    alert = alert_of(found)
    return Report(1, "chat", found.id, found.id, found.start, alert.known_until, alert, SLA, None, "open", "i1")


class Chat(BaseNotifier):
    """A chat that keeps what it is told."""

    template_fields = ("text",)

    def __init__(self, text: str, channel: str) -> None:
        super().__init__()
        self.text, self.channel = text, channel

    def notify(self, context: Any) -> None:
        HEARD.append(f"{self.channel}: {self.text}")


class Unrelated:
    """A class that looks like a notifier and is none."""

    def __init__(self) -> None:
        HEARD.append("made")

    def __call__(self, context: Any) -> None:
        HEARD.append("called")


def notify_by_function() -> Any:
    HEARD.append("called")


NOTIFIERS = Unrelated


def test_a_notifier_is_called_with_its_arguments_templated() -> None:
    HEARD.clear()
    chat = Notifier(
        f"{__name__}.Chat", {"text": "{{ kind }} {{ sla }} ({{ team }}) {{ miss.id }} {{ run_id }}", "channel": "#ops"}
    )

    caller({"run_id": "manual"})(chat, SLA, alert_message("opened", found := miss()))  # type: ignore[typeddict-item]

    assert HEARD == [f"#ops: opened orders (Shop) {found.id} manual"]


def test_the_message_says_what_was_promised_how_bad_and_where() -> None:
    HEARD.clear()
    chat = Notifier(f"{__name__}.Chat", {"text": "{{ message }}", "channel": "#ops"})

    for kind in ("opened", "recovered"):
        caller({})(chat, SLA, alert_message(kind))

    opened, recovered = HEARD
    assert (
        opened.startswith("#ops: SLA missed: orders, 2026-03-02 10:00:00 UTC to ")
        and "worst latency 17 min 24 s, threshold 30 s, group" in opened
    )
    assert recovered.startswith("#ops: SLA recovered: orders, 2026-03-02 10:00:00 UTC to ")


@pytest.mark.parametrize(
    ("path", "kwargs"), [("nowhere.at.All", {}), (f"{__name__}.Talk", {}), (f"{__name__}.Chat", {"colour": "red"})]
)
def test_a_notifier_that_cannot_be_used_is_named(path: str, kwargs: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=f"the notifier {path} of the SLA 'orders' cannot be used"):
        caller({})(Notifier(path, kwargs), SLA, alert_message("opened"))


@pytest.mark.parametrize(
    ("path", "kwargs"),
    [
        ("subprocess.Popen", {"args": ["touch", "RAN"]}),
        ("os.system", {"command": "touch RAN"}),
        ("pathlib.Path.touch", {"self": "RAN"}),
        ("builtins.exec", {}),
        (f"{__name__}.notify_by_function", {}),
        (f"{__name__}.Unrelated", {}),
        (f"{__name__}.NOTIFIERS.first", {}),
        ("airflow.sdk.BaseNotifier", {}),
        ("airflow.providers.smtp.hooks.smtp.SmtpHook", {}),
    ],
)
def test_only_a_subclass_of_airflows_notifier_is_called(empty_folder: None, path: str, kwargs: dict[str, Any]) -> None:
    HEARD.clear()

    with pytest.raises(SettingsError, match=r"SLA 'orders' cannot be used: .* is not an Airflow notifier; allow"):
        caller({})(Notifier(path, kwargs), SLA, alert_message("opened"))

    assert HEARD == [] and not Path("RAN").exists()


def test_a_module_without_a_notifier_is_not_even_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing runs it: a script of the DAGs folder, for example."""
    (tmp_path / "nightly_script").mkdir()
    for name in ("__init__", "purge"):
        (tmp_path / "nightly_script" / f"{name}.py").write_text("from pathlib import Path\nPath('RAN').touch()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(SettingsError, match="is not an Airflow notifier"):
        caller({})(Notifier("nightly_script.purge.Notifier", {}), SLA, alert_message("opened"))

    assert not Path("RAN").exists()


@pytest.mark.parametrize("path", ["company_alerts.Direct", "company_alerts.chat.Derived", "company_alerts.chat.alias"])
def test_notifiers_of_a_company_are_called_by_any_of_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], path: str
) -> None:
    package = tmp_path / "company_alerts"
    package.mkdir()
    (package / "__init__.py").write_text("from .bases import Base as Direct\n")
    (package / "bases.py").write_text(
        "try:\n    from airflow.providers.common.compat.notifier import BaseNotifier as Parent\n"
        "except ImportError:\n    from airflow_of_long_ago import BaseNotifier as Parent\n"
        "class Base(Parent):\n    def notify(self, context):\n        print('notified', context['sla'])\n"
    )
    (package / "chat.py").write_text(
        "import company_alerts.bases\nclass Derived(company_alerts.bases.Base):\n    pass\nalias = Derived\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.startswith("company_alerts")]:
        monkeypatch.delitem(sys.modules, name)

    caller({})(Notifier(path, {}), SLA, alert_message("opened"))

    assert capsys.readouterr().out == "notified orders\n"


def test_a_message_of_several_misses_names_them_and_what_is_still_missed() -> None:
    HEARD.clear()
    text = "{{ message }} ({{ misses | length }}, {{ incident }})"

    caller({})(
        Notifier(f"{__name__}.Chat", {"text": text, "channel": "#ops"}),
        SLA,
        alert_message("recovered", miss(), miss(sla="billing.alerts"), still_open=(miss(sla="refunds"),)),
    )

    assert HEARD == [
        "#ops: SLAs recovered: 2 of 3, consumer group payments: payments-30s, billing.alerts; "
        "still missed: refunds (2, i1)"
    ]


@pytest.mark.parametrize("group", ["payments", "p" * 2_000, "pay\r\nments\u202e" * 200])
def test_a_message_of_hundreds_of_slas_is_a_line_that_any_chat_takes(group: str) -> None:
    misses = [replace(miss(worst_group=group), sla=f"{n:03}".rjust(100, "n")) for n in range(500)]
    told = about(SLA, notice("recovered", *misses[:250], still_open=tuple(misses[250:])))
    alone = about(SLA, notice("opened", misses[0]))

    assert len(told["message"]) <= 2_000 and len(alone["message"]) <= 2_000
    assert (told["message"] + alone["message"]).isprintable()
    assert len(told["misses"]) == len(told["still_open"]) == 250
    if group == "payments":
        assert told["message"].count("and 244 more") == 2


def test_a_message_of_hundreds_of_burns_is_a_line_that_any_chat_takes() -> None:
    burns = [
        BurnNotice("over", replace(BURN, sla=f"{n:03}".rjust(100, "n"), end=BURN.start), None, "") for n in range(500)
    ]
    told = about_burns(SLA, BurnMessage("over", "chat", "i1", tuple(burns[:250]), tuple(burns[250:]), 500))

    assert len(told["message"]) <= 2_000
    assert told["message"].count("and 244 more") == 2
    assert len(told["burns"]) == len(told["still_burning"]) == 250
