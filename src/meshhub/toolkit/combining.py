"""Combination of all parts of a scene to one: a union, a difference or an intersection of solids."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from manifold3d import Manifold, Mesh64, OpType

from meshhub.model.notes import note
from meshhub.model.progress import track
from meshhub.model.scene import Part, Scene
from meshhub.toolkit.containment import hosts_of
from meshhub.toolkit.crossings import pair_boxes
from meshhub.toolkit.geometry import baked, corner_extremes
from meshhub.toolkit.solids import Solids, surface_of
from meshhub.toolkit.topology import shells

Combination = Literal["union", "difference", "intersection"]
"""Volume in any part, in the first part but in no other, or in all parts."""

MIN_OVERLAP_RATIO = 1e-9
"""Share of the volume from which bodies overlap; below, the rounding of the sum differs."""

_KINDS = {"union": OpType.Add, "difference": OpType.Subtract, "intersection": OpType.Intersect}


def combine_parts(scene: Scene, combination: Combination, repair_option: str) -> tuple[Scene, list[float]]:
    """Combine all parts that have faces to one without a name.

    Args:
        scene: Millimeters, in any direction.
        combination: How to combine them.
        repair_option: Option that the message about an invalid mesh advises.
    Returns:
        Scene of one part with the materials of the faces, and the volumes of the solids before. Where two surfaces
        coincide, the first part has precedence. The mesh has no faces if nothing is left.
    Raises:
        ConversionFailed: A part is not a solid.
    """
    parts = baked(scene)
    meshes = [(part.name, parts.meshes[part.mesh]) for part in parts.parts if len(parts.meshes[part.mesh].faces)]
    solids = Solids.of([mesh for _, mesh in meshes], len(scene.materials), repair_option)
    bodies = [unite_bodies(solids.to_solid(mesh, name)) for name, mesh in track(meshes)]
    result = Manifold.batch_boolean(bodies, _KINDS[combination])
    mesh = replace(solids.to_mesh(result, meshes[0][1]), name="")
    return replace(scene, meshes=(mesh,), parts=(Part(0),)), [body.volume() for body in bodies]


def unite_bodies(solid: Manifold) -> Manifold:
    """Return a solid whose own bodies do not overlap, which Manifold takes for granted; the same object if none do.

    A slicer fills the cavity of a body where another body is. A solid with an inward shell outside of all bodies stays
    as it is.
    """
    if not _may_overlap(solid):
        return solid
    pieces = solid.decompose()
    surfaces = [surface_of(shell) for shell in pieces]
    label = np.repeat(np.arange(len(pieces)), [len(surface.faces) for surface in surfaces])
    volumes = np.array([shell.volume() for shell in pieces])
    corners = np.concatenate([surface.vertices[surface.faces] for surface in surfaces])
    hosts = hosts_of(corners, label, np.ones(len(pieces), np.bool_), volumes)
    outward = np.flatnonzero(volumes > 0).tolist()
    if len(outward) < 2 or (hosts[volumes < 0] < 0).any():
        return solid
    bodies = [
        Manifold.batch_boolean(
            [pieces[body], *(_fill(pieces[cavity]) for cavity in np.flatnonzero(hosts == body).tolist())],
            OpType.Subtract,
        )
        for body in outward
    ]
    union = Manifold.batch_boolean(bodies, OpType.Add)
    return union if union.volume() < (1 - MIN_OVERLAP_RATIO) * solid.volume() else solid


def note_overlaps(name: str) -> None:
    """Write the note about united bodies of a part with this quoted name."""
    note("bodies_united", f"bodies of {name} overlapped, so this step united them", name=name)


def _may_overlap(solid: Manifold) -> bool:
    """Return whether boxes of shells overlap; `decompose` takes 38 s for 1,500 balls of 432,000 faces."""
    native = solid.to_mesh64()
    points, triangles = np.asarray(native.vert_properties)[:, :3], np.asarray(native.tri_verts).astype(np.intp)
    vertex = np.arange(len(points))
    vertex[np.asarray(native.merge_from_vert, np.intp)] = np.asarray(native.merge_to_vert, np.intp)
    count, label = shells(vertex[triangles].astype(np.int32))
    low, high = np.full((count, 3), np.inf), np.full((count, 3), -np.inf)
    corners = points[triangles]
    lowest, highest = corner_extremes(corners)
    np.minimum.at(low, label, lowest)
    np.maximum.at(high, label, highest)
    return any(len(first) for first, _ in pair_boxes(low, high))


def _fill(cavity: Manifold) -> Manifold:
    """Return the body that fills a cavity, whose faces keep their ids and attributes."""
    native = cavity.to_mesh64()
    # copies, because manifold3d does not take arrays that are read-only
    return Manifold(
        Mesh64(
            np.array(native.vert_properties, np.float64),
            np.array(native.tri_verts, np.uint64)[:, ::-1].copy(),
            np.array(native.merge_from_vert, np.uint64),
            np.array(native.merge_to_vert, np.uint64),
            run_index=np.array(native.run_index, np.uint64),
            run_original_id=np.array(native.run_original_id, np.uint32),
            face_id=np.array(native.face_id, np.uint64),
            tolerance=cavity.get_tolerance(),
        )
    )
