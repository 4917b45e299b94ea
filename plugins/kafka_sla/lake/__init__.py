"""The table side of a store: Iceberg tables and their Parquet files."""
