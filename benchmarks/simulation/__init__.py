"""Worlds made of one number, what is seen of them, and whether what is measured agrees with what truly happened."""
