"""The endpoints, in the order of the OpenAPI document. A module has the handler and its description."""

from __future__ import annotations

from meshhub.http.endpoints.check import CHECK
from meshhub.http.endpoints.combine import COMBINE
from meshhub.http.endpoints.convert import CONVERT
from meshhub.http.endpoints.convert_batch import CONVERT_BATCH
from meshhub.http.endpoints.convert_many import CONVERT_MANY
from meshhub.http.endpoints.explain import EXPLAIN
from meshhub.http.endpoints.health import HEALTH_LIVE, HEALTH_READY
from meshhub.http.endpoints.inspect import INSPECT
from meshhub.http.endpoints.jobs import CANCEL_JOB, DOWNLOAD_RESULT, FOLLOW_JOB, LIST_JOBS, SHOW_JOB, SUBMIT_JOB
from meshhub.http.endpoints.metrics import METRICS
from meshhub.http.endpoints.plan import PLAN
from meshhub.http.endpoints.preview import PREVIEW
from meshhub.http.endpoints.quote import QUOTE
from meshhub.http.endpoints.render import RENDER
from meshhub.http.endpoints.schema import SCHEMA_DOCUMENT, SCHEMA_PAGE
from meshhub.http.endpoints.supported import SUPPORTED

ENDPOINTS = (
    CONVERT,
    CONVERT_MANY,
    CONVERT_BATCH,
    COMBINE,
    EXPLAIN,
    INSPECT,
    CHECK,
    QUOTE,
    RENDER,
    PREVIEW,
    SUBMIT_JOB,
    LIST_JOBS,
    SHOW_JOB,
    CANCEL_JOB,
    FOLLOW_JOB,
    DOWNLOAD_RESULT,
    PLAN,
    SUPPORTED,
    HEALTH_LIVE,
    HEALTH_READY,
    METRICS,
    SCHEMA_PAGE,
    SCHEMA_DOCUMENT,
)
"""Every endpoint of the service; the files of the page are beside them."""
