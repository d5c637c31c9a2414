"""Make a part of each body of the scene."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from meshhub.builtin_plugins.split_parts import SplitPartsOptions
from meshhub.errors import ModelTooComplex
from meshhub.model.notes import did, note
from meshhub.model.progress import track
from meshhub.model.scene import Mesh, Part, Scene
from meshhub.toolkit.containment import hosts_of
from meshhub.toolkit.geometry import IntIndex, chosen_faces, welded
from meshhub.toolkit.pairing import pair_half_edges
from meshhub.toolkit.topology import components, edges

MAX_PARTS = 10_000
"""Maximum parts of the result; a model with more bodies is a scan with stray fragments. """


def run(scene: Scene, options: SplitPartsOptions) -> Scene:
    """Split each mesh into its bodies, and each part into a part for each body.

    Args:
        scene: Any frame.
        options: `split_parts` False leaves the scene unchanged.
    Returns:
        Scene with a part for each body, named NAME-1, NAME-2, …; a part with one body does not change. Instances stay
        shared.
    Raises:
        ModelTooComplex: The result would have more than MAX_PARTS parts.
    """
    if not options.split_parts:
        return scene
    owners = {index: label_bodies(scene.meshes[index]) for index in track(sorted({part.mesh for part in scene.parts}))}
    counts = {index: int(owner.max(initial=0)) + 1 for index, owner in owners.items()}
    total = sum(counts[part.mesh] for part in scene.parts)
    if total > MAX_PARTS:
        raise ModelTooComplex(
            f"the model has {total:,} bodies, and '{{split_parts}}' makes at most {MAX_PARTS:,} parts; remove stray "
            "fragments with '{repair}'",
            options=("split_parts", "repair"),
            values={"count": total, "limit": MAX_PARTS},
        )
    did(parts_before=len(scene.parts), parts_after=total)
    if total == len(scene.parts):
        note("nothing_to_split", "each part is one body, so no part was split")
        return scene
    note(
        "parts_split",
        f"the model has {total:,} parts now, one for each body, and had {len(scene.parts):,}",
        count=total,
        before=len(scene.parts),
    )
    meshes: list[Mesh] = []
    begin = {}
    for index, owner in owners.items():
        begin[index] = len(meshes)
        meshes += _split(scene.meshes[index], owner, counts[index])
    parts: list[Part] = []
    numbers: Counter[str] = Counter()
    for part in scene.parts:
        first, count = begin[part.mesh], counts[part.mesh]
        if count == 1:
            parts.append(replace(part, mesh=first))
            continue
        name = part.name or scene.meshes[part.mesh].name or "part"
        for index in range(first, first + count):
            # several parts with one name share the numbers
            numbers[name] += 1
            parts.append(replace(part, mesh=index, name=f"{name}-{numbers[name]}"))
    return replace(scene, meshes=tuple(meshes), parts=tuple(parts))


def label_bodies(mesh: Mesh) -> IntIndex:
    """Return the body (m,) of each face, numbered by first faces; -1 for faces that bound none among several bodies.

    Faces without area bound none, and two opposite faces on the same three points.

    Faces belong together across an edge if they bound one wedge of material, so that bodies that only touch stay apart.
    A cavity belongs to the smallest body around it.
    """
    points, faces = welded(mesh)
    a, b, c = faces.T
    proper = np.flatnonzero((a != b) & (b != c) & (c != a))
    half_edges = pair_half_edges(points, faces[proper], edges(faces[proper]))
    count, shell = components(len(proper), *(half // 3 for half in half_edges))
    owner = np.full(len(faces), -1, np.intp)
    if count <= 1:
        return np.zeros(len(faces), np.intp)
    paired = np.bincount(shell[np.concatenate(half_edges) // 3], minlength=count)
    sizes = np.bincount(shell, minlength=count)
    is_closed = paired == 3 * sizes
    bounds_body = ~is_closed | (sizes > 2)
    if not bounds_body.any():
        return np.zeros(len(faces), np.intp)
    is_kept = bounds_body[shell]
    proper, shell = proper[is_kept], (np.cumsum(bounds_body) - 1)[shell[is_kept]]
    count, is_closed = int(bounds_body.sum()), is_closed[bounds_body]
    corner = points[faces[proper]]
    # about the middle of the mesh, because volumes lose the least to rounding there
    corner = corner - points.mean(axis=0)
    volume = np.bincount(shell, np.einsum("ij,ij->i", corner[:, 0], np.cross(corner[:, 1], corner[:, 2])), count) / 6
    hosts = hosts_of(corner, shell, is_closed, volume)
    body = np.where(hosts < 0, np.arange(count), hosts)[shell]
    _, first, number = np.unique(body, return_index=True, return_inverse=True)
    owner[proper] = np.argsort(np.argsort(first))[number]
    return owner


def _split(mesh: Mesh, owner: IntIndex, count: int) -> list[Mesh]:
    """Return the mesh of each body, with the faces in their order; faces without a body are left out."""
    if count == 1:
        return [mesh]
    order = np.argsort(owner, kind="stable")
    begin = np.searchsorted(owner[order], np.arange(count + 1))
    return [
        replace(
            chosen_faces(mesh, order[begin[number] : begin[number + 1]]),
            name=f"{mesh.name}-{number + 1}" if mesh.name else "",
        )
        for number in range(count)
    ]
