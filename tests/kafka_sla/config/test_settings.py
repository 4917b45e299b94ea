"""The configuration file through its one door: what it means, and how its mistakes are told."""

from __future__ import annotations

import json
import random
import re
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from kafka_sla.config.settings import Settings, json_schema, load_settings
from kafka_sla.errors import SettingsError
from kafka_sla.model.entities import (
    BurnPair,
    Interval,
    Maintenance,
    Notifier,
    OffsetLookups,
    Patterns,
    StatusRules,
    SteadyState,
    WeeklyMaintenance,
)

ROOT = Path(__file__).parents[3]
SLA = {"name": "payments", "groups": ["payments-service"], "max_latency": "30s"}


def document(**keys: Any) -> dict[str, Any]:
    return {"clusters": {"prod": {"connection": "kafka_prod"}}, "slas": [SLA], **keys}


def load(tmp_path: Path, content: dict[str, Any] | str | bytes) -> Settings:
    path = tmp_path / "kafka_sla.yml"
    text = yaml.safe_dump(content, sort_keys=False) if isinstance(content, dict) else content
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_settings(path)


def mistakes(tmp_path: Path, content: dict[str, Any] | str | bytes) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, content)
    first, *lines = str(caught.value).splitlines()
    assert f"{tmp_path / 'kafka_sla.yml'} has {len(lines)} error{'s' * (len(lines) > 1)}:" == first
    return [line.strip() for line in lines]


def with_sla(**keys: Any) -> dict[str, Any]:
    return document(slas=[{**SLA, **keys}])


def plain(text: str) -> Any:
    """The document with every scalar as text."""
    return yaml.load(text, yaml.BaseLoader)  # noqa: S506 - it builds text only


def test_the_shipped_example_is_valid_and_fits_the_published_schema() -> None:
    path = ROOT / "dags" / "kafka_sla.yml"
    assert ["payments within 30 seconds", "orders within 5 minutes"] == [sla.name for sla in load_settings(path).slas]
    jsonschema.validate(plain(path.read_text("utf-8")), json_schema())


def test_the_published_schema_is_fresh() -> None:
    published = (ROOT / "docs" / "reference" / "kafka_sla.schema.json").read_text("utf-8")
    assert json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n" == published


def test_the_published_schema_refuses_an_unknown_key_and_a_duration_without_a_unit() -> None:
    for wrong in (with_sla(grops=["x"]), with_sla(max_latency="30")):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, json_schema())


def test_the_published_schema_takes_a_key_without_a_value_where_the_program_does(tmp_path: Path) -> None:
    text = """\
clusters: {eu:, us: {connection:, groups:, consumer_status:, replication:, jmx_exporters:}}
slas: [{name: a, cluster: us, group: g, max_latency: 30s, for:, objective:, period:, recipients:, on_miss:, topic:}]
defaults:
teams:
digests:
window:
offset_lookups: {max_per_hour:}
"""
    assert load(tmp_path, text).sla("a").for_ms == 300_000
    jsonschema.validate(yaml.safe_load(text), json_schema())
    for wrong in ({"clusters": None}, with_sla(name=None), document(teams={"a": None}), with_sla(groups=[None])):
        mistakes(tmp_path, wrong)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, json_schema())


def test_an_sla_of_three_keys_gets_defaults(tmp_path: Path) -> None:
    settings = load(tmp_path, document())
    sla = settings.sla("payments")
    assert ("prod", 30_000, 300_000, 0.999) == (sla.cluster, sla.max_latency_ms, sla.for_ms, sla.objective)
    assert ("month", "UTC", "notify") == (sla.period, sla.time_zone, sla.on_miss)
    assert (
        SteadyState(
            caught_up_within_ms=30_000,
            grace_period_ms=None,
            expire_group_ms=604_800_000,
            progress_deadline_ms=1_800_000,
        )
        == sla.steady_state
    )
    assert (0, "all", "later") == (sla.allowed_lag, sla.partitions, sla.latency_from)
    assert Patterns(("payments\\-service",), ()) == sla.groups
    assert sla.topics.matches("anything") and not sla.topics.matches("__consumer_offsets")
    assert (60_000, OffsetLookups(250, 200_000, 7_500)) == (settings.window_ms, settings.offset_lookups)
    assert ("smtp_default", "kafka_sla_store", None) == (
        settings.smtp_connection,
        settings.store_connection,
        settings.base_url,
    )


