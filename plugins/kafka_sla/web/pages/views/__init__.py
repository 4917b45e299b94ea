"""Answers in words and curves for the templates. Knows no query and no HTML tag."""
