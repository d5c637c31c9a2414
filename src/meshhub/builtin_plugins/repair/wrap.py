"""Watertight wrap around any triangles: the last resort, because it makes a new surface."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meshhub.builtin_plugins.repair import meshlab
from meshhub.builtin_plugins.repair.orient import measure_shell_volumes
from meshhub.builtin_plugins.repair.validity import check_as_file
from meshhub.builtin_plugins.repair.welded_mesh import weld_mesh
from meshhub.model.scene import Float64, Int32, Mesh
from meshhub.toolkit import topology
from meshhub.toolkit.distances import SurfaceDistance
from meshhub.toolkit.geometry import area, welded
from meshhub.toolkit.nesting import measure_depths
from meshhub.toolkit.offsets import offset_surface, surround_surface, too_fine_error

OFFSET_RATIO = 0.1
"""Distance of the wrap from the surface per width of the gaps that it closes; 0 would leave sheets without volume."""

OPTION = "repair_wrap_mm"

MAX_WRAP_CELLS = 100_000
"""Maximum area of a surface per squared gap; pymeshlab needs 30 s for it, and makes one and a half faces for each."""


class Wrap(NamedTuple):
    """Wrapped mesh, and the mean square and greatest distance of its vertices from the input, in its unit."""

    mesh: Mesh
    rms: float
    greatest: float


def wrap_mesh(mesh: Mesh, gap: float) -> Wrap | None:
    """Wrap the triangles of a mesh: an alpha wrap with pymeshlab, otherwise a closing on a narrow grid.

    Args:
        mesh: Any mesh with area, in millimeters.
        gap: Greatest width of the gaps and holes that the wrap closes.
    Returns:
        A valid mesh with the attributes of the nearest faces, or None if there is none.
    Raises:
        ModelTooComplex: The surface is too large for the gap.
    """
    points, faces = welded(mesh)
    faces = topology.remove_degenerate_faces(faces)
    if len(faces) == 0:
        return None
    if area(points, faces) / gap**2 > MAX_WRAP_CELLS:
        raise too_fine_error(points, faces, gap, OPTION)
    result = meshlab.wrap_with_meshlab(points, faces, gap, OFFSET_RATIO * gap)
    if result is None or not check_as_file(*result).valid:
        result = _close_on_grid(points, faces, gap)
    if len(result[1]) == 0 or not check_as_file(*result).valid:
        return None
    distance = SurfaceDistance(points, faces, gap).measure(result[0])
    wrapped = meshlab.transfer_attributes(mesh, *result)
    return Wrap(wrapped, float(np.sqrt(np.square(distance).mean())), float(distance.max()))


def _close_on_grid(points: Float64, faces: Int32, gap: float) -> tuple[Float64, Int32]:
    """Grow the triangles until gaps close, keep the outside, and shrink it again: a morphological closing."""
    radius = gap / 2
    grown = _keep_outside(*surround_surface(points, faces, radius, OPTION))
    if len(grown[1]) == 0:
        return grown
    return offset_surface(*grown, OFFSET_RATIO * gap - radius, OPTION)


def _keep_outside(points: Float64, faces: Int32) -> tuple[Float64, Int32]:
    """Return the outward shells that are in no other shell."""
    surface, _ = weld_mesh(Mesh(points, faces))
    count, label = topology.shells(surface.faces)
    volume = measure_shell_volumes(surface.with_shells(label))
    depth = measure_depths(surface.points, surface.faces, label, np.ones(count, np.bool_), np.abs(volume))
    is_kept = (volume > 0) & (depth == 0)
    return surface.points, surface.faces[is_kept[label]]
