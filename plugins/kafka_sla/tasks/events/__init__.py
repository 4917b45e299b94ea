"""What other people's DAGs, notifiers and lineage learn of this project."""
