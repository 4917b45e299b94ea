"""What the pictures show: days of judged promises, three runs of the DAG, a miss mail and a digest. Draws nothing."""

from __future__ import annotations

import base64
import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.message import EmailMessage
from pathlib import Path

import yaml

from demo.airflow_client import AirflowClient
from demo.airflow_server import airflow
from demo.mailbox import mailbox
from demo.postgres import postgres
from kafka_sla.config.settings import Settings, load_settings
from kafka_sla.config.store import Store
from kafka_sla.lake.lake import Lake
from kafka_sla.model.arrow_schemas import arrow_rows
from kafka_sla.model.entities import Connection, Interval
from kafka_sla.model.tables import COMMITTED_OFFSETS, LOG_OFFSETS
from kafka_sla.notifications.digest_delivery import day_asked, mail_digest
from kafka_sla.pipeline.steps import notify
from tests.kafka_sla.web.world import HOSTILE, build, whole_minute

LENGTH = timedelta(days=4)
TOLD = timedelta(minutes=3_175)
"""How long ago the world had a miss that is over: the digest is of that day."""
FIVE_MINUTES = timedelta(minutes=5)
RUNS = 3
DIGEST = """
digests: [{name: All SLAs, every: day, recipients: [platform@example.com]}]
base_url: https://airflow.example.com
"""


@dataclass(frozen=True)
class World:
    """A running Airflow, and mails as pages by name."""

    client: AirflowClient
    mails: Mapping[str, str]


@contextmanager
def world() -> Iterator[World]:
    """Made in a few minutes, gone at the end."""
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kafka_sla-pictures-")))
        end = whole_minute()
        config, store = build(home / "world", end, LENGTH)
        config.write_text(_without_the_hostile(config.read_text()) + DIGEST)
        mails = _mails(home, load_settings(config), store, end)
        runs = _facts(Lake(store), end - LENGTH)
        environment = {
            "KAFKA_SLA_CONFIG": str(config),
            "KAFKA_SLA_STORE": str(home / "world" / "store"),
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
            "AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE": "False",
        }
        databases = stack.enter_context(postgres(home / "postgres"))
        client = stack.enter_context(airflow(home / "airflow", databases["airflow"], environment))
        client.wait_until_healthy()
        client.unpause("kafka_sla")
        for interval in runs:
            _run(client, interval)
        yield World(client, mails)


def _without_the_hostile(configuration: str) -> str:
    """The world's promise whose name is an attack belongs into tests; the others get somebody to mail."""
    written = yaml.safe_load(configuration)
    written["slas"] = [sla for sla in written["slas"] if sla["name"] != HOSTILE]
    written["defaults"]["recipients"] = ["team@example.com"]
    return str(yaml.safe_dump(written, sort_keys=False))


def _mails(home: Path, settings: Settings, store: Store, end: datetime) -> dict[str, str]:
    """The mail of the open miss and the digest of a day, as a mail server received them."""
    extra = {"from_email": "sla@example.com", "disable_ssl": True, "disable_tls": True}
    with mailbox(home / "mail") as box:
        smtp = Connection("smtp_default", "127.0.0.1", box.port, extra=extra)
        hour = Interval(end - timedelta(hours=1), end)
        notify(settings, store, ["orders within 5 minutes"], hour, smtp, f"{settings.base_url}/dags/kafka_sla")
        (digest,) = settings.digests
        mail_digest(settings, store, digest.name, day_asked(digest, f"{end - TOLD:%F}", end), smtp)
        mails = box.mails()
    (opened,) = (mail for mail in mails if mail["X-Kafka-Sla-Miss"])
    told = mails[-1]
    return {"miss-mail": mail_page(opened), "digest": mail_page(told)}


def mail_page(mail: EmailMessage) -> str:
    """The HTML of a mail with its pictures inside, as mail programs show it."""
    body = mail.get_body(("html",))
    if body is None:
        raise ValueError(f"the mail {mail['Subject']!r} has no HTML")
    inline = {part["Content-ID"].strip(" <>"): part.get_content() for part in mail.walk() if part["Content-ID"]}
    return re.sub(
        r"cid:([^\"']+)",
        lambda found: f"data:image/png;base64,{base64.b64encode(inline[found[1]]).decode()}",
        body.get_content(),
    )


def _facts(lake: Lake, end: datetime) -> list[Interval]:
    """Looks at one partition and the commits of its reader, who stops for the last five minutes; the runs' times."""
    start = end - RUNS * FIVE_MINUTES
    at = [start + timedelta(seconds=s) for s in range(0, RUNS * 300 + 1, 10)]
    place = {"cluster": "prod", "topic": "payments", "partition": 0, "source": "exporter"}
    looks = [{**place, "at": t, "log_start_offset": 0, "log_end_offset": 500 * i} for i, t in enumerate(at)]
    reads = [
        {
            **place,
            "source": "commit_log",
            "group": "payments-service",
            "at": t + timedelta(seconds=2),
            "committed_offset": 500 * i,
        }
        for i, t in enumerate(at)
        if t < end - FIVE_MINUTES
    ]
    lake.land(
        {LOG_OFFSETS.name: arrow_rows(LOG_OFFSETS, looks), COMMITTED_OFFSETS.name: arrow_rows(COMMITTED_OFFSETS, reads)}
    )
    return [Interval(start + i * FIVE_MINUTES, start + (i + 1) * FIVE_MINUTES) for i in range(RUNS)]


def _run(client: AirflowClient, interval: Interval) -> None:
    form = {"from": f"{interval.start:%FT%TZ}", "to": f"{interval.end:%FT%TZ}", "facts": "stored", "notify": "never"}
    for task in client.follow("kafka_sla", client.trigger("kafka_sla", form)):
        print(f"  {task.name}: {task.state} ({task.seconds:.0f} s) {task.problem}", flush=True)
