"""Every error that a user can meet. Messages say what is wrong, where, and what to do."""

from collections.abc import Sequence
from datetime import datetime


class KafkaSlaError(Exception):
    """Base of all errors that this project raises on purpose; the command line prints it without a traceback."""


class SettingsError(KafkaSlaError):
    """The configuration file is wrong; the message lists every mistake at once."""


class ConnectionMissing(KafkaSlaError):
    """A connection id named in the configuration is not defined where this process looks for connections."""


class KafkaUnreachable(KafkaSlaError):
    """A cluster did not answer, refused the credentials, or lacks a permission."""


class ConnectUnreachable(KafkaSlaError):
    """A Connect worker did not answer, refused the login, or does not show the connector's offsets."""


class CheckpointUnreadable(KafkaSlaError):
    """A Spark query's checkpoint folder is not there, may not be read, or is of an unknown version."""


class BadImport(KafkaSlaError):
    """An imported file has rows that cannot be facts; the message names file, row, column and value."""


class StoreError(KafkaSlaError):
    """The table store or the SQL database refused an operation."""


class DamagedFile(StoreError):
    """Files of the table store are truncated, overwritten or have flipped bits; `files` names them."""

    def __init__(self, files: Sequence[str], reason: str) -> None:
        super().__init__(
            f"{', '.join(files)} cannot be read, which was damaged after it was written ({reason}): `kafka-sla store"
            " check` says what it costs, `kafka-sla store repair` measures its intervals again; or restore a backup"
        )
        self.files, self.reason = tuple(files), reason


class DamagedTable(StoreError):
    """The metadata of an Iceberg table, or the catalog's row of it, is missing or was overwritten."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(
            f"the metadata of the table {name} cannot be read, which was damaged after it was written ({reason}):"
            " `kafka-sla store repair` makes it anew from the table's files"
        )
        self.name = name


class DamagedWindows(StoreError):
    """The windows of a day of an SLA, which the database keeps packed, are not as they were written."""

    def __init__(self, sla: str, day: datetime) -> None:
        super().__init__(
            f"the windows of the SLA {sla!r} of {day:%Y-%m-%d} cannot be read: their row of sla_window_days was damaged"
            " after it was written; `kafka-sla store repair` judges that day again, or restore a backup"
        )
        self.sla, self.day = sla, day


class ValidationFailed(KafkaSlaError):
    """A critical expectation failed: nothing was published and the last published data stays readable."""


class MissOpen(KafkaSlaError):
    """An SLA with `on_miss: fail` has a miss in the evaluated interval; raised after everybody was notified."""


class SparkFailed(KafkaSlaError):
    """The Spark application did not start or did not end well: nothing was published."""


class BadRequest(KafkaSlaError):
    """A command asks for a time, name or file that cannot be; the message says what to ask for."""


class ReceiverUnavailable(KafkaSlaError):
    """Nothing can be delivered through a connection at present: what else waits for it would fail in the same way."""


class WebhookRefused(KafkaSlaError):
    """A webhook's receiver did not take the event, or its connection lacks something."""


class WebhookUnavailable(WebhookRefused, ReceiverUnavailable):
    """A webhook's receiver did not answer, or wants to be left alone."""


class MailRefused(KafkaSlaError):
    """The mail server refused the mail, or its connection lacks something."""


class MailServerUnavailable(MailRefused, ReceiverUnavailable):
    """The mail server did not answer or refused the login."""
