"""Apache Kafka's message definitions that kafka-python does not have, as JSON. Holds no code."""
