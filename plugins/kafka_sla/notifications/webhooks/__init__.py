"""Events of misses and burns for receivers of webhooks. Judges nothing."""
