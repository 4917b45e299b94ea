"""E-mails about misses, digests and late runs, and how they are sent. Judges nothing."""
