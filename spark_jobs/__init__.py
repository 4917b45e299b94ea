"""The Spark side: one entry (`measure`) and one module per metric table. Knows no catalog, no SQL and no Airflow."""
