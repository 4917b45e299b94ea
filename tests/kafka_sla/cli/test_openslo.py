"""SLAs to OpenSLO documents and back: nothing is lost, and what does not fit is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kafka_sla.cli.main import main
from kafka_sla.config.settings import load_settings

CONFIG = """\
clusters: {prod: {connection: kafka_prod}, backup: {}}
defaults: {cluster: prod, recipients: [oncall@example.com], objective: 99.5%}
slas:
  - name: payments within 30 s
    group: billing.alerts-authorised-v2
    topic: billing.alerts
    max_latency: 30s
    for: 2m
    period: week
    time_zone: Europe/Berlin
    team: Payments
    description: Card payments are booked while the customer waits.
    when_uncertain: bad
    min_time_to_expiry: 2d
    steady_state: {grace_period: 1h}
    maintenance:
      - {from: 2026-11-01T02:00:00Z, to: 2026-11-01T04:00:00Z, reason: broker upgrade}
      - {every: "sunday 02:00-04:00", time_zone: Europe/Berlin, reason: weekly restart}
    runbook: https://wiki.example.com/payments
    notifiers: [{path: company.Chat, kwargs: {text: "{{ message }}"}}]
    webhooks: [{connection: pagerduty, format: pagerduty}]
  - {name: "Payments, within 30 s!", cluster: backup, groups: ["*", "!mailer-*"], max_latency: 250ms, period: day}
  - {name: clicks, group: sessionizer, topics: ["clicks-*"], max_latency: 1h30m, period: quarter, objective: 0.9}
  - {name: shipments, group: shipping.eu-v2, topic: shipments, max_latency: 1m, period: 4w, objective_of: records,
     time_zone: Asia/Kolkata, burn_alerts: workbook}
  - name: orders are billed
    chain: [{group: order-enricher, topic: orders.placed.v2}, {group: billing.invoices, topic: orders.enriched.v1}]
    max_latency: 1m
