"""What a job has to read and to measure. Starts no Spark."""
