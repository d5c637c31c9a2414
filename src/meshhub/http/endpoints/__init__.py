"""The endpoints, in the order of the OpenAPI document. A module has the handlers with their descriptions."""

from __future__ import annotations

from meshhub.http.endpoints import (
    check,
    combine,
    convert,
    convert_batch,
    convert_many,
    explain,
    health,
    inspect,
    jobs,
    metrics,
    plan,
    preview,
    quote,
    render,
    schema,
    supported,
)

ENDPOINTS = (
    *convert.ENDPOINTS,
    *convert_many.ENDPOINTS,
    *convert_batch.ENDPOINTS,
    *combine.ENDPOINTS,
    *explain.ENDPOINTS,
    *inspect.ENDPOINTS,
    *check.ENDPOINTS,
    *quote.ENDPOINTS,
    *render.ENDPOINTS,
    *preview.ENDPOINTS,
    *jobs.ENDPOINTS,
    *plan.ENDPOINTS,
    *supported.ENDPOINTS,
    *health.ENDPOINTS,
    *metrics.ENDPOINTS,
    *schema.ENDPOINTS,
)
"""Every endpoint of the service; the files of the page are beside them."""
