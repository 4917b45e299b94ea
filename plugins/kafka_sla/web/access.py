"""Who may see anything: whoever may read the DAG `kafka_sla`; and who may note something: whoever may
edit it. Knows no page and no row."""

from __future__ import annotations

from airflow.api_fastapi.core_api.security import requires_access_dag

DAG = "kafka_sla"
may_triage = requires_access_dag(method="PUT", param_dag_id=DAG)
"""As below, of who may change the DAG: only they note something about a miss."""
may_read = requires_access_dag(method="GET", param_dag_id=DAG)
"""A FastAPI dependency: 401 for strangers, 403 for users without the right. Session cookie and bearer token count."""
