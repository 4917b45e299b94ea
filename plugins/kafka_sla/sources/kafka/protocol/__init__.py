"""Requests and answers of Kafka brokers. Knows no configuration file and no fact table."""
