"""Meshes of the solids of manifold3d, for tests."""

from __future__ import annotations

import numpy as np
from manifold3d import Manifold

from meshhub.model.scene import Mesh


def mesh_of(solid: Manifold) -> Mesh:
    """Return a solid as a mesh."""
    mesh = solid.to_mesh64()
    return Mesh(np.asarray(mesh.vert_properties)[:, :3], np.asarray(mesh.tri_verts).astype(np.int32))
