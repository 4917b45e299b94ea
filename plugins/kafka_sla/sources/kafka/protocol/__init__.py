"""Requests and answers of Kafka brokers."""
