"""One module per revision of the SQL tables, oldest first."""
