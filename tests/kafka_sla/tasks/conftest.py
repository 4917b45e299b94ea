"""These tests import airflow: they need its home set first."""

import tests.airflow_home
