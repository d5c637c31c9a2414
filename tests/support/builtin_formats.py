"""Formats that the built-in plug-ins write, for tests of every format."""

from __future__ import annotations

from meshhub import Registry

_FORMATS = [writer.capability.format for writer in Registry(entry_points=False).declarations.writers]

TARGETS = tuple(sorted(format_.id for format_ in _FORMATS))
"""Ids of all formats."""

MESH_TARGETS = tuple(format_id for format_id in TARGETS if format_id != "step")
"""Ids without STEP, whose writer takes seconds for small models and writes surfaces instead of triangles."""

MEDIA_TYPES = {format_.id: format_.media_types[0] for format_ in _FORMATS}
"""Media type of the service's response by id."""
