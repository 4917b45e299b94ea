"""# kafka_sla: did Kafka's consumers meet their SLAs in the last minutes?

**Makes** every metric table, `sla_windows` and `sla_misses` for its interval (`interval` in the configuration), and one
mail when a miss opens and one when it recovers. **Read by** the pages, reports, `kafka-sla export`, and the recipients
of the mails.

**Each run**: `plan` decides what to measure, `snapshot` reads each cluster, `prepare` lists the files, `measure` is one
Spark application for all metrics, `validate` stops a bad load, `publish` shows the whole interval at once, `evaluate`
judges each SLA, `notify` sends the mails, `announce` emits
events for other DAGs, and `watcher` is red when anything above is.

**When a task is red**

- `plan`: the configuration, a connection or the form is wrong. Its log says what is, and what is allowed.
- `snapshot` of a cluster: it did not answer or refused; the others went on. `kafka-sla check` finds the cause.
- `measure`: Spark failed and nothing was published. Its log ends with Spark's error; long ranges need `driver_memory`.
- `validate`: a critical expectation failed, and the last published data stays. Look at the log, then at
  `kafka-sla export validation_results` and `kafka-sla export quarantine`.
- `evaluate` of an SLA: **the SLA is missed**, and it says `on_miss: fail`. Read the mail, or run `kafka-sla misses`.
- `notify`: the mail server refused. Fix that and clear the task; what was sent is not sent again.

**Run it again** as often as you like: clear a run, or trigger one with *From* and *To*. An interval is replaced as a
whole, and a miss is mailed once. `plan` reads the configuration for the whole run: after an edit, clear the run from
`plan` on. **History**: `airflow backfill create --dag-id kafka_sla_history ...`, a day per run.
"""

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG

from kafka_sla.airflow_versions import CronDataIntervalTimetable
from kafka_sla.tasks.dag_config import configuration_path, menu
from kafka_sla.tasks.deadlines import late_alert
from kafka_sla.tasks.flow import DEFAULTS, sla_flow
from kafka_sla.tasks.trigger_form import form, runbook
from kafka_sla.text.durations import duration_text

MENU = menu(configuration_path(__file__))

with DAG(
    dag_id="kafka_sla",
    dag_display_name="Kafka SLAs",
    description=f"Latency of Kafka consumers against their SLAs, every {duration_text(MENU.interval_ms)}",
    schedule=CronDataIntervalTimetable(f"*/{MENU.interval_ms // 60_000} * * * *", timezone="UTC"),
    start_date=datetime(2020, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=3,
    deadline=late_alert(MENU.settings),
    default_args=DEFAULTS,
    params=form(MENU, sends_mail=True),
    doc_md=runbook(__doc__, MENU),
    tags=["kafka", "sla"],
):
    sla_flow(every=timedelta(milliseconds=MENU.interval_ms), watches=True)
