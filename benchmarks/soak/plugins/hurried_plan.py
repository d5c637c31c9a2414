"""Plug-in with a plan for hostile requests: a conversion may take two seconds."""

from __future__ import annotations

from collections.abc import Iterable

from meshhub.hookspecs import hookimpl
from meshhub.model.plans import Limits, Plan


@hookimpl
def meshhub_plans() -> Iterable[Plan]:
    """Declare a plan that equals Pro except for the deadline."""
    limits = Limits(max_file_bytes=20 << 20, max_request_bytes=64 << 20, conversion_timeout_seconds=2)
    return [Plan(id="hurried", label="Hurried", grants=frozenset({"pro"}), limits=limits)]