def test_each_wrong_value_of_a_judgement_key_is_an_error_that_lists_the_allowed_values(tmp_path: Path) -> None:
    wrong = with_sla(allowed_lag=-1, partitions="some", latency_from="create", steady_state={"progress_deadline": "30"})
    text = "\n".join(mistakes(tmp_path, wrong))

    assert "slas[0].allowed_lag: -1 is not valid; allowed: greater than or equal to 0" in text
    assert "slas[0].partitions: 'some' is not valid; allowed: 'all' or 'committed'" in text
    assert "slas[0].latency_from: 'create' is not valid; allowed: 'created', 'appended' or 'later'" in text
    assert "slas[0].steady_state.progress_deadline: '30' is not a duration" in text


def test_every_key_lands_in_its_place(tmp_path: Path) -> None:
    sla = load(
        tmp_path,
        with_sla(
            cluster="prod",
            topic="payments",
            objective=0.95,
            period="quarter",
            time_zone="Europe/Berlin",
            steady_state={
                "caught_up_within": "10s",
                "grace_period": "1h30m",
                "expire_group": "2d",
                "progress_deadline": "10m",
            },
            allowed_lag=1,
            partitions="committed",
            latency_from="appended",
            maintenance=[
                {"from": "2026-11-01T02:00", "to": "2026-11-01T04:00:00Z", "reason": "upgrade"},
                {"every": "Sun, saturday 23:00-01:00", "time_zone": "UTC"},
            ],
            recipients=["team@example.com"],
            on_miss="fail",
            notifiers=[{"path": "a.b.SlackNotifier", "kwargs": {"channel": "#x"}}],
            description="d",
            team="t",
            **{"for": "10m"},
        ),
    ).sla("payments")
    assert SteadyState(10_000, 5_400_000, 172_800_000, 600_000) == sla.steady_state
    assert (1, "committed", "appended") == (sla.allowed_lag, sla.partitions, sla.latency_from)
    measured = sla.measured
    assert (1, "committed", "appended") == (measured.allowed_lag, measured.partitions, measured.latency_from)
    once, weekly = sla.maintenance
    span = Interval(datetime(2026, 11, 1, 1, tzinfo=UTC), datetime(2026, 11, 1, 4, tzinfo=UTC))
    assert Maintenance(span, "upgrade") == once, "a time without an offset follows the SLA's time zone"
    assert WeeklyMaintenance((5, 6), time(23), time(1), "UTC", "planned maintenance") == weekly
    assert (("team@example.com",), "fail", "d", "t") == (sla.recipients, sla.on_miss, sla.description, sla.team)
    assert (Notifier("a.b.SlackNotifier", {"channel": "#x"}),) == sla.notifiers
    assert (600_000, 0.95, "quarter") == (sla.for_ms, sla.objective, sla.period)


def test_lists_of_counted_groups_name_what_the_cluster_measures_and_hold_who_promises_something(tmp_path: Path) -> None:
    cluster = {
        "connection": "kafka_prod",
        "topics": ["payments", "orders"],
        "groups": ["payments-service", "billing"],
        "non_consumed_offsets_groups": {"orders": ["billing", "strangers"], "payments": ["billing"], "typo": []},
    }
    promise = {**SLA, "topic": "payments", "min_time_to_expiry": "6h"}
    found = mistakes(tmp_path, document(clusters={"prod": cluster}, slas=[promise]))
    where = "clusters.prod.non_consumed_offsets_groups"
    assert [line.split(": ", 1)[1] for line in found] == [
        f"{where}.orders: 'strangers' is not selected by clusters.prod.groups; allowed: names that it selects",
        f"{where}.typo: 'typo' is not selected by clusters.prod.topics; allowed: names that it selects",
        f"slas[0].min_time_to_expiry: 'payments-service' is not in {where}.payments, so that its unread records are"
        " not known; allowed: groups of that list, or no list for the topic",
    ]


