"""What the demonstration found, in words, and whether it is what it should be. Reads the store and the mailbox only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from demo.findings import findings
from demo.flows import FLOWS
from demo.mailbox import Mailbox
from kafka_sla.cli.status_text import interval_text, miss_text
from kafka_sla.config.settings import Settings
from kafka_sla.config.store import Store
from kafka_sla.ledger.ledger import Ledger
from kafka_sla.model.entities import Interval
from kafka_sla.reporting.report import write_report


@dataclass(frozen=True, slots=True)
class Outcome:
    """The rows of the ledger and the mails of one demonstration."""

    settings: Settings
    store: Store
    interval: Interval
    mailbox: Mailbox

    def text(self, report: Path) -> str:
        """The SLA table, each miss with its evidence, the mails, and the report, which is written to that path."""
        ledger = Ledger(self.store)
        mails = zip(self.mailbox.files(), self.mailbox.mails(), strict=True)
        return "\n\n".join(
            [
                f"SLAs in {self.interval}",
                interval_text(self.settings.slas, ledger, self.interval),
                "Misses",
                *(miss_text(miss) for miss in ledger.verdicts.misses(interval=self.interval)),
                findings(self.store, self.interval),
                "Mails",
                "\n".join(f"{path}\n  {mail['subject']}" for path, mail in mails),
                f"Report\n{write_report(report, ledger, self.settings.slas, self.interval)}",
            ]
        )

    def surprises(self) -> list[str]:
        """What differs from what the flows should show; empty when all is as it should be."""
        expected = {flow.sla for flow in FLOWS if flow.missed}
        misses = Ledger(self.store).verdicts.misses(interval=self.interval)
        missed = {miss.sla for miss in misses}
        subjects = [str(mail["subject"]) for mail in self.mailbox.mails()]
        told = sum(2 if miss.end else 1 for miss in misses)
        return [
            *(f"{sla} should have been missed and was not" for sla in sorted(expected - missed)),
            *(f"{sla} should not have been missed and was" for sla in sorted(missed - expected)),
            *(f"nobody was mailed about {sla}" for sla in sorted(missed) if not _named(sla, subjects)),
            *([f"{len(subjects)} mails came, not {told}"] if len(subjects) != told else []),
        ]


def _named(sla: str, subjects: Sequence[str]) -> bool:
    return any(sla in subject for subject in subjects)
