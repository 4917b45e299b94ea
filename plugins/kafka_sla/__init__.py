"""Scheduled SLA reports for Kafka consumers: the importable library behind the DAGs, the command line and the pages."""

__version__ = "0.1.0"
