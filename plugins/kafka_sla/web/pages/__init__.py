"""The pages inside Airflow. Writes nothing."""
