"""# kafka_sla_report: how did the SLAs do yesterday, last week, last month?

**Makes** the digests that the configuration lists under `digests`: a page each in the archive (`reports/` in the
warehouse), and a mail to their readers, at their hour in their time zone.

**Each run** finds the digests that fell due in its hour and makes them: one mapped task each, named after the digest.
Most runs find none and are skipped.

**Send one by hand**: trigger it and choose the digest, a day of the period, and who gets it. The default is a preview
for one address.

**When a task is red**: `find_due_digests`: the configuration or the form is wrong; its log says what is allowed.
`digest`: the mail server refused, or the store is down; it is retried, and whoever got the mail does not get it twice.
"""

from datetime import UTC, datetime

from airflow.sdk import DAG

from kafka_sla.airflow_versions import CronDataIntervalTimetable
from kafka_sla.tasks.dag_config import configuration_path, menu
from kafka_sla.tasks.digest_steps import digest, find_due_digests
from kafka_sla.tasks.flow import DEFAULTS
from kafka_sla.tasks.trigger_form import digest_form, runbook

MENU = menu(configuration_path(__file__))

with DAG(
    dag_id="kafka_sla_report",
    dag_display_name="Kafka SLAs: digests",
    description="Daily, weekly and monthly SLA reports by mail",
    schedule=CronDataIntervalTimetable("0 * * * *", timezone="UTC"),
    start_date=datetime(2020, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=2,
    default_args=DEFAULTS,
    params=digest_form(MENU),
    doc_md=runbook(__doc__, MENU),
    tags=["kafka", "sla"],
):
    digest.expand(wanted=find_due_digests())
