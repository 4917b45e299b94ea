"""Which late runs were told, so that one outage is one mail however many runs it delays. Knows no mail, no Airflow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, insert, select

from kafka_sla.ledger.database import Database
from kafka_sla.ledger.schema import LATE_RUNS


class LateAlertLedger:
    """The late runs of the ledger."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def late_once(self, late: Mapping[str, datetime | None], end: datetime, send: Callable[[], None]) -> bool:
        """Call `send` when one of the late clusters is news for the run whose interval ends at `end`; was it called?

        `late`: clusters, and until when each is published. A cluster is no news while nothing of it was published
        since it was told late, nor within an hour: a pipeline that is slow day after day mails no more often.
        What fails is not recorded.
        """
        with self._database.writing("late runs") as connection:
            if not (news := [name for name, until in sorted(late.items()) if not _told(connection, name, until, end)]):
                return False
            connection.execute(insert(LATE_RUNS), _rows(news, end))
            send()
        return True


def _told(connection: Connection, cluster: str, published_until: datetime | None, end: datetime) -> bool:
    rows = select(LATE_RUNS.c.cluster).where(LATE_RUNS.c.cluster == cluster)
    if published_until:
        rows = rows.where(LATE_RUNS.c.interval_end > min(published_until, end - timedelta(hours=1)))
    return connection.execute(rows).first() is not None


def _rows(clusters: Sequence[str], end: datetime) -> list[dict[str, object]]:
    now = datetime.now(UTC)
    return [{"cluster": name, "interval_end": end, "reported_at": now} for name in clusters]
