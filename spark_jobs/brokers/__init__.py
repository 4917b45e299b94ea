"""Fetch latency between brokers: equations, their solution and the verdict."""
