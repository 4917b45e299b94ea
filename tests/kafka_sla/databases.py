"""The databases in which a store may be kept."""

EACH = ("sqlite", "postgres")
