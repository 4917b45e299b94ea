"""Experiments that anybody can repeat with one command, and whose tables stand in docs/reference."""
