"""Answers in words and curves for the templates."""
