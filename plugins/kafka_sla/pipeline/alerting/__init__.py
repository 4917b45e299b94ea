"""Which alerts exist, who is told of them, and what they have yet to be told."""
