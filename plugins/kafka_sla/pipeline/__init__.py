"""The steps of a run, from snapshot to notification."""
