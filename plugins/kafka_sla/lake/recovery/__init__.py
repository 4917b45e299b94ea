"""Damage found and mended, stores copied and moved. Measures and judges nothing."""
