"""YAML files as plain values with their lines, references to variables, and what looks like a secret."""
