"""The SQL side of a store: publications, verdicts, notifications. Knows no table file and no Kafka."""
