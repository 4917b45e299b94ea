"""The configuration: parsed, checked and frozen once."""
