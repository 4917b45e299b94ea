"""Polls of committed offsets and log ends between snapshots: what is asked, and what of the answers is kept."""