def test_judging_unread_records_and_consumers_is_configured_by_keys(tmp_path: Path) -> None:
    cluster = {
        "connection": "kafka_prod",
        "non_consumed_offsets_groups": {"payments": ["payments-service"]},
        "consumer_status": {"commits": 5, "allowed_lag": 3, "min_complete": 0.5, "expire_group": "1d"},
    }
    promise = {**SLA, "topic": "payments", "min_time_to_expiry": "6h"}
    settings = load(tmp_path, document(clusters={"prod": cluster}, slas=[promise]))
    assert settings.cluster("prod").status == StatusRules(5, 3, 0.5, 86_400_000)
    assert settings.cluster("prod").non_consumed_offsets_groups == (("payments", ("payments-service",)),)
    assert settings.sla("payments").min_time_to_expiry_ms == 21_600_000


@pytest.mark.parametrize(
    ("thresholds", "asked", "max_gap_ms"),
    [
        (("10s", "5m"), {}, 2_500),
        (("5m",), {}, 60_000),
        (("500ms",), {}, 250),
        (("10s",), {"max_gap": "30s"}, 30_000),
    ],
)
def test_points_are_as_close_as_the_tightest_threshold_needs_unless_told_otherwise(
    tmp_path: Path, thresholds: tuple[str, ...], asked: dict[str, str], max_gap_ms: int
) -> None:
    slas = [
        {"name": f"within {limit}", "topics": ["orders.eu-1"], "groups": ["pay-v2"], "max_latency": limit}
        for limit in thresholds
    ]
    settings = load(tmp_path, document(slas=slas, offset_lookups=asked))
    assert settings.offset_lookups.max_gap_ms == max_gap_ms


def test_weekly_maintenance_follows_the_clocks_of_its_zone_and_crosses_midnight() -> None:
    march = Interval(datetime(2026, 3, 20, tzinfo=UTC), datetime(2026, 4, 6, tzinfo=UTC))
    weekly = WeeklyMaintenance((6,), time(1), time(4), "Europe/Berlin", "")
    assert [
        "2026-03-22T00:00:00Z/2026-03-22T03:00:00Z",
        "2026-03-29T00:00:00Z/2026-03-29T02:00:00Z",
        "2026-04-04T23:00:00Z/2026-04-05T02:00:00Z",
    ] == [str(span) for span in weekly.spans(march)]
    after_midnight = Interval(datetime(2026, 3, 22, 0, 30, tzinfo=UTC), datetime(2026, 3, 22, 0, 31, tzinfo=UTC))
    over_midnight = WeeklyMaintenance((5,), time(23), time(1), "UTC", "")
    assert ["2026-03-21T23:00:00Z/2026-03-22T01:00:00Z"] == [str(s) for s in over_midnight.spans(after_midnight)]


@pytest.mark.parametrize(
    ("weekday", "start", "end", "zone", "expected"),
    [
        (6, time(2, 30), time(3, 15), "Europe/Berlin", "2026-03-29T01:00:00Z/2026-03-29T01:45:00Z"),
        (6, time(2), time(3), "Europe/Berlin", "2026-03-29T01:00:00Z/2026-03-29T02:00:00Z"),
        (6, time(2), time(2, 30), "Europe/Berlin", "2026-03-29T01:00:00Z/2026-03-29T01:30:00Z"),
        (6, time(2), time(3, 30), "Europe/Berlin", "2026-03-29T01:00:00Z/2026-03-29T02:30:00Z"),
        (6, time(2), time(3), "America/New_York", "2026-03-08T07:00:00Z/2026-03-08T08:00:00Z"),
        (6, time(2, 15), time(2, 45), "Australia/Lord_Howe", "2026-10-03T15:30:00Z/2026-10-03T16:00:00Z"),
        (6, time(0, 30), time(2), "America/Santiago", "2026-09-06T04:00:00Z/2026-09-06T05:30:00Z"),
        (6, time(1, 30), time(2, 30), "Europe/Berlin", "2026-03-29T00:30:00Z/2026-03-29T01:30:00Z"),
        (5, time(23), time(2, 30), "Europe/Berlin", "2026-03-28T22:00:00Z/2026-03-29T01:30:00Z"),
        (6, time(2), time(3), "Europe/Berlin", "2026-10-25T00:00:00Z/2026-10-25T02:00:00Z"),
        (6, time(1), time(1, 30), "America/New_York", "2026-11-01T05:00:00Z/2026-11-01T05:30:00Z"),
    ],
)
def test_maintenance_keeps_its_length_where_clocks_skip_one_of_its_ends(
    weekday: int, start: time, end: time, zone: str, expected: str
) -> None:
    begins = datetime.fromisoformat(expected.partition("/")[0])
    around = Interval(begins - timedelta(hours=20), begins + timedelta(hours=20))
    assert [str(span) for span in WeeklyMaintenance((weekday,), start, end, zone, "").spans(around)] == [expected]


