"""Alembic's environment and revisions for the SQL tables of a store."""
