"""Meshes of the solids of manifold3d, for tests."""

from __future__ import annotations

import numpy as np
from manifold3d import Manifold

from meshhub.model.scene import Mesh


def mesh_of(solid: Manifold) -> Mesh:
    """Return a solid as a mesh."""
    mesh = solid.to_mesh64()
    return Mesh(np.asarray(mesh.vert_properties)[:, :3], np.asarray(mesh.tri_verts).astype(np.int32))


def joined_mesh(*solids: Manifold) -> Mesh:
    """Return the surfaces of solids as one mesh, also where they overlap."""
    meshes = [mesh_of(solid) for solid in solids]
    starts = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    faces = [mesh.faces + np.int32(start) for mesh, start in zip(meshes, starts, strict=False)]
    return Mesh(np.concatenate([mesh.vertices for mesh in meshes]), np.concatenate(faces))
