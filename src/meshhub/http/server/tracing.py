"""OpenTelemetry spans of requests, if an exporter endpoint is configured and the extra is installed."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any

from meshhub.model.installing import describe_install

log = logging.getLogger("meshhub.http")

ENDPOINT_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
"""OpenTelemetry's own environment variables; its other variables work too."""

_UNTRACED_PATHS = "/health/live,/health/ready,/metrics"


def add_tracing(app: Any, environment: Mapping[str, str] = os.environ) -> Any:
    """Return the application with traced requests, or the application itself if no endpoint is configured."""
    if not any(environment.get(name, "").strip() for name in ENDPOINT_VARIABLES):
        return app
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        log.warning(
            "requests are not traced: %s is not installed; %s", error.name, describe_install("meshhub[opentelemetry]")
        )
        return app
    name = environment.get("OTEL_SERVICE_NAME") or "meshhub"
    provider = TracerProvider(resource=Resource.create({SERVICE_NAME: name}), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    # flush the last spans when the service stops, also if the process goes on
    app.on_shutdown.append(provider.shutdown)
    return OpenTelemetryMiddleware(
        app, tracer_provider=provider, excluded_urls=_UNTRACED_PATHS, exclude_spans=["receive", "send"]
    )
