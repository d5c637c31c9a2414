"""Points that add nothing to the shape of a mesh: within flat faces, and on straight edges between two of them.

Programs that split long edges leave such points, as do triangles without area. A point in the middle of a chord is not
on the round surface around the chord, so the surface would not be recognized.
"""

from __future__ import annotations

import numpy as np
from manifold3d import Error, Manifold, Mesh64

from meshhub.builtin_plugins.step.facets.faceting import FacetedSkin, facet_skin
from meshhub.builtin_plugins.step.facets.planar import MAX_DEVIATION_RATIO
from meshhub.builtin_plugins.step.facets.skin import Skin, build_skin


def remove_spare_points(skin: Skin, faceted: FacetedSkin) -> tuple[Skin, FacetedSkin]:
    """Return a skin without the points that its flat faces do not need, and its flat faces.

    Args:
        skin: Mesh, millimeters.
        faceted: Its flat faces.
    Returns:
        The same skin if it has no such points, or if it is not the boundary of solids. A folded mesh stays, too: there,
        a flat face would get triangles outside of its plane. So does a mesh with a shell that would vanish.
    """
    outline = faceted.outline
    is_spare = np.ones(len(skin.points), np.bool_)
    is_spare[outline.start] = False
    if not is_spare.any() or not skin.closed.all():
        return skin, faceted
    mesh = Mesh64(skin.points, skin.faces.astype(np.uint64), face_id=faceted.region.astype(np.uint64))
    solid = Manifold(mesh)
    if solid.status() != Error.NoError:
        return skin, faceted
    rest = solid.simplify(faceted.tolerance).to_mesh64()
    points, faces = np.asarray(rest.vert_properties)[:, :3], np.asarray(rest.tri_verts, np.int32)
    facet = np.asarray(rest.face_id, np.intp)
    planes = faceted.planes
    off = np.einsum("ijk,ik->ij", points[faces] - planes.center[facet][:, None], planes.normal[facet])
    if (np.abs(off).max(axis=1) > planes.deviation[facet] + MAX_DEVIATION_RATIO * faceted.tolerance).any():
        return skin, faceted
    paint = np.empty(faceted.faces, np.int32)
    paint[faceted.region] = skin.paint
    simpler = build_skin(points, faces, paint[facet])
    if len(simpler.closed) < len(skin.closed):
        return skin, faceted
    return simpler, facet_skin(simpler)