"""
SLO: dict[str, Any] = {
    "apiVersion": "openslo/v1",
    "kind": "SLO",
    "metadata": {"name": "orders"},
    "spec": {
        "service": "shop",
        "indicator": {
            "metadata": {"name": "orders-latency"},
            "spec": {
                "thresholdMetric": {
                    "metricSource": {"type": "kafka-sla", "spec": {"group": "orders-warehouse", "topic": "orders"}}
                }
            },
        },
        "timeWindow": [
            {
                "duration": "1M",
                "isRolling": False,
                "calendar": {"startTime": "2020-02-01 00:00:00", "timeZone": "America/New_York"},
            }
        ],
        "budgetingMethod": "Timeslices",
        "objectives": [{"op": "lte", "value": 300, "targetPercent": 99, "timeSliceTarget": 1, "timeSliceWindow": "1m"}],
    },
}
Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def a_folder_with_a_configuration(empty_folder: None) -> None:
    Path("kafka_sla.yml").write_text(CONFIG)


def changed(path: str, value: Any) -> dict[str, Any]:
    """The document with another value there; None: without it."""
    document: dict[str, Any] = yaml.safe_load(yaml.safe_dump(SLO))
    *parents, last = path.split(".")
    where: Any = document
    for key in parents:
        where = where[int(key) if key.isdigit() else key]
    where[last] = value
    return document


def imported(capsys: Captured, *documents: Any) -> tuple[int, list[dict[str, Any]], str]:
    """Exit code, SLAs and notes."""
    Path("slo.yml").write_text(yaml.safe_dump_all(documents))
    code = main(["import-slo", "slo.yml"])
    out, err = capsys.readouterr()
    return code, yaml.safe_load(out)["slas"], err


def test_slas_that_are_exported_and_imported_are_the_same(capsys: Captured) -> None:
    assert main(["export-slo", "--output", "slo.yml"]) == 0
    assert "payments within 30 s: kafka-sla/for is an annotation: only kafka-sla reads it" in capsys.readouterr().err
    documents = list(yaml.safe_load_all(Path("slo.yml").read_text()))
    code, slas, notes = imported(capsys, *documents)

    Path("again.yml").write_text(yaml.safe_dump({"clusters": yaml.safe_load(CONFIG)["clusters"], "slas": slas}))
    assert (code, notes) == (0, "")
    assert load_settings("again.yml").slas == load_settings("kafka_sla.yml").slas


def test_a_document_holds_threshold_objective_and_window_as_openslo_has_them(capsys: Captured) -> None:
    assert main(["export-slo", "--sla", "payments within 30 s"]) == 0
    (found,) = yaml.safe_load_all(capsys.readouterr().out)

    assert (found["apiVersion"], found["kind"], found["metadata"]["name"]) == (
        "openslo/v1",
        "SLO",
        "payments-within-30-s",
    )
    spec = found["spec"]
    assert spec["timeWindow"] == [
        {
            "duration": "1w",
            "isRolling": False,
            "calendar": {"startTime": "2024-01-01 00:00:00", "timeZone": "Europe/Berlin"},
        }
    ]
    assert (spec["budgetingMethod"], spec["objectives"]) == (
        "Timeslices",
        [
            {"op": "lte", "value": 30.0, "target": 0.995, "timeSliceTarget": 1, "timeSliceWindow": "1m"},
        ],
    )


def test_rolling_periods_and_objectives_of_records_have_their_openslo_words(capsys: Captured) -> None:
    assert main(["export-slo", "--sla", "shipments"]) == 0
    (found,) = yaml.safe_load_all(capsys.readouterr().out)

    assert found["spec"]["timeWindow"] == [{"duration": "28d", "isRolling": True}]
    assert (found["spec"]["budgetingMethod"], found["spec"]["objectives"]) == (
        "Occurrences",
        [{"op": "lte", "value": 60.0, "target": 0.995}],
    )


def test_two_slas_make_no_two_documents_of_one_name(capsys: Captured) -> None:
    main(["export-slo"])
    names = [document["metadata"]["name"] for document in yaml.safe_load_all(capsys.readouterr().out)]

    assert names == ["payments-within-30-s", "payments-within-30-s-2", "clicks", "shipments", "orders-are-billed"]


def test_a_document_of_another_tool_becomes_an_sla(capsys: Captured) -> None:
    code, slas, notes = imported(capsys, changed("spec.description", "What the warehouse packs."))

    assert (code, notes) == (0, "")
    assert slas == [
        {
            "name": "orders",
            "group": "orders-warehouse",
            "topic": "orders",
            "period": "month",
            "time_zone": "America/New_York",
            "max_latency": "5m",
            "objective": 0.99,
            "description": "What the warehouse packs.",
        }
    ]


@pytest.mark.parametrize(
    ("config", "more", "fitting"),
    [
        ("clusters: {prod: {}}\nwindow: 10s\n", [], "10s"),
        ("clusters: {prod: {}}\nwindow: 10s\n", ["--window", "30s"], "30s"),
        ("clusters: {}\n", ["--window", "30s"], "30s"),
        (None, [], "1m"),
    ],
    ids=["the configuration's", "asked for", "asked for, which needs no configuration", "the default"],
)
def test_windows_are_those_of_the_configuration_unless_others_are_asked_for(
    capsys: Captured, config: str | None, more: list[str], fitting: str
) -> None:
    Path("kafka_sla.yml").write_text(config) if config else Path("kafka_sla.yml").unlink()
    document = changed("spec.objectives.0.timeSliceWindow", fitting)
    Path("slo.yml").write_text(yaml.safe_dump(document))

    assert main(["import-slo", "slo.yml", *more]) == 0
    assert [sla["name"] for sla in yaml.safe_load(capsys.readouterr().out)["slas"]] == ["orders"]


def test_a_numeric_time_slice_window_is_minutes(capsys: Captured) -> None:
    assert imported(capsys, changed("spec.objectives.0.timeSliceWindow", 1))[0] == 0

    code, _, notes = imported(capsys, changed("spec.objectives.0.timeSliceWindow", 5))
    assert (code, "spec.objectives[0].timeSliceWindow: 5 minutes; `window` is 1m" in notes) == (1, True)


def test_documents_in_one_yaml_list_are_imported(capsys: Captured) -> None:
    code, slas, notes = imported(capsys, [SLO, changed("metadata.name", "others")], changed("metadata.name", "more"))

    assert (code, [sla["name"] for sla in slas], notes) == (0, ["orders", "others", "more"], "")


@pytest.mark.parametrize(("percent", "share"), [(99.9, "0.999"), (99.95, "0.9995"), (99.999, "0.99999"), (95, "0.95")])
def test_a_target_percent_keeps_its_decimal_digits(capsys: Captured, percent: float, share: str) -> None:
    Path("slo.yml").write_text(yaml.safe_dump(changed("spec.objectives.0.targetPercent", percent)))

    assert main(["import-slo", "slo.yml"]) == 0
    assert f"objective: {share}\n" in capsys.readouterr().out


def test_teams_after_the_first_are_left_out_by_name(capsys: Captured) -> None:
    code, (sla,), notes = imported(capsys, changed("metadata.labels", {"team": ["team-a", "team-b", "team-c"]}))

    assert (code, sla["team"]) == (0, "team-a")
    assert "orders: left out: metadata.labels.team: team-b, team-c; an SLA has one team" in notes


def test_an_unquoted_start_time_is_read_and_reported_as_it_is_written(capsys: Captured) -> None:
    text = yaml.safe_dump(SLO).replace("'2020-02-01 00:00:00'", "2020-02-01 00:00:00")
    Path("slo.yml").write_text(text)
    assert main(["import-slo", "slo.yml"]) == 0

    Path("slo.yml").write_text(text.replace("2020-02-01 00:00:00", "2022-01-01 12:00:00"))
    assert main(["import-slo", "slo.yml"]) == 1
    assert "spec.timeWindow: '2022-01-01 12:00:00' is no calendar month's first midnight" in capsys.readouterr().err


def test_all_problems_of_an_objective_are_named_together(capsys: Captured) -> None:
    foreign = {"op": "lt", "value": 30, "target": 1.0, "timeSliceTarget": 0.95, "timeSliceWindow": "5m"}
    code, _, notes = imported(capsys, changed("spec.objectives", [foreign]))

    assert code == 1
    for problem in ("target: 1.0;", "op: 'lt';", "timeSliceTarget: 0.95;", "timeSliceWindow: '5m';"):
        assert f"spec.objectives[0].{problem}" in notes


def test_a_configuration_that_is_named_must_be_there(capsys: Captured) -> None:
    Path("slo.yml").write_text(yaml.safe_dump(SLO))
    assert main(["import-slo", "slo.yml", "--config", "elsewhere.yml"]) == 2
    assert "cannot read the configuration elsewhere.yml" in capsys.readouterr().err


def test_an_indicator_may_stand_in_a_document_of_its_own(capsys: Captured) -> None:
    slo = changed("spec.indicatorRef", "orders-latency")
    sli = {"apiVersion": "openslo/v1", "kind": "SLI", **slo["spec"].pop("indicator")}

    assert [sla["group"] for sla in imported(capsys, sli, slo)[1]] == ["orders-warehouse"]
    assert "spec.indicatorRef: no SLI 'orders-latency' in the same file" in imported(capsys, slo)[2]


def test_each_of_several_objectives_is_an_sla(capsys: Captured) -> None:
    first = SLO["spec"]["objectives"][0]
    both = changed("spec.objectives", [first | {"displayName": "fast"}, first | {"value": 0.5}])

    assert [(sla["name"], sla["max_latency"]) for sla in imported(capsys, both)[1]] == [
        ("orders: fast", "5m"),
        ("orders: 2", "500ms"),
    ]


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        ("apiVersion", "openslo/v2alpha1", "openslo/v2alpha1 SLO; only openslo/v1"),
        (
            "spec.budgetingMethod",
            "RatioTimeslices",
            "spec.budgetingMethod: 'RatioTimeslices'; allowed: Timeslices, Occ",
        ),
        ("spec.timeWindow.0.isRolling", True, "spec.timeWindow: 1M is rolling"),
        ("spec.timeWindow.0.duration", "2w", "duration '2w'; allowed: 1d, 1w, 1M, 1Q, 1Y"),
        ("spec.timeWindow.0.calendar.startTime", "2020-02-01 12:30:00", "no calendar month's first midnight"),
        ("spec.timeWindow.0.calendar.timeZone", "Mars/Olympus", "time_zone"),
        ("spec.timeWindow", [], "spec.timeWindow: there are 0; exactly one"),
        ("spec.objectives", [], "spec.objectives: there are none"),
        ("spec.objectives", "many", "spec.objectives: not as OpenSLO has it"),
        ("spec", None, "spec: not as OpenSLO has it"),
        ("metadata.displayName", ["Orders"], "metadata.displayName: not as OpenSLO has it"),
        ("metadata.labels", ["team"], "metadata.labels: not as OpenSLO has it"),
        ("spec.indicator.spec.thresholdMetric.metricSource", "prometheus", "metricSource: not as OpenSLO has it"),
        ("spec.timeWindow.0.duration", 28, "spec.timeWindow[0].duration: not as OpenSLO has it"),
        ("spec.objectives.0.value", float("inf"), "spec.objectives[0].value: inf; a latency in seconds is needed"),
        ("spec.objectives.0.op", "gt", "op: 'gt'; only lte"),
        ("spec.objectives.0.value", "fast", "value: 'fast'; a latency in seconds"),
        ("spec.objectives.0.targetPercent", 100, "targetPercent: 100; a percentage above 0 and below 100"),
        ("spec.objectives.0.timeSliceTarget", 0.9, "timeSliceTarget: 0.9"),
        (
            "spec.objectives.0.timeSliceWindow",
            "5m",
            "timeSliceWindow: '5m'; `window` is 1m, unless --window says what the configuration will have",
        ),
        ("spec.indicator.spec", {"ratioMetric": {}}, "ratioMetric; only thresholdMetric"),
        ("spec.indicator.spec.thresholdMetric.metricSource.type", "Prometheus", "the metric source is 'Prometheus'"),
        ("spec.indicator.spec.thresholdMetric.metricSource.spec.query", "up", "metricSource.spec has query"),
    ],
)
def test_what_does_not_fit_is_named_and_not_imported(capsys: Captured, path: str, value: Any, problem: str) -> None:
    code, slas, notes = imported(capsys, changed(path, value), changed("metadata.name", "fits"))

    assert (code, [sla["name"] for sla in slas]) == (1, ["fits"])
    assert "orders: not imported: " in notes
    assert problem in notes


def test_what_an_sla_has_no_place_for_is_left_out_by_name(capsys: Captured) -> None:
    document = changed("spec.alertPolicies", [{"alertPolicyRef": "fast-burn"}])
    document["spec"]["attachments"] = []
    document["metadata"] |= {"annotations": {"owner": "shop"}, "labels": {"tier": ["1"], "team": ["Shop"]}}
    document["spec"]["objectives"][0]["compositeWeight"] = 2
    code, (sla,), notes = imported(capsys, document)

    assert (code, sla["team"]) == (0, "Shop")
    for path in (
        "spec.alertPolicies[0]: no AlertPolicy 'fast-burn' in the same file",
        "spec.attachments",
        "metadata.annotations.owner",
        "metadata.labels.tier",
        "spec.objectives[0].compositeWeight",
    ):
        assert f"orders: left out: {path}" in notes


@pytest.mark.parametrize("text", ["{", "- 1\n- 2", "kind: [SLO]", "kind: SLO\napiVersion: openslo/v1"])
def test_a_file_that_is_no_openslo_is_refused_in_words(capsys: Captured, text: str) -> None:
    Path("slo.yml").write_text(text)

    assert main(["import-slo", "slo.yml"]) in (1, 2)
    assert "Traceback" not in (error := capsys.readouterr().err)
    assert error


def condition(**changes: Any) -> dict[str, Any]:
    """Ten times over two hours, as a page, as a document of its own."""
    burn = {"kind": "burnrate", "op": "gt", "threshold": 10, "lookbackWindow": "2h", "alertAfter": "0m", **changes}
    spec = {"severity": burn.pop("severity", "page"), "condition": burn}
    return {"apiVersion": "openslo/v1", "kind": "AlertCondition", "metadata": {"name": "burns"}, "spec": spec}


def policy(*conditions: dict[str, Any], **spec: Any) -> dict[str, Any]:
    found = {"alertWhenBreaching": True, "alertWhenResolved": True, "conditions": list(conditions), **spec}
    return {"apiVersion": "openslo/v1", "kind": "AlertPolicy", "metadata": {"name": "fast-burn"}, "spec": found}


def test_alert_policies_become_pairs_of_burn_rates(capsys: Captured) -> None:
    inline = policy({**condition(threshold=1, lookbackWindow="3d", severity="ticket"), "metadata": {}})
    slo = changed("spec.alertPolicies", [{"alertPolicyRef": "fast-burn"}, inline])

    code, (sla,), notes = imported(capsys, slo, policy({"conditionRef": "burns"}), condition())

    assert (code, notes) == (0, "")
    assert sla["burn_pairs"] == [
        {"burn_rate": 10, "long": "2h", "short": "2h", "severity": "page", "min_bad_time": "1m"},
        {"burn_rate": 1, "long": "3d", "short": "3d", "severity": "ticket", "min_bad_time": "1m"},
    ]


def test_alert_policies_that_were_imported_are_exported_as_they_were(capsys: Captured) -> None:
    pair = {"burn_rate": 10, "long": "2h", "short": "2h", "severity": "page", "min_bad_time": "1m"}
    sla = {"name": "a", "group": "a.b-c", "max_latency": "1m", "burn_pairs": [pair]}
    Path("kafka_sla.yml").write_text(yaml.safe_dump({"clusters": {"prod": {}}, "slas": [sla]}))

    assert main(["export-slo"]) == 0
    (document,) = yaml.safe_load_all(capsys.readouterr().out)
    (exported,) = document["spec"]["alertPolicies"]
    (inside,) = exported["spec"]["conditions"]

    assert inside["spec"] == condition(threshold=10.0)["spec"]
    assert exported["spec"]["alertWhenBreaching"] is exported["spec"]["alertWhenResolved"] is True
    assert "annotations" not in document["metadata"]
    assert imported(capsys, document)[1][0]["burn_pairs"] == [pair]


def test_a_policy_of_late_records_begins_with_the_first(capsys: Captured) -> None:
    slo = changed("spec.alertPolicies", [policy(condition())])
    slo["spec"] |= {"budgetingMethod": "Occurrences"}

    _, (sla,), _ = imported(capsys, slo)

    assert sla["burn_pairs"][0]["min_late_records"] == 1


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        (
            {"alertAfter": "5m"},
            "alertAfter: 5m; a pair does not wait: its short time asks that the last 5m burn as fast",
        ),
        ({"op": "gte"}, "op: gte; a burn rate of exactly 10 does not alert"),
    ],
)
def test_a_condition_that_nearly_fits_is_imported_and_the_difference_named(
    capsys: Captured, changes: dict[str, Any], note: str
) -> None:
    code, (sla,), notes = imported(capsys, changed("spec.alertPolicies", [policy(condition(**changes))]))

    assert (code, sla["burn_pairs"][0]["short"]) == (0, changes.get("alertAfter", "2h"))
    assert f"orders: left out: spec.alertPolicies[0].conditions[0].{note}" in " ".join(notes.split())


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"kind": "budget"}, "kind 'budget'; allowed: burnrate"),
        ({"op": "lt"}, "op 'lt'; allowed: gt, gte"),
        ({"severity": "sev1"}, "severity 'sev1'; allowed: page, ticket"),
        ({"threshold": "fast"}, "threshold 'fast'; a burn rate is needed"),
        ({"threshold": 2_000}, "burn_rate: 2000 cannot be exceeded"),
        ({"lookbackWindow": "soon"}, "long 'soon' is no duration"),
        ({"lookbackWindow": "90s"}, "long: '1m30s' is not whole windows"),
        ({"lookbackWindow": "60d"}, "long: '60d' is longer than the SLA's period"),
    ],
)
def test_a_condition_that_does_not_fit_is_named_beside_those_that_do(
    capsys: Captured, changes: dict[str, Any], note: str
) -> None:
    slo = changed("spec.alertPolicies", [policy(condition(**changes), condition())])

    code, (sla,), notes = imported(capsys, slo)

    assert (code, len(sla["burn_pairs"])) == (0, 1)
    assert f"orders: left out: spec.alertPolicies[0].conditions[0]: {note}" in " ".join(notes.split())


def test_what_surrounds_conditions_is_named(capsys: Captured) -> None:
    named = policy({"conditionRef": "gone"}, alertWhenResolved=False, alertWhenNoData=True, notificationTargets=[{}])

    code, (sla,), notes = imported(capsys, changed("spec.alertPolicies", [named]))

    assert (code, "burn_pairs" in sla) == (0, False)
    for note in (
        "alertWhenResolved: false;",
        "alertWhenNoData: true;",
        "notificationTargets: ",
        "conditions[0]: no AlertCondition 'gone' in the same file",
    ):
        assert f"spec.alertPolicies[0].{note}" in " ".join(notes.split())


def test_a_policy_of_another_shape_is_refused_with_its_path(capsys: Captured) -> None:
    wrong = policy(condition())
    wrong["spec"]["conditions"] = {"burns": 1}

    code, slas, notes = imported(capsys, changed("spec.alertPolicies", [policy(condition(op=1))]), wrong, SLO)

    assert (code, [sla["name"] for sla in slas]) == (1, ["orders"])
    assert "fast-burn: not imported: spec.conditions: not as OpenSLO has it" in notes
    assert "orders: not imported: spec.alertPolicies[0].spec.conditions[0].spec.condition.op: not as" in notes


def test_an_annotation_of_an_export_goes_before_policies(capsys: Captured) -> None:
    slo = changed("spec.alertPolicies", [policy(condition())])
    slo["metadata"]["annotations"] = {"kafka-sla/burn_alerts": '"ticket"'}

    _, (sla,), notes = imported(capsys, slo)

    assert (sla["burn_alerts"], "burn_pairs" in sla) == ("ticket", False)
    assert "left out: spec.alertPolicies: an annotation says how the error budget alerts" in notes


SLOTH = {"version": "prometheus/v1", "service": "shop", "slos": [{"name": "requests-availability", "objective": 99.9}]}
POLICY = {
    "apiVersion": "openslo/v1",
    "kind": "AlertPolicy",
    "metadata": {"name": "fast-burn"},
    "spec": {"alertWhenBreaching": True, "conditions": [{"conditionRef": "burns"}]},
}


def test_documents_of_other_tools_and_parts_that_nothing_names_are_named_and_never_dropped(capsys: Captured) -> None:
    unused = {"apiVersion": "openslo/v1", "kind": "SLI", "metadata": {"name": "errors"}, "spec": {"ratioMetric": {}}}

    code, slas, notes = imported(capsys, None, SLOTH, POLICY, unused, SLO)

    assert (code, [sla["name"] for sla in slas]) == (1, ["orders"])
    assert (
        "document 1: not imported: it is prometheus/v1; only openslo/v1 SLO, SLI, AlertPolicy, AlertCondition"
        in " ".join(notes.split())
    )
    assert "fast-burn: not imported: no SLO of the file names this AlertPolicy" in " ".join(notes.split())
    assert "errors: not imported: no SLO of the file names this SLI" in " ".join(notes.split())


def test_what_was_not_imported_is_said_even_when_quiet(capsys: Captured) -> None:
    Path("slo.yml").write_text(yaml.safe_dump_all([SLOTH, changed("spec.attachments", [])]))
    assert main(["--quiet", "import-slo", "slo.yml"]) == 1
    unfit, left_out = capsys.readouterr().err.splitlines()
    assert unfit.startswith("kafka-sla: warning: document 1: not imported: it is prometheus/v1; ")
    assert left_out == "kafka-sla: warning: orders: left out: spec.attachments"
