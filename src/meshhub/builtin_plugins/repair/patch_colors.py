"""Colors of the faces that close holes: each place has the color beside it."""

from __future__ import annotations

import numpy as np

from meshhub.builtin_plugins.repair.validity import check_as_file
from meshhub.builtin_plugins.repair.welded_mesh import WeldedMesh, crosses_color_seam
from meshhub.model.scene import Mesh
from meshhub.toolkit import topology
from meshhub.toolkit.geometry import weld
from meshhub.toolkit.patches import divide_patches


def divide_new_faces(surface: WeldedMesh, mesh: Mesh) -> WeldedMesh:
    """Divide the new faces between corners with different colors, unless rounding to float32 makes that invalid.

    Args:
        surface: Result of the repair.
        mesh: Mesh before the repair, which provides the attributes.
    """
    is_plain = mesh.uv is None and mesh.colors is None
    if surface.is_original.all() or not (
        mesh.uv is not None or crosses_color_seam(surface, mesh) or (is_plain and mesh.face_material is not None)
    ):
        return surface
    new, old = np.flatnonzero(~surface.is_original), np.flatnonzero(surface.is_original)
    point, source = surface.faces[new].ravel(), surface.source[new].ravel()
    first, corner = weld(np.stack([point, source], axis=1))
    # the old face that provides the attributes of a corner is beside the edge that ends there
    parent, face = np.repeat(surface.parent[new], 3)[first], np.repeat(new, 3)[first]
    place = np.full(len(surface.faces), -1)
    place[new] = np.arange(len(new))
    half_a, half_b = topology.edges(surface.faces).pairs()
    for inner, outer in ((half_a, half_b), (half_b, half_a)):
        is_border = ~surface.is_original[inner // 3] & surface.is_original[outer // 3]
        inner, outer = inner[is_border], outer[is_border]
        parent[corner[3 * place[inner // 3] + (inner + 1) % 3]] = surface.parent[outer // 3]
    columns = [] if mesh.face_material is None else [mesh.face_material[parent][:, None].astype(np.float64)]
    columns += [values[source[first]].astype(np.float64) for values in (mesh.uv, mesh.colors) if values is not None]
    label = weld(np.concatenate(columns, axis=1))[1]
    divided = divide_patches(corner.reshape(-1, 3), label)
    corners = surface.points[point[first]]
    points = divided.place_corners(corners)[len(corners) :]
    index = np.concatenate([point[first], len(surface.points) + np.arange(len(points), dtype=np.int32)])
    kept, owner = surface.keep_faces(old), divided.find_nearest(corners)
    result = WeldedMesh(
        np.concatenate([surface.points, points]),
        np.concatenate([kept.faces, index[divided.triangles].astype(np.int32)]),
        np.concatenate([kept.source, np.repeat(source[first][owner], 3).reshape(-1, 3)]),
        np.concatenate([kept.parent, parent[owner]]),
        np.arange(len(old) + len(owner)) < len(old),
        np.concatenate([kept.shell, surface.shell[face[owner]]]),
    )
    before, after = (check_as_file(each.points, each.faces) for each in (surface, result))
    return result if after.defects <= before.defects else surface
