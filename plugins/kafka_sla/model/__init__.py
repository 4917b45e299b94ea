"""The nouns: what is measured and judged, and the contract of each table. Knows no store, no Kafka, no Airflow."""
