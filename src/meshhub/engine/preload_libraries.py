"""Large libraries, and the code that needs them, for the fork server of tasks that use them."""

from __future__ import annotations

from meshhub.engine.preload import preload, record

MODULES = (
    # the toolkit imports these modules where it needs them
    "manifold3d",
    "scipy.sparse.csgraph",
    "scipy.spatial",
    "meshhub.pipeline.preview",
    "meshhub.toolkit.rendering.analysis",
    "meshhub.toolkit.rendering.picture",
    "meshhub.toolkit.png",
)
"""Modules of the host that need large libraries. The declarations name all others."""

preload(MODULES, with_libraries=True)
record()