def test_globs_regexes_and_exclusions_select_names(tmp_path: Path) -> None:
    listed = ["orders-*", "/pay(ments)?[0-9]/", "__consumer_offsets", "a.b", "!*-test"]
    topics = load(tmp_path, document(clusters={"prod": {"topics": listed}})).cluster("prod").topics
    names = ["orders-", "orders-eu", "orders-test", "pay1", "payments2", "xpay1", "__consumer_offsets", "a.b", "aXb"]
    assert ["orders-", "orders-eu", "pay1", "payments2", "__consumer_offsets", "a.b"] == [
        name for name in names if topics.matches(name)
    ]


def test_only_exclusions_select_everything_else(tmp_path: Path) -> None:
    groups = load(tmp_path, document(clusters={"prod": {"groups": ["!console-*"]}})).cluster("prod").groups
    assert (True, False) == (groups.matches("payments-service"), groups.matches("console-1"))


def test_a_cluster_without_a_connection_is_imported_only(tmp_path: Path) -> None:
    assert load(tmp_path, document(clusters={"old": None})).cluster("old").connection is None


def test_defaults_fill_in_what_an_sla_does_not_give(tmp_path: Path) -> None:
    defaults = {"group": "everyone", "max_latency": "1m", "objective": "99%", "recipients": ["a@b.c"]}
    slas = [{"name": "one"}, {"name": "two", "groups": ["x"], "max_latency": "5s", "recipients": []}]
    one, two = load(tmp_path, document(slas=slas, defaults=defaults)).slas
    assert (60_000, 0.99, ("a@b.c",), True) == (
        one.max_latency_ms,
        one.objective,
        one.recipients,
        one.groups.matches("everyone"),
    )
    assert (5_000, 0.99, (), False) == (
        two.max_latency_ms,
        two.objective,
        two.recipients,
        two.groups.matches("everyone"),
    )


def test_a_mistake_in_defaults_is_told_once(tmp_path: Path) -> None:
    found = mistakes(tmp_path, document(slas=[SLA, {**SLA, "name": "b"}], defaults={"period": "fortnight"}))
    assert ["defaults.period"] == [line.split(": ")[1] for line in found]


