"""The read API and its exports for programs. Writes nothing."""
