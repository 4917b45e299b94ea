"""The Spark side: one entry (`measure`) and one module per metric table."""