def test_every_mistake_is_told_at_once_with_line_key_value_and_what_is_allowed(tmp_path: Path) -> None:
    text = """\
clusters:
  prod: {grups: [x]}
  "bad name": 3
window: 7m
slas:
  - name: a
    cluster: prdo
    groups: []
    max_latency: 30
    for: 10s
    objective: 100%
    time_zone: Europe/Berln
    maintenance: [{from: 2026-11-02, to: 2026-11-01}, {every: funday 1-2}, {to: 2026-11-01}]
    recipients: [x]
  - name: a
    group: "/(/"
    groups: [x]
    on_mis: fail
"""
    found = mistakes(tmp_path, text)
    expected = [
        "line 2: clusters.prod.grups: unknown key; did you mean 'groups'? allowed: connection, groups, topics",
        "line 3: clusters.bad name: 'bad name' is not allowed here; allowed: letters, digits, _ . -",
        "line 3: clusters.bad name: 3 is not a mapping",
        "line 4: window: '7m' does not divide 5m; allowed: ",
        "line 7: slas[0].cluster: unknown cluster 'prdo'; did you mean 'prod'? allowed: prod, bad name",
        "line 8: slas[0].groups: [] is empty; allowed: at least one",
        "line 9: slas[0].max_latency: 30 is not a duration; allowed: a whole number above 0 and a unit",
        "line 10: slas[0].for: '10s' is shorter than a window; allowed: 7m or longer",
        "line 11: slas[0].objective: '100%' is out of range; allowed: ",
        "line 12: slas[0].time_zone: 'Europe/Berln' is not a time zone; allowed: an IANA name",
        "line 13: slas[0].maintenance[0].to: '2026-11-01' is not after 'from'; allowed: a later time",
        "line 13: slas[0].maintenance[1].every: 'funday 1-2' is not a weekly span; allowed: ",
        "line 13: slas[0].maintenance[2]: not a maintenance; allowed: both 'from' and 'to', or 'every' alone",
        "line 14: slas[0].recipients[0]: 'x' is not allowed here; allowed: an e-mail address",
        "line 15: slas[1].name: 'a' names two SLAs; allowed: a name that no other SLA has",
        "line 15: slas[1]: required key 'cluster' is missing; allowed: prod, bad name",
        "line 15: slas[1]: required key 'max_latency' is missing; allowed: a duration",
        "line 16: slas[1].group: '/(/' is not a regex (missing ), unterminated subpattern at position 0)",
        "line 18: slas[1].on_mis: unknown key; did you mean 'on_miss'? allowed: ",
    ]
    missing = [line for line in expected if not any(told.startswith(line) for told in found)]
    assert [] == missing
    assert all("allowed:" in line or "is not a regex" in line for line in found), found


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"for": "40d"}, "slas[0].for: '40d' is longer than the SLA's period; allowed: 28d at most"),
        ({"max_latency": "0s"}, "slas[0].max_latency: '0s' is out of range"),
        ({"max_latency": "1.5m"}, "slas[0].max_latency: '1.5m' is not a duration"),
        ({"max_latency": "-5s"}, "slas[0].max_latency: '-5s' is not a duration"),
        ({"objective": 99.9}, "slas[0].objective: 99.9 is out of range"),
        (
            {"period": "fortnight"},
            "slas[0].period: 'fortnight' is not a period; allowed: day, week, month, quarter, year,",
        ),
        ({"period": "400d"}, "slas[0].period: '400d' is out of range; allowed: day"),
        ({"period": "1h"}, "slas[0].period: '1h' is not a period; allowed: day"),
        ({"period": "7d", "for": "8d"}, "slas[0].for: '8d' is longer than the SLA's period; allowed: 7d at most"),
        ({"objective_of": "messages"}, "slas[0].objective_of: 'messages' is not valid; allowed: 'time' or 'records'"),
        ({"burn_alerts": "all"}, "slas[0].burn_alerts: 'all' is not valid; allowed: 'none', 'ticket' or 'workbook'"),
        (
            {"burn_alerts": "workbook", "objective": "90%"},
            "slas[0].burn_alerts: its pair of 14.4x over 1h: burn_rate:"
            " 14.4 cannot be exceeded: all bad is 10; allowed: less than that",
        ),
        (
            {"burn_pairs": [{"burn_rate": 10, "long": "1h", "short": "5m"}], "objective": "90%"},
            "slas[0].burn_pairs[0].burn_rate: 10 cannot be exceeded: all bad is 10; allowed: less than that",
        ),
        (
            {"burn_alerts": "ticket", "period": "day"},
            "slas[0].burn_alerts: its pair of 1x over 3d: long: '3d' is longer"
            " than the SLA's period; allowed: 1d at most",
        ),
        (
            {"burn_pairs": [{"burn_rate": 2, "long": "1h", "short": "2h"}]},
            "slas[0].burn_pairs[0].short: '2h' is longer than long; allowed: 1h at most",
        ),
        (
            {"burn_pairs": [{"burn_rate": 2, "long": "1h", "short": "90s"}]},
            "slas[0].burn_pairs[0].short: '1m30s' is not whole windows; allowed: multiples of 1m",
        ),
        (
            {"burn_pairs": [{"burn_rate": 2, "long": "1h", "short": "5m", "min_bad_time": "2h"}]},
            "slas[0].burn_pairs[0].min_bad_time: '2h' is longer than long; allowed: 1h at most",
        ),
        (
            {"burn_pairs": [{"burn_rate": 2, "long": "1h", "short": "5m", "when": 1}]},
            "slas[0].burn_pairs[0].when: unknown key;",
        ),
        (
            {"burn_alerts": "ticket", "burn_pairs": [{"burn_rate": 2, "long": "1h", "short": "5m"}]},
            "slas[0].burn_pairs: given together with 'burn_alerts'; allowed: one of the two",
        ),
        ({"on_miss": "explode"}, "slas[0].on_miss: 'explode' is not valid; allowed: 'notify' or 'fail'"),
        ({"topic": "a", "topics": ["b"]}, "slas[0].topic: given together with 'topics'; allowed: one of the two"),
        ({"groups": [7]}, "slas[0].groups[0]: 7 is not text; allowed: text, in quotes"),
        ({"groups": "x"}, "slas[0].groups: 'x' is not a list; allowed: [first, second]"),
        ({"name": "two\nlines"}, "slas[0].name: 'two\\nlines' is not allowed here; allowed: one line"),
        (
            {"name": "orders/status"},
            "slas[0].name: 'orders/status' is an address of the API: it ends in /status; allowed: any other end",
        ),
        ({"name": "eu/../orders"}, "slas[0].name: 'eu/../orders' is not a name that its page's address can hold;"),
        (
            {"name": "/orders"},
            "slas[0].name: '/orders' is not a name that its page's address can hold; allowed: between",
        ),
        ({"name": "\ud800x"}, "slas[0].name: holds '\\ud800', half a character; allowed: whole characters"),
        ({"team": "x\udfff"}, "slas[0].team: holds '\\udfff', half a character; allowed: whole characters"),
        ({"description": "a \ud83d b"}, "slas[0].description: holds '\\ud83d', half a character; allowed: whole"),
        ({"team": "two\nlines"}, "slas[0].team: 'two\\nlines' is not allowed here; allowed: one line"),
        ({"team": "line end\n"}, "slas[0].team: 'line end\\n' is not allowed here; allowed: one line"),
        ({"team": " blanks "}, "slas[0].team: ' blanks ' is not allowed here; allowed: one line"),
        ({"team": "."}, "slas[0].team: '.' is not a name that its page's address can hold; allowed: between slashes"),
        ({"notifiers": [{"path": "nodots"}]}, "slas[0].notifiers[0].path: 'nodots' is not allowed here"),
        ({"notifiers": [{"kwargs": {}}]}, "slas[0].notifiers[0].path: required key is missing"),
    ],
)
def test_a_wrong_value_of_an_sla_is_named(tmp_path: Path, keys: dict[str, Any], told: str) -> None:
    (found,) = mistakes(tmp_path, with_sla(**keys))
    assert told == found.split(": ", 1)[1][: len(told)]


