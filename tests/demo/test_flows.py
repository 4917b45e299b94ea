from __future__ import annotations

from pathlib import Path

from demo.flows import FIRST_FIGURES_SECONDS, FLOWS, OPENED_SECONDS, RECOVERED_SECONDS, bursts, once, steady
from kafka_sla.config.settings import load_settings

ROOT = Path(__file__).resolve().parents[2]


def test_every_flow_has_its_sla_and_every_sla_its_flow() -> None:
    settings = load_settings(ROOT / "demo" / "kafka_sla.yml")

    promised = {
        sla.name: [(f.group, f.topic) for f in FLOWS if sla.groups.matches(f.group) and sla.topics.matches(f.topic)]
        for sla in settings.slas
    }

    assert promised.pop("orders: mirrored") == []  # its consumer is MirrorMaker
    assert {flow.sla: [(flow.group, flow.topic)] for flow in FLOWS} == promised


def test_exactly_the_slow_the_stopped_and_the_consumer_whose_records_expire_are_to_miss() -> None:
    assert {"payments: too slow", "shipments: stopped", "audit: expiring"} == {
        flow.sla for flow in FLOWS if flow.missed
    }


def test_the_bootstrapping_consumer_cannot_catch_up_while_it_is_watched() -> None:
    (flow,) = (flow for flow in FLOWS if flow.history)

    assert flow.reads_per_second is not None
    assert flow.history > 2 * flow.reads_per_second * RECOVERED_SECONDS


def test_the_first_figures_are_those_of_a_whole_window_at_least() -> None:
    window_seconds = load_settings(ROOT / "demo" / "kafka_sla.yml").window_ms / 1000

    assert 2 * window_seconds <= FIRST_FIGURES_SECONDS < OPENED_SECONDS - window_seconds


def test_the_stopped_consumer_misses_in_the_second_run_and_returns_in_the_third() -> None:
    (flow,) = (flow for flow in FLOWS if flow.absent and not flow.retention_seconds)
    assert flow.absent is not None
    settings = load_settings(ROOT / "demo" / "kafka_sla.yml")
    sla = settings.sla(flow.sla)
    stops, returns = flow.absent

    assert stops + (sla.max_latency_ms + sla.for_ms + 2 * settings.window_ms) / 1000 <= OPENED_SECONDS
    assert OPENED_SECONDS < returns < RECOVERED_SECONDS - 3 * settings.window_ms / 1000


def test_rates_say_how_many_records_are_due() -> None:
    assert [0, 5, 50] == [steady(5)(seconds) for seconds in (0, 1, 10)]
    assert [300, 300, 600] == [bursts(300, every=15)(seconds) for seconds in (0, 14.9, 15)]
    assert [3, 3] == [once(3)(seconds) for seconds in (0, 100)]
