"""Formats that the built-in plug-ins write, for tests of every format."""

from __future__ import annotations

from meshhub import Registry

TARGETS = tuple(sorted(writer.capability.format.id for writer in Registry(entry_points=False).declarations.writers))
"""Ids of all formats."""

MESH_TARGETS = tuple(format_id for format_id in TARGETS if format_id != "step")
"""Ids without STEP, whose writer takes seconds for small models and writes surfaces instead of triangles."""

MEDIA_TYPES = {
    "stl": "model/stl", "obj": "model/obj", "ply": "application/octet-stream", "glb": "model/gltf-binary",
    "gltf": "model/gltf+json", "3mf": "model/3mf", "step": "model/step",
}  # fmt: skip
"""Media type of the service's response by id; not from the registry, so that a test notices a change."""
