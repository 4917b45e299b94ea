"""# kafka_sla_sample: where are the groups between two runs?

**Makes** facts: committed offsets and log ends of the clusters that say `sample_every` in the configuration, because
their commit log may not be read. They are polled every few seconds in the **triggerer**, in no worker's slot, and
landed each minute, in time for the run of `kafka_sla` that measures them. Without such a cluster its runs are skipped.

**Each run** samples from its start until the next run has begun. A triggerer that is killed costs the polls since the
last minute; another one goes on.

**When a task is red**: `find_sampled_clusters`: the configuration is wrong. `sample` of a cluster: its connection or
the store is not there, or no triggerer runs (`airflow triggerer`). A broker that does not answer costs polls and turns
nothing red; the log of the task names it. What is not sampled only widens bounds.
"""

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG

from kafka_sla.airflow_versions import CronDataIntervalTimetable
from kafka_sla.tasks.dag_config import configuration_path, menu
from kafka_sla.tasks.flow import DEFAULTS
from kafka_sla.tasks.sampling import SampleOperator, find_sampled_clusters
from kafka_sla.tasks.trigger_form import runbook

EVERY = timedelta(minutes=15)

with DAG(
    dag_id="kafka_sla_sample",
    dag_display_name="Kafka SLAs: samples",
    description="Committed offsets between runs, of clusters whose commit log may not be read",
    schedule=CronDataIntervalTimetable("*/15 * * * *", timezone="UTC"),
    start_date=datetime(2020, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=2,
    default_args=DEFAULTS,
    doc_md=runbook(__doc__, menu(configuration_path(__file__))),
    tags=["kafka", "sla"],
):
    SampleOperator.partial(task_id="sample", map_index_template="{{ task.sampled['cluster'] }}").expand(
        sampled=find_sampled_clusters(int(EVERY.total_seconds()))
    )
