"""A log of commits that was compacted: the first commit that is kept of a group says that it may not be its first."""

from __future__ import annotations

from demo.broker import Cluster
from tests.kafka_sla.sources.kafka.commit_log_compaction import Compaction
from tests.kafka_sla.sources.kafka.test_consumer_offsets import decoded
from tests.kafka_sla.sources.kafka.traffic import commit, look, ms, produce, this_minute, topic


def test_a_group_whose_earlier_commits_were_compacted_away_is_marked_and_noted(kafka_classes: None) -> None:
    with Cluster(properties={"log.cleaner.backoff.ms": "200"}) as broker:
        name, compaction = topic(broker), Compaction(broker.client())
        compaction.hold()
        produce(broker, name, [ms(1), ms(2), ms(3), ms(4)])
        for offset in (1, 2, 3):
            commit(broker, f"g-{name}", name, offset)
        whole = look(broker, this_minute(), name, groups=f"g-{name}")
        compaction.compact_all()
        commit(broker, f"g-{name}", name, 4)
        left = look(broker, this_minute(), name, groups=f"g-{name}")

    assert [offset for *_, offset in decoded(whole)] == [1, 2, 3]
    assert whole.commits["source"].to_pylist() == ["commit_log"] * 3
    assert not any("compacted" in note for note in whole.notes)
    assert [offset for *_, offset in decoded(left)] == [3, 4]
    assert left.commits["source"].to_pylist() == ["compacted_commit_log", "commit_log"]
    assert any("what 1 readers committed before" in note for note in left.notes)
