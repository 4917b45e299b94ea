"""Offsets and times of partitions: where to look, what batches say, where markers lie. Pure; asks nobody."""
