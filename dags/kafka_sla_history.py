"""# kafka_sla_history: the same figures for whole days, at night and for backfills

**Makes** the same tables as `kafka_sla`, a day per run, from what was observed then and what Kafka still remembers
(`__consumer_offsets` and offsets by timestamp). It takes no snapshot of now, **mails nobody** and fails on no miss. At
night it replaces the day's 288 small intervals by one, with commits that arrived late, and `maintain_tables` cleans up
the table store.

**Backfill**: `airflow backfill create --dag-id kafka_sla_history --from-date 2026-11-01 --to-date 2026-11-07`, twice if
you like: the tables come out the same. Airflow's own database must be Postgres or MySQL for that, not SQLite.

**Red** means the same as in `kafka_sla`. A red `maintain_tables` costs disk space, not figures: clear it.
"""

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG

from kafka_sla.airflow_versions import CronDataIntervalTimetable
from kafka_sla.tasks.dag_config import configuration_path, menu
from kafka_sla.tasks.flow import DEFAULTS, sla_flow
from kafka_sla.tasks.trigger_form import form, runbook

MENU = menu(configuration_path(__file__))

with DAG(
    dag_id="kafka_sla_history",
    dag_display_name="Kafka SLAs: history",
    description="The same flow a day per run: backfills, and each day again at night",
    schedule=CronDataIntervalTimetable("0 0 * * *", timezone="UTC"),
    start_date=datetime(2020, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=2,
    default_args=DEFAULTS,
    params=form(MENU, sends_mail=False),
    doc_md=runbook(__doc__, MENU),
    tags=["kafka", "sla"],
):
    sla_flow(every=timedelta(days=1), watches=False)
