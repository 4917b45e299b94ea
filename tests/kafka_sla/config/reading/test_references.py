"""`${env:…}` and `${var:…}` in a configuration: read as if the variable's value stood there, refused without one."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest
import yaml

from kafka_sla.config.settings import Settings, json_schema, load_settings
from kafka_sla.errors import SettingsError

CONFIG = """\
offset_lookups:
  max_per_hour: ${env:LOOKUPS}
clusters:
  eu-west.payments: {connection: "kafka-${env:DEPLOYMENT}-v2"}
slas:
  - name: alerts within ${var:alert.limit}
    group: billing.alerts-authorised
    max_latency: ${var:alert.limit}
    for: ${env:FOR_HOW_LONG}
    objective: ${env:OBJECTIVE}
    recipients: ["${env:TEAM}@example.com"]
    team: '${env:LOOKUPS}'
"""
LIMITS = {"alert.limit": "45s"}
ENVIRONMENT = {"DEPLOYMENT": "prod", "FOR_HOW_LONG": "", "OBJECTIVE": "99.5%", "LOOKUPS": "12", "TEAM": "payments"}


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    return written(tmp_path, CONFIG)


def written(folder: Path, text: str) -> Path:
    (folder / "kafka_sla.yml").write_text(text)
    return folder / "kafka_sla.yml"


def read(path: Path) -> Settings:
    return load_settings(path, LIMITS.get)


def test_values_are_read_as_if_the_variables_values_stood_there(path: Path) -> None:
    settings = read(path)
    (sla,) = settings.slas

    assert settings.clusters[0].connection == "kafka-prod-v2"
    assert (sla.name, sla.max_latency_ms, sla.objective) == ("alerts within 45s", 45_000, 0.995)
    assert sla.for_ms == 300_000, "an empty one is not given"
    assert settings.offset_lookups.max_per_hour == 12, "without quotes it is a number"
    assert (sla.team, sla.recipients) == ("12", ("payments@example.com",)), "in quotes it is text"


def test_files_of_teams_may_refer_to_them_too(path: Path) -> None:
    (path.parent / "slas.d").mkdir()
    text = 'slas: [{name: "${env:TEAM}", group: "${env:TEAM}-service.v2", max_latency: "${var:alert.limit}"}]'
    (path.parent / "slas.d" / "payments.yml").write_text(text)

    assert read(path).slas[1].groups.include == ("payments\\-service\\.v2",)


def test_without_airflow_its_variables_are_those_of_the_environment(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_VAR_ALERT.LIMIT", "90s")

    assert load_settings(path).slas[0].max_latency_ms == 90_000


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("${env:NOT_SET}", "${env:NOT_SET}: the environment variable NOT_SET is not set here"),
        ("a ${var:a b} c", "'${var:a b}' names no variable; allowed: ${env:NAME}, ${var:NAME}"),
        ("${var:nowhere}", "${var:nowhere}: there is no Airflow variable nowhere here; add it under Admin > Variables"),
        ("${env:TEAM", "'${env:TEAM' names no variable"),
        ("${env:}", "'${env:}' names no variable"),
        ("${env:SLACK_TOKEN}", "${env:SLACK_TOKEN} holds a secret; put it into an Airflow connection"),
        ("${var:db_password}", "${var:db_password} holds a secret"),
        ("${env:AIRFLOW_CONN_KAFKA}", "${env:AIRFLOW_CONN_KAFKA} holds a secret"),
        ("${env:AIRFLOW__CORE__FERNET}", "${env:AIRFLOW__CORE__FERNET} holds a secret"),
    ],
)
def test_what_cannot_be_read_is_an_error_with_its_line_and_shows_no_value(
    path: Path, monkeypatch: pytest.MonkeyPatch, value: str, said: str
) -> None:
    for name in ("SLACK_TOKEN", "AIRFLOW_CONN_KAFKA", "AIRFLOW__CORE__FERNET"):
        monkeypatch.setenv(name, "hunter-22")
    path.write_text(CONFIG + f'    description: "{value}"\n')

    with pytest.raises(SettingsError) as caught:
        read(path)

    assert f"line 13: slas[0].description: {said}" in str(caught.value)
    assert "1 error" in str(caught.value) and "hunter-22" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('slas: [{name: a, group: "${env:TEAM", max_latency: 30s}]', "slas[0].group"),
        ('slas: [{name: "a ${var:gone}", group: g.v1, max_latency: 30s}]', "slas[0].name"),
        ('slas: [{name: a, groups: [g.v1, "${var:gone}"], max_latency: 30s}]', "slas[0].groups[1]"),
        ("slas: [{name: a, group: g.v1, max_latency: '${var:gone}', objective: 99%}]", "slas[0].max_latency"),
        ("slas: [{name: a, group: g.v1, max_latency: 30s, cluster: '${var:gone}'}]", "slas[0].cluster"),
        ("slas: [{name: a, group: g.v1, max_latency: 30s}]\ndefaults: {cluster: '${var:gone}'}", "defaults.cluster"),
        ("offset_lookups: {max_per_hour: '${var:gone}'}", "offset_lookups.max_per_hour"),
        ("window: ${var:gone}", "window"),
    ],
)
def test_a_value_that_cannot_be_read_has_no_other_mistake(tmp_path: Path, text: str, where: str) -> None:
    (found,) = told(written(tmp_path, f"clusters: {{eu: {{}}}}\n{text}\n"))
    assert f" {where}: " in found and "${" in found


def test_a_value_that_cannot_be_read_has_no_other_mistake_where_keys_are_merged(tmp_path: Path) -> None:
    slas = "slas:\n- &a {name: a, group: g.v1, max_latency: '${var:gone}'}\n- {<<: *a, name: b}"
    found = told(written(tmp_path, f"clusters: {{eu: {{}}}}\n{slas}"))
    assert [2, 2] == [line.count("${var:gone}") + line.count("no Airflow variable gone") for line in found]


@pytest.mark.parametrize(
    "keys",
    [
        "slas: [{name: a, group: g.v1}]\ndefaults: {max_latency: '${var:gone}'}",
        "slas: [{name: a, group: g.v1, max_latency: '${var:gone}'}]",
    ],
)
def test_a_value_of_a_team_that_cannot_be_read_has_no_other_mistake(tmp_path: Path, keys: str) -> None:
    path = written(tmp_path, "clusters: {eu: {}}\nslas: [{name: first, group: g.v1, max_latency: 30s}]\n")
    (tmp_path / "slas.d").mkdir()
    (tmp_path / "slas.d" / "team.yml").write_text(keys)
    (found,) = told(path)
    assert "slas.d/team.yml, line " in found and "there is no Airflow variable gone here" in found


def test_what_else_is_wrong_is_told_beside_a_value_that_cannot_be_read(tmp_path: Path) -> None:
    sla = "{name: a, group: '${var:gone}', max_latency: 30, cluster: us}"
    text = f"clusters: {{eu: {{}}}}\nslas: [{sla}]\ndefaults: {{max_latency: '${{var:gone}}'}}\n"
    found = [line.split(": ")[1] for line in told(written(tmp_path, text))]
    assert sorted(found) == ["defaults.max_latency", "slas[0].cluster", "slas[0].group", "slas[0].max_latency"]


def told(path: Path) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        read(path)
    return str(caught.value).splitlines()[1:]


def test_a_value_that_is_not_allowed_is_refused_whoever_gave_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OBJECTIVE", "often")
    monkeypatch.setenv("TEAM", "https://me:hunter-22@mail")

    with pytest.raises(SettingsError) as caught:
        read(path)

    assert "line 10: slas[0].objective: 'often'" in str(caught.value)
    assert "line 11: slas[0].recipients[0]: secrets do not belong in this file" in str(caught.value)
    assert "hunter-22" not in str(caught.value)


def test_other_braces_stay_what_they_are(tmp_path: Path) -> None:
    sla = "{name: alerts, group: billing.alerts, max_latency: 30s, team: '${TEAM} {env:TEAM} $env'}"

    assert read(written(tmp_path, f"clusters: {{eu: {{}}}}\nslas: [{sla}]")).slas[0].team == "${TEAM} {env:TEAM} $env"


def test_editors_take_references_wherever_a_value_may_stand(path: Path) -> None:
    jsonschema.validate(yaml.safe_load(path.read_text()), json_schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(yaml.safe_load(path.read_text().replace("${env:LOOKUPS}\n", "many\n")), json_schema())