def test_an_sla_on_a_group_that_its_cluster_does_not_select_is_refused(tmp_path: Path) -> None:
    (found,) = mistakes(tmp_path, document(clusters={"prod": {"groups": ["orders-*"]}}))
    assert "slas[0].groups: 'payments-service' is not selected by clusters.prod.groups" in found


@pytest.mark.parametrize(
    "slack", [{"password": "hunter2"}, {"kwargs": {"api_key": "hunter2"}}, {"kwargs": {"url": "https://u:hunter2@x"}}]
)
def test_a_secret_is_refused_with_its_cure_and_not_repeated(tmp_path: Path, slack: dict[str, Any]) -> None:
    (found,) = mistakes(tmp_path, with_sla(notifiers=[{"path": "a.b", **slack}]))
    assert "put it into an Airflow connection and name its id here" in found and "hunter2" not in found


def test_a_template_or_a_connection_id_is_no_secret(tmp_path: Path) -> None:
    kwargs = {"token": "{{ conn.slack.password }}", "token_conn_id": "slack"}
    assert 1 == len(load(tmp_path, with_sla(notifiers=[{"path": "a.b", "kwargs": kwargs}])).slas)


def test_a_long_text_is_searched_for_a_login_in_one_pass(tmp_path: Path) -> None:
    text = "kafka://" + 300_000 * "a:"
    assert text == load(tmp_path, with_sla(description=text)).slas[0].description


def test_a_login_inside_a_connection_address_is_hidden(tmp_path: Path) -> None:
    found = mistakes(tmp_path, document(clusters={"prod": {"connection": "kafka://u:hunter2@host:9092"}}))
    assert "hunter2" not in "\n".join(found)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("clusters: {prod: {}\nslas: [", "line 2: not YAML: "),
        ("clusters:\n\tprod: {}\n", "line 2: not YAML: found character '\\t'"),
        ("clusters: {prod: {}}\nwindow: 1m\nwindow: 30s\n", "line 3: window: the key is given twice; keep one"),
        (
            "clusters:\n  prod:\n    groups:\n    - !x y\n",
            "line 4: clusters.prod.groups[0]: tag '!x' is not allowed here",
        ),
        ("clusters: &a {prod: *a}", "line 1: clusters.prod: the alias contains itself"),
        ("", "line 1: the file holds no mapping; allowed: clusters, slas"),
        (b"\xff\xfe\x00", "line 1: not YAML in UTF-8"),
        ("[" * 5000, "line 1: n"),
    ],
)
def test_a_file_that_is_not_good_yaml_says_where(tmp_path: Path, text: str | bytes, told: str) -> None:
    assert told == mistakes(tmp_path, text)[0][: len(told)]


