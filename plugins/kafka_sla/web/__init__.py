"""The pages and the read API inside Airflow's own web server: published rows only, behind Airflow's login."""
