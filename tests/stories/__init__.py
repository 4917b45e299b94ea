"""Scenarios that on-call engineers know, and what kafka-sla must say about each."""
