"""Scheduled SLA reports for Kafka consumers: the importable library behind the DAGs, the command line and the pages."""

__version__ = "1.0.0"
