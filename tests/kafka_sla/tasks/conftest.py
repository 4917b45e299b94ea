"""These tests import airflow, whose home must be set first."""

import tests.airflow_home  # noqa: F401
