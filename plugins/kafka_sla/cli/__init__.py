"""The command line. Knows no Airflow."""
