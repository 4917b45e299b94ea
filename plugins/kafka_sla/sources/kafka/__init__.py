"""The door to Kafka: what a cluster knows of an interval, or keeps us from reading."""
