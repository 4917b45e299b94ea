"""The configuration: parsed, checked and frozen once. Knows no store's content and no Kafka."""
