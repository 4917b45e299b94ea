"""The steps of the pipeline as Airflow tasks, and the wiring that both DAGs share. Airflow is known here and in web."""
