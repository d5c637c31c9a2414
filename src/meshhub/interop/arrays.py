"""Convert scenes from and to numpy arrays."""

from __future__ import annotations

from typing import Any

from meshhub.model.capabilities import HOST_FRAME, Frame
from meshhub.model.scene import Float64, Int32, Mesh, Part, Scene
from meshhub.toolkit.geometry import soup


def from_arrays(vertices: Any, faces: Any, *, colors: Any = None, frame: Frame = HOST_FRAME, name: str = "") -> Scene:
    """Return a scene with one mesh.

    Args:
        vertices: (n, 3) positions in the unit of `frame`.
        faces: (m, 3) vertex indices, counter-clockwise seen from outside.
        colors: (n, 3 or 4) sRGB, uint8 or floats from 0 to 1; None for no colors.
        frame: Unit and up axis (default: millimeters, Z up).
        name: Name for people.
    Raises:
        ValueError: An array has another shape, or an index is out of range.
    """
    from meshhub.interop.pieces import as_rgba

    rgba = None
    if colors is not None and (rgba := as_rgba(colors, len(vertices))) is None:
        raise ValueError(f"colors must be an array of shape {len(vertices)}×3 or {len(vertices)}×4")
    return Scene((Mesh(vertices, faces, colors=rgba, name=name),), (Part(0),), frame=frame)


def to_arrays(scene: Scene) -> tuple[Float64, Int32]:
    """Return all parts in one mesh, with transforms applied: (n, 3) vertices and (m, 3) faces.

    The arrays are read-only if the scene has a single part without a transform.
    """
    return soup(scene)
