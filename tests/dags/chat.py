"""A notifier as a user would configure it: it appends what it is told to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airflow.sdk import BaseNotifier


class Chat(BaseNotifier):
    """One line per call."""

    template_fields = ("text",)

    def __init__(self, text: str, file: str) -> None:
        super().__init__()
        self.text, self.file = text, file

    def notify(self, context: Any) -> None:
        with Path(self.file).open("a") as log:
            log.write(self.text + "\n")
