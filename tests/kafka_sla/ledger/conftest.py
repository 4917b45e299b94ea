"""Every test of the ledger runs in each database."""

from tests.kafka_sla.databases import in_each

database = in_each
