"""The SQL side of a store: publications, verdicts, notifications."""
