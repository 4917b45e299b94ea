"""The nouns: what is measured and judged, and the contract of each table."""
