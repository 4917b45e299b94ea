"""A connection of Airflow as the settings of the Kafka client: keys, TLS, logins and their tokens."""
