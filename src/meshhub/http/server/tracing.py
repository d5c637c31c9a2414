"""A span of OpenTelemetry for each request, when a place to send them is named and the extra is installed."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any

log = logging.getLogger("meshhub.http")

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
"""OpenTelemetry's own variables; the rest of them work too."""

_NOT_TRACED = "/health/live,/health/ready,/metrics"


def traced(app: Any, environment: Mapping[str, str] = os.environ) -> Any:
    """The application with its requests traced, or as it is when nobody wants to know."""
    if not any(environment.get(name, "").strip() for name in ENDPOINTS):
        return app
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        log.warning('requests are not traced: %s is not installed; pip install "meshhub[opentelemetry]"', error.name)
        return app
    name = environment.get("OTEL_SERVICE_NAME") or "meshhub"
    provider = TracerProvider(resource=Resource.create({SERVICE_NAME: name}), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    # the last spans go out with the service, whatever the program around it does then
    app.on_shutdown.append(provider.shutdown)
    return OpenTelemetryMiddleware(
        app, tracer_provider=provider, excluded_urls=_NOT_TRACED, exclude_spans=["receive", "send"]
    )
