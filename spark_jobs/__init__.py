"""The Spark side: one entry (`measure`) and one module per metric table. Imports `kafka_sla.model`, `.tables` and `.suites` only."""
