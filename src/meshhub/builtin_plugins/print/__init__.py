"""Checks whether a model prints: its mesh, walls, overhangs and size, and an estimate of the print."""

from __future__ import annotations

from collections.abc import Iterable

from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Check


@hookimpl
def meshhub_checks() -> Iterable[Check]:
    """Declare the checks."""
    return [
        Check(
            id="mesh",
            label="Mesh",
            description="Holes, non-manifold edges, faces that are inside out, stray fragments.",
            run="meshhub.builtin_plugins.print.mesh:run",
        ),
    ]
