"""pymeshlab (GPL-3.0, the extra `meshlab`), which an operation uses only if it is installed."""

from __future__ import annotations


def is_usable() -> bool:
    """Return whether pymeshlab can be imported with its filters.

    Without OpenGL (`libopengl0` on Debian and Ubuntu), pymeshlab prints a warning and lacks MeshLab's mesh filters.
    """
    try:
        from pymeshlab import MeshSet
    except ImportError:
        return False
    return hasattr(MeshSet, "meshing_decimation_quadric_edge_collapse")
