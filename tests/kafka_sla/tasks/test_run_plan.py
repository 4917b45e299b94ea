from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from kafka_sla.config.settings import Settings
from kafka_sla.errors import BadRequest, SettingsError
from kafka_sla.model.entities import Cluster, Interval, Patterns, Sla, SteadyState
from kafka_sla.tasks.run_plan import Frozen, Request, batches, is_live, plan


def at(clock: str, day: int = 21) -> datetime:
    return datetime.fromisoformat(f"2026-11-{day:02} {clock}").replace(tzinfo=UTC)


def sla(name: str, cluster: str) -> Sla:
    return Sla(name, cluster, Patterns(), Patterns(), 30_000, 300_000, 0.999, SteadyState(30_000))


EVERY = timedelta(minutes=5)
SETTINGS = Settings(
    clusters=(Cluster("eu", "kafka_eu"), Cluster("us", "kafka_us")),
    slas=(sla("orders", "eu"), sla("payments", "eu"), sla("clicks", "us")),
)
KEPT = Frozen(store="kafka_sla_store", configuration="c0ffee")
SCHEDULED = Request(every=EVERY, watches=True, run_after=at("10:05"), data_interval=Interval(at("10:00"), at("10:05")))
MANUAL = Request(every=EVERY, watches=True, run_after=at("10:07:30"))


def test_a_scheduled_run_measures_its_data_interval_for_everything() -> None:
    made = plan(SETTINGS, KEPT, SCHEDULED, at("10:05:02"))

    assert (made["start"], made["end"]) == ("2026-11-21T10:00:00+00:00", "2026-11-21T10:05:00+00:00")
    assert made["clusters"] == ["eu", "us"]
    assert made["slas"] == ["orders", "payments", "clicks"]
    assert made["notify"] and made["alarm"]


def test_a_manual_run_without_values_takes_the_last_complete_interval() -> None:
    made = plan(SETTINGS, KEPT, MANUAL, at("10:07:31"))

    assert (made["start"], made["end"]) == ("2026-11-21T10:00:00+00:00", "2026-11-21T10:05:00+00:00")


def test_the_form_wins_over_the_data_interval() -> None:
    asked = replace(SCHEDULED, start=at("08:00"), end=at("09:00"))

    assert plan(SETTINGS, KEPT, asked, at("10:05:02"))["start"] == "2026-11-21T08:00:00+00:00"


def test_times_of_the_form_without_an_offset_are_utc() -> None:
    asked = replace(MANUAL, start=at("08:00").replace(tzinfo=None), end=at("09:00").replace(tzinfo=None))

    assert plan(SETTINGS, KEPT, asked, at("10:07"))["end"] == "2026-11-21T09:00:00+00:00"


@pytest.mark.parametrize(
    ("start", "end", "cure"),
    [
        (at("08:00"), None, "To is empty; give both From and To"),
        (None, at("08:00"), "From is empty; give both From and To"),
        (at("09:00"), at("08:00"), "To (2026-11-21 08:00:00) must be after From (2026-11-21 09:00:00)"),
        (at("09:00"), at("11:00"), "in the future; the latest that can be measured is 2026-11-21 10:07:00 UTC"),
        (at("09:00:30"), at("10:00"), "give 2026-11-21 09:00:00 or 2026-11-21 09:01:00"),
        (at("00:00", day=1) - timedelta(days=30), at("00:00"), "airflow backfill create --dag-id kafka_sla_history"),
    ],
)
def test_a_bad_range_is_refused_with_what_to_ask_for(start: datetime | None, end: datetime | None, cure: str) -> None:
    with pytest.raises(BadRequest) as refused:
        plan(SETTINGS, KEPT, replace(MANUAL, start=start, end=end), at("10:07:31"))
    assert cure in str(refused.value)


def test_clusters_bring_all_their_slas_and_slas_bring_their_clusters() -> None:
    of_clusters = plan(SETTINGS, KEPT, replace(MANUAL, clusters=("us",)), at("10:07"))
    of_slas = plan(SETTINGS, KEPT, replace(MANUAL, slas=("payments",)), at("10:07"))

    assert (of_clusters["clusters"], of_clusters["slas"]) == (["us"], ["clicks"])
    assert (of_slas["clusters"], of_slas["slas"]) == (["eu"], ["payments"])


