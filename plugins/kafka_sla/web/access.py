"""Who may see anything: whoever may read the DAG `kafka_sla`; a scraper, which sees the metrics only; and who may note
something about a miss or exclude time afterwards: whoever may edit the DAG."""

from __future__ import annotations

import hmac
from typing import Annotated

from airflow.api_fastapi.core_api.security import GetUserDep, get_user, requires_access_dag
from airflow.sdk import Connection
from fastapi import Depends, HTTPException, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from kafka_sla.airflow_versions import AirflowNotFoundException

DAG = "kafka_sla"
SCRAPER = "kafka_sla_scraper"
"""The connection whose password is the scraper's token."""
may_triage = requires_access_dag(method="PUT", param_dag_id=DAG)
"""As below, of who may edit the DAG: only they note something about a miss, or exclude time."""
may_read = requires_access_dag(method="GET", param_dag_id=DAG)
"""A FastAPI dependency: 401 for strangers, 403 for users without the right. Session cookie and bearer token count."""
_Bearer = Annotated[HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False))]


async def may_scrape(request: Request, bearer: _Bearer) -> None:
    """The same, but for who brings the token of the scraper, which does not expire."""
    if bearer is not None and await run_in_threadpool(_is_scraper, bearer.credentials):
        return
    await run_in_threadpool(may_read, request, await get_user(request, None, bearer))


def _is_scraper(token: str) -> bool:
    try:
        expected = Connection.get(SCRAPER).password
    except AirflowNotFoundException:
        return False
    return bool(expected) and hmac.compare_digest(token.encode(), str(expected).encode())


def note_rights(request: Request, user: GetUserDep) -> None:
    """Keep whether who asks may triage, for pages that show its forms to nobody else."""
    try:
        may_triage(request, user)
    except HTTPException:
        request.state.may_triage = False
    else:
        request.state.may_triage = True
