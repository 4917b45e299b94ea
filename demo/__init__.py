"""The demonstration: a real Kafka, real consumers, Airflow and a mailbox on one machine. Tests use its brokers."""
