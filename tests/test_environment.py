"""The test environment: tests skip without an optional package, so one with all extras must have all packages."""

from __future__ import annotations

import importlib
import os

import pytest

PACKAGES = (
    "DracoPy",
    "OCP.STEPControl",
    "brotli",
    "fontTools.ttLib",
    "font_lato",
    "limits",
    "litestar",
    "multipart",
    "opentelemetry.exporter.otlp.proto.http",
    "opentelemetry.instrumentation.asgi",
    "opentelemetry.sdk",
    "prometheus_client",
    "psycopg",
    "pymeshlab",
    "redis",
    "reportlab",
    "sqlalchemy",
    "uvicorn",
)
"""Modules of the packages in the extra `all`."""


@pytest.mark.skipif(
    os.environ.get("MESHHUB_TEST_EXTRAS") != "all", reason="MESHHUB_TEST_EXTRAS is not 'all': extras may be missing"
)
@pytest.mark.parametrize("package", PACKAGES)
def test_packages_of_the_extras_can_be_imported(package: str) -> None:
    importlib.import_module(package)
