"""How a Spark application is described, packed and started."""