def test_words_and_times_stay_what_they_look_like(tmp_path: Path) -> None:
    text = "clusters: {prod: {groups: [on, no, 12:30, 2026-01-01, 1e]}}"
    groups = load(tmp_path, text).cluster("prod").groups
    assert [] == [name for name in ("on", "no", "12:30", "2026-01-01", "1e") if not groups.matches(name)]


def test_anchors_and_merge_keys_work(tmp_path: Path) -> None:
    text = """\
clusters: {prod: {}}
slas:
  - &first {name: a, group: g, max_latency: 5s, for: 1m}
  - {<<: *first, name: b, for: 2m}
"""
    assert [("a", 60_000), ("b", 120_000)] == [(sla.name, sla.for_ms) for sla in load(tmp_path, text).slas]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"cannot read the configuration .*nowhere.yml: No such file"):
        load_settings(tmp_path / "nowhere.yml")


def test_an_unknown_name_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    settings = load(tmp_path, document())
    with pytest.raises(SettingsError, match="no cluster 'prd'; did you mean 'prod'\\? it has: prod"):
        settings.cluster("prd")
    with pytest.raises(SettingsError, match="no SLA 'x'; it has: payments"):
        settings.sla("x")


def test_of_many_known_names_the_nearest_are_told_and_how_many_there_are(tmp_path: Path) -> None:
    names = [f"{topic} within {limit}" for topic in ("orders", "billing.alerts-v2") for limit in range(10, 40)]
    slas = [{**SLA, "name": name} for name in names]
    settings = load(tmp_path, document(slas=slas))
    with pytest.raises(SettingsError) as caught:
        settings.sla("order within 12")
    near = "'orders within 12' or 'orders within 32' or 'orders within 31'"
    assert str(caught.value) == (
        f"the configuration has no SLA 'order within 12'; did you mean {near}? it has: 60 names"
    )
    (found,) = mistakes(tmp_path, document(slas=slas, digests=[{"name": "a", "slas": ["nothing like it"]}]))
    assert found.endswith("digests[0].slas[0]: unknown SLA 'nothing like it'; allowed: 60 names")


FULL = (ROOT / "dags" / "kafka_sla.yml").read_text("utf-8")
ODD = [
    None,
    True,
    -1,
    0,
    1.5,
    1e300,
    "",
    " ",
    "\x00",
    "*",
    "!",
    "//",
    "/[/",
    "30s",
    "9" * 400,
    "Europe",
    "../etc",
    "nan",
    "2026-02-30",
    "9999-12-31T23:59:59-23:59",
    "day 00:00-24:00",
    [],
    {},
    [[]],
    {"": ""},
    [None],
    {"from": 1},
]


def test_no_mutation_gives_anything_but_settings_or_a_settings_error(tmp_path: Path) -> None:
    dice = random.Random(7)
    for _ in range(1_000):
        values = plain(FULL)
        for _ in range(dice.randint(1, 4)):
            mutate(values, dice)
        try:
            assert isinstance(load(tmp_path, values), Settings)
        except SettingsError as error:
            head, *told = str(error).splitlines()
            assert " has " in head
            assert [line for line in told if not re.fullmatch(r"  line \d+: .+", line)] == []


def test_no_broken_text_gives_anything_but_settings_or_a_settings_error(tmp_path: Path) -> None:
    dice = random.Random(11)
    for _ in range(200):
        at, length = dice.randrange(len(FULL)), dice.choice([0, 1, 3, 40])
        noise = "".join(dice.choice("{}[]:,-!&*?|>'\"%@`\t\n #<~=09é\x00") for _ in range(dice.randint(0, 5)))
        try:
            assert isinstance(load(tmp_path, FULL[:at] + noise + FULL[at + length :]), Settings)
        except SettingsError as error:
            assert " has " in str(error).splitlines()[0]