def test_an_sla_of_a_cluster_that_was_not_chosen_is_refused() -> None:
    with pytest.raises(BadRequest, match="'clicks' is about the cluster 'us'; choose that cluster too"):
        plan(SETTINGS, KEPT, replace(MANUAL, clusters=("eu",), slas=("clicks",)), at("10:07"))


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SettingsError, match="orders, payments, clicks"):
        plan(SETTINGS, KEPT, replace(MANUAL, slas=("order",)), at("10:07"))


def test_a_snapshot_of_now_belongs_only_to_an_interval_that_has_just_ended() -> None:
    made = plan(SETTINGS, KEPT, SCHEDULED, at("10:05:02"))

    assert is_live(made, at("10:09:59"))
    assert not is_live(made, at("10:10"))


def test_a_backfill_takes_no_snapshot_tells_nobody_and_alarms_nobody_even_when_asked_to() -> None:
    made = plan(SETTINGS, KEPT, replace(SCHEDULED, backfill=True, tell="always"), at("10:05:02"))

    assert not is_live(made, at("10:05:02"))
    assert not made["notify"]
    assert not made["alarm"]


def test_history_takes_no_snapshot_and_tells_nobody() -> None:
    made = plan(SETTINGS, KEPT, replace(SCHEDULED, watches=False), at("10:05:02"))

    assert (made["live_until"], made["notify"], made["alarm"]) == (None, False, False)


def test_a_late_run_does_not_tell_old_news() -> None:
    assert plan(SETTINGS, KEPT, SCHEDULED, at("11:04"))["notify"]
    assert not plan(SETTINGS, KEPT, SCHEDULED, at("11:05"))["notify"]


def test_a_past_range_is_told_only_when_the_form_says_always() -> None:
    past = replace(MANUAL, start=at("10:00"), end=at("10:05"))

    assert not plan(SETTINGS, KEPT, past, at("10:07"))["notify"]
    assert plan(SETTINGS, KEPT, replace(past, tell="always"), at("10:07"))["notify"]
    assert not plan(SETTINGS, KEPT, replace(MANUAL, tell="never"), at("10:07"))["notify"]


def test_a_quarter_of_what_is_stored_is_one_run_and_asks_kafka_for_nothing() -> None:
    now = at("10:07:31")
    asked = replace(MANUAL, start=at("10:00") - timedelta(days=92), end=at("10:00"), stored=True)

    made = plan(SETTINGS, KEPT, asked, now)

    assert (made["stored"], made["live_until"]) == (True, None)
    with pytest.raises(BadRequest, match="more than 31 days"):
        plan(SETTINGS, KEPT, replace(asked, stored=False), now)


def test_the_backfill_offered_for_too_long_a_range_ends_with_its_last_day() -> None:
    midnight = at("00:00")
    asked = replace(MANUAL, start=midnight - timedelta(days=92), end=midnight)

    with pytest.raises(BadRequest, match=f"--to-date {midnight - timedelta(days=1):%F}$"):
        plan(SETTINGS, KEPT, asked, at("10:07:31"))


def test_few_slas_have_a_task_each_and_many_share_one_by_team() -> None:
    def of_team(name: str, team: str) -> Sla:
        return replace(sla(name, "eu"), team=team)

    few = [of_team("payments", "billing"), of_team("parcels", "logistics")]
    many = [of_team(f"alerts {n}", "billing") for n in range(60)] + [
        of_team("parcels", "logistics"),
        of_team("search", ""),
    ]

    assert [batch["label"] for batch in batches(few)] == ["payments", "parcels"]
    assert [(batch["label"], len(batch["slas"])) for batch in batches(many)] == [
        ("no team", 1),
        ("billing (1 of 2)", 50),
        ("billing (2 of 2)", 10),
        ("logistics", 1),
    ]
