"""The making of digests: which are due, who gets which SLAs, the archive, the mails."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

from kafka_sla.config.settings import Settings
from kafka_sla.config.store import Store
from kafka_sla.errors import BadRequest, MailRefused, MailServerUnavailable, SettingsError
from kafka_sla.files import write_text
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Connection, Digest, Interval, Sla
from kafka_sla.notifications.digest_email import digest_mail, digest_page
from kafka_sla.notifications.smtp import deliver, sender_of
from kafka_sla.reporting.archive import archive_path, page_name
from kafka_sla.reporting.digest import tell
from kafka_sla.reporting.digest_schedule import period_name, period_of, periods_due


def digests_due(settings: Settings, interval: Interval) -> list[dict[str, str]]:
    """Name and an instant of the period of each digest that falls due in the interval, for `make_digest`."""
    return [
        {"digest": digest.name, "at": period.start.isoformat()}
        for digest in settings.digests
        for period in periods_due(digest, interval)
    ]


def day_asked(digest: Digest, day: str | None, now: datetime) -> datetime:
    """An instant of the period that somebody asks for by a day; without one, of the last whole period."""
    if not day:
        return period_of(digest, period_of(digest, now).start - timedelta(microseconds=1)).start
    try:
        at = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(digest.time_zone)).astimezone(UTC)
    except ValueError as error:
        raise BadRequest(f"{day!r} is no day; write it as 2026-11-21") from error
    if period_of(digest, at).start >= now:
        raise BadRequest(f"{day} has not begun yet; give a day until {now.astimezone(ZoneInfo(digest.time_zone)):%F}")
    return at


def make_digest(settings: Settings, store: Store, name: str, at: datetime, path: str | None = None) -> dict[str, Any]:
    """Write the digest of the period that holds `at` to `path`, else into the archive; answers where it is and what it
    tells."""
    digest = settings.digest(name)
    period = period_of(digest, at)
    ledger = Ledger(store)
    ledger.open(writing=path is None)
    told = tell(ledger, digest, slas_of(settings, digest), period)
    path = path or archive_path(store, digest, period)
    write_text(path, digest_page(told))
    return {"digest": name, "period": period_name(digest, period), "page": path, "summary": told.values["summary"]}


def mail_digest(
    settings: Settings,
    store: Store,
    name: str,
    at: datetime,
    smtp: Connection,
    *,
    to: Sequence[str] = (),
    again: str = "",
) -> dict[str, Any]:
    """Mail the digest of the period that holds `at`, to each of its readers once.

    `to`: only these readers get the whole digest, as a preview, and nothing is recorded. `again`: a word for a sending
    by hand, which mails what was mailed before too.
    """
    digest = settings.digest(name)
    period, ledger = period_of(digest, at), Ledger(store)
    url = f"{settings.base_url}/kafka-sla/reports/{page_name(digest, period)}" if settings.base_url else ""
    by_hand = bool(to or again)
    sent: list[str] = []
    failed: list[Exception] = []
    for readers, slas in [(tuple(to), slas_of(settings, digest))] if to else readers_of(settings, digest):
        who = ", ".join(readers)
        if not by_hand and ledger.sent_once.digest_sent(digest, period, who):
            continue
        told = tell(ledger, digest, slas, period)
        message = digest_mail(digest, period, told, readers, sender_of(smtp), again, url)
        send = partial(deliver, smtp, message)
        try:
            if by_hand:
                send()
            elif not ledger.sent_once.send_digest(digest, period, who, send):
                continue
        except MailRefused as error:  # the other readers are told first
            failed.append(error)
            if isinstance(error, MailServerUnavailable):
                break
        else:
            sent.append(who)
    if failed:
        raise failed[0] if len(failed) == 1 else MailRefused("; ".join(map(str, failed)))
    return {"digest": name, "period": period_name(digest, period), "mailed": sent}


def slas_of(settings: Settings, digest: Digest) -> list[Sla]:
    """The SLAs that a digest tells of."""
    return [sla for sla in settings.slas if digest.holds(sla)]


def readers_of(settings: Settings, digest: Digest) -> list[tuple[tuple[str, ...], list[Sla]]]:
    """Who gets one mail together, and about which SLAs; SettingsError when nobody would."""
    slas = slas_of(settings, digest)
    if digest.recipients:
        return [(digest.recipients, slas)]
    addresses = sorted({address for sla in slas for address in sla.recipients})
    if not addresses:
        raise SettingsError(
            f"the digest {digest.name!r} has no recipients and neither have its SLAs; give it recipients"
        )
    return [((address,), [sla for sla in slas if address in sla.recipients]) for address in addresses]