def mutate(values: Any, dice: random.Random) -> None:
    """Change, drop, add or rename one random place of a document."""
    while True:
        keys = list(values) if isinstance(values, dict) else list(range(len(values)))
        if not keys:
            return
        key = dice.choice(keys)
        if isinstance(values[key], dict | list) and values[key] and dice.random() < 0.8:
            values = values[key]
            continue
        break
    match dice.randint(0, 3):
        case 0:
            values.pop(key)
        case 1 if isinstance(values, dict):
            values[dice.choice(["x", "password", "from", "group", "1", ""])] = dice.choice(ODD)
        case 2 if isinstance(values, dict):
            values[str(key) + "s"] = values.pop(key)
        case _:
            values[key] = dice.choice(ODD)


@pytest.mark.parametrize(
    ("notifier", "each_miss"),
    [
        ({"kwargs": {"text": "{{ message }}"}}, False),
        ({"kwargs": {"text": "{% for miss in misses %}{{ miss.sla }}{% endfor %}"}}, True),
        ({"kwargs": {"text": "{% for m in misses %}{{ m.sla }}{% endfor %}"}}, True),
        ({"kwargs": {"blocks": [{"text": "{{ misses | length }} of {{ kind }}"}]}}, False),
        ({"kwargs": {"text": "{{ message }}", "dedup_key": "{{ miss.id }}"}}, True),
        ({"kwargs": {"channel": "#misses and message"}}, True),
        ({"kwargs": {"dedup_key": "{{ miss.id }}"}, "each_miss": False}, False),
        ({"kwargs": {"text": "{{ message }}"}, "each_miss": True}, True),
    ],
)
def test_a_notifier_is_called_for_each_miss_unless_its_arguments_can_report_several(
    tmp_path: Path, notifier: dict[str, Any], each_miss: bool
) -> None:
    (sla,) = load(tmp_path, with_sla(notifiers=[{"path": "company.Chat", **notifier}])).slas
    assert [found.each_miss for found in sla.notifiers] == [each_miss]


def test_alerts_on_burn_rates_are_off_and_their_floor_is_what_the_objective_counts(tmp_path: Path) -> None:
    slas = [
        {"name": "old", "groups": ["a"], "max_latency": "30s"},
        {"name": "slow", "groups": ["a"], "max_latency": "30s", "for": "3m", "burn_alerts": "ticket", "period": "4w"},
        {
            "name": "records",
            "groups": ["a"],
            "max_latency": "30s",
            "objective_of": "records",
            "burn_alerts": "workbook",
        },
        {
            "name": "own",
            "groups": ["a"],
            "max_latency": "30s",
            "burn_pairs": [{"burn_rate": 3, "long": "1d", "short": "2h", "min_bad_time": "10m"}],
        },
    ]
    path = tmp_path / "kafka_sla.yml"
    path.write_text(json.dumps({"clusters": {"prod": {}}, "slas": slas}))

    old, slow, records, own = load_settings(path).slas

    assert (old.burn_pairs, old.period, old.objective_of) == ((), "month", "time")
    assert slow.burn_pairs == (BurnPair(1.0, 259_200_000, 21_600_000, "ticket", 180_000),)
    assert slow.period == "28d"
    assert [(p.burn_rate, p.severity, p.min_bad) for p in records.burn_pairs] == [
        (14.4, "page", 10),
        (6.0, "page", 10),
        (1.0, "ticket", 10),
    ]
    assert own.burn_pairs == (BurnPair(3.0, 86_400_000, 7_200_000, "ticket", 600_000),)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("interval: 7m", "'7m' cannot be scheduled with windows of 1m; allowed: 1m, 2m, 5m, 10m, 15m"),
        ("window: 5m\ninterval: 2m", "'2m' cannot be scheduled with windows of 5m; allowed: 5m, 10m, 15m"),
    ],
)
def test_an_interval_that_cannot_be_scheduled_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "kafka_sla.yml"
    path.write_text(f"clusters: {{prod: {{}}}}\n{text}\n")
    with pytest.raises(SettingsError, match=re.escape(f"interval: {problem}")):
        load_settings(path)


def test_an_interval_is_five_minutes_unless_the_file_says_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "kafka_sla.yml"
    for text, interval_ms in (("", 300_000), ("interval: 1m\n", 60_000)):
        path.write_text(f"clusters: {{prod: {{}}}}\n{text}")
        assert load_settings(path).interval_ms == interval_ms
