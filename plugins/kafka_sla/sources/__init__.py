"""Where facts come from: Kafka, Kafka Connect, Spark checkpoints, JMX exporters."""
