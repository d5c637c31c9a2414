"""Bodies of a placed scene, and the solids that two of them have in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from manifold3d import Manifold, Mesh64
from numpy.typing import NDArray

from meshhub.builtin_plugins.print.places import place_box
from meshhub.model.scene import Float64, Scene
from meshhub.model.verdict import Place
from meshhub.toolkit.crossings import pair_boxes
from meshhub.toolkit.geometry import IntIndex, corner_extremes, mirrors, transformed, weld
from meshhub.toolkit.once_per_scene import OncePerScene
from meshhub.toolkit.orientation import oriented as oriented
from meshhub.toolkit.orientation import topology_of as topology_of
from meshhub.toolkit.scene_topology import SceneTopology
from meshhub.toolkit.sheets import MIN_VOLUME_RATIO, is_sheet

MAX_PAIRS = 200
"""Pairs of bodies whose solids are intersected; bounds the time on plates of many bodies."""

ROUNDING_RATIO = 1e-3
"""Share of a length, area or volume that rounding of small triangles changes; what differs by less is equal."""

FLOAT32_RATIO = 1e-6
"""Distance per size of a model by which rounding to float32 moves points."""


class Bodies(NamedTuple):
    """Bodies and cavities of a placed scene: its connected shells.

    corners: (m, 3, 3) corners of all faces but those that collapsed
    body:    (m,) body of each face
    part:    (m,) part of each face
    face:    (m,) index of each face in the topology
    parts:   (b,) part of each body
    solid:   (b,) mask of bodies that are closed and face outward
    hollow:  (b,) mask of cavities
    """

    corners: Float64
    body: IntIndex
    part: IntIndex
    face: IntIndex
    parts: IntIndex
    solid: NDArray[np.bool_]
    hollow: NDArray[np.bool_]


class CommonSolid(NamedTuple):
    """Solid that two bodies have in common; `is_nested` if one body is inside the other, and both are in one part."""

    pair: tuple[int, int]
    place: Place
    is_nested: bool


@OncePerScene
def sheets_of(scene: Scene) -> frozenset[int]:
    """Return the meshes of a scene that are sheets."""
    topology = topology_of(scene)
    shells = topology.shells
    areas = np.linalg.norm(topology.normals[~topology.joined.collapsed], axis=1) / 2
    area = np.bincount(shells.label, areas, len(shells.owner))
    size = float(np.abs(topology.joined.vertices).max(initial=0.0)) * 4
    # others have only closed shells with a volume
    is_doubtful = ~shells.closed | (np.abs(shells.volume) <= MIN_VOLUME_RATIO * area * size)
    return frozenset(mesh for mesh in np.unique(shells.owner[is_doubtful]).tolist() if is_sheet(scene.meshes[mesh]))


def list_bodies(scene: Scene, topology: SceneTopology) -> Bodies:
    """Return the bodies of all parts of a scene, from the topology of its meshes."""
    shells = topology.shells
    ends = np.cumsum(np.bincount(topology.owner, minlength=len(scene.meshes)))
    faces = topology.joined.faces[~topology.joined.collapsed]
    corners: list[Float64] = [np.empty((0, 3, 3))]
    label: list[IntIndex] = [np.empty(0, np.intp)]
    part: list[IntIndex] = [np.empty(0, np.intp)]
    face: list[IntIndex] = [np.empty(0, np.intp)]
    for number, placed in enumerate(scene.parts):
        rows = slice(ends[placed.mesh - 1] if placed.mesh else 0, ends[placed.mesh])
        points = topology.joined.vertices[faces[rows].ravel()]
        placed_corners = transformed(points, placed.transform).reshape(-1, 3, 3)
        corners.append(placed_corners[:, ::-1] if mirrors(placed.transform) else placed_corners)
        label.append(shells.label[rows].astype(np.intp) + len(shells.owner) * number)
        part.append(np.full(len(corners[-1]), number, np.intp))
        face.append(np.arange(rows.start, rows.stop))
    used, body = np.unique(np.concatenate(label), return_inverse=True)
    parts, shell = np.divmod(used, max(len(shells.owner), 1))
    solid = shells.closed & (shells.volume > 0) & ~shells.hollow
    return Bodies(
        np.concatenate(corners),
        body.reshape(-1),
        np.concatenate(part),
        np.concatenate(face),
        parts,
        solid[shell],
        shells.hollow[shell],
    )


def find_common_solids(bodies: Bodies, known: IntIndex, depth: float) -> list[CommonSolid]:
    """Find the solids that closed bodies have in common where their faces do not cross.

    Their faces do not cross if edges only meet edges, as in boxes that overlap along a common side, or if one body is
    inside another.

    Args:
        bodies: Bodies in millimeters.
        known: (p, 2) pairs of bodies that are known to overlap.
        depth: Thickness in millimeters from which an overlap counts.
    """
    solids = _Solids(bodies)
    skipped = set(map(tuple, np.sort(known, axis=1).tolist()))
    found = []
    for number, (a, b) in enumerate(solids.pairs(depth)):
        if number == MAX_PAIRS:
            break
        if (a, b) in skipped:
            continue
        common = solids.intersect(a, b)
        smaller = min(solids.get(a).volume(), solids.get(b).volume())
        if common.volume() <= max(ROUNDING_RATIO * smaller, depth * common.surface_area() / 2):
            continue
        is_same_part = bool(bodies.parts[a] == bodies.parts[b])
        box = np.array(common.bounding_box()).reshape(2, 3)
        place = place_box(box, int(bodies.parts[a]) if is_same_part else None)
        is_nested = is_same_part and common.volume() > (1 - ROUNDING_RATIO) * smaller
        found.append(CommonSolid((a, b), place, is_nested))
    return found


def find_contacts(bodies: Bodies, chosen: NDArray[np.bool_], distance: float) -> tuple[IntIndex, IntIndex]:
    """Find the bodies that touch chosen ones; a cavity belongs to the bodies of its part around it.

    Open surfaces, and bodies after the first MAX_PAIRS pairs, count as touching if their bounding boxes touch.

    Args:
        bodies: Bodies in millimeters.
        chosen: (b,) mask of bodies.
        distance: Millimeters up to which bodies touch.
    Returns:
        (p,) bodies, and (p,) the other body of each pair.
    """
    solids = _Solids(bodies)
    batches = [np.empty((2, 0), np.intp)]
    remaining = MAX_PAIRS
    for pair in solids.near_pairs(distance):
        near = pair[:, chosen[pair].any(axis=0)]
        is_solid = bodies.solid[near].all(axis=0)
        touch = ~bodies.hollow[near].any(axis=0) | (bodies.parts[near[0]] == bodies.parts[near[1]])
        measured = np.flatnonzero(is_solid)[:remaining]
        remaining -= len(measured)
        for index, (a, b) in zip(measured.tolist(), near[:, measured].T.tolist(), strict=True):
            touch[index] = solids.get(a).min_gap(solids.get(b), 2 * distance) <= distance
        batches.append(near[:, touch])
    first, second = np.concatenate(batches, axis=1)
    return first, second


def find_cavities(bodies: Bodies) -> tuple[Float64, tuple[Place, ...]]:
    """Find the cavities of all parts, as far as no other body fills them.

    Args:
        bodies: Bodies in millimeters.
    Returns:
        (q,) empty volume of each cavity in mm³, the largest first, and their places.
    """
    chosen = np.flatnonzero(bodies.hollow)
    if len(chosen) == 0:
        return np.empty(0), ()
    solids = _Solids(bodies)
    inner: dict[int, list[int]] = {cavity: [] for cavity in chosen.tolist()}
    for pair in solids.near_pairs(0.0):
        for cavity, other in np.concatenate([pair, pair[::-1]], axis=1)[:, bodies.hollow[pair].ravel()].T.tolist():
            if not solids.is_host(other, cavity):
                inner[cavity].append(other)
    volumes, places = [], []
    for cavity, others in inner.items():
        whole, box = solids.measure_cavity(cavity)
        volume = whole if not others else solids.empty(cavity, others).volume()
        if volume > ROUNDING_RATIO * whole:
            volumes.append(volume)
            places.append(place_box(box, int(bodies.parts[cavity]), volume))
    order = np.argsort(-np.array(volumes), kind="stable")
    return np.array(volumes)[order], tuple(places[number] for number in order.tolist())


class _Solids:
    """Solids of bodies, created on demand."""

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies
        order = np.argsort(bodies.body, kind="stable")
        begin = np.searchsorted(bodies.body[order], np.arange(len(bodies.parts)))
        self._corners = bodies.corners[order]
        self._begin = np.append(begin, len(order))
        low, high = corner_extremes(self._corners)
        self._low, self._high = np.minimum.reduceat(low, begin), np.maximum.reduceat(high, begin)
        self._solids: dict[int, Manifold] = {}

    def pairs(self, depth: float) -> Iterator[tuple[int, int]]:
        """Yield the pairs of closed bodies whose boxes overlap by a depth, the smaller number first."""
        for first, second in pair_boxes(self._low + depth / 2, self._high - depth / 2):
            is_solid = self._bodies.solid[first] & self._bodies.solid[second]
            for a, b in zip(first[is_solid].tolist(), second[is_solid].tolist(), strict=True):
                yield min(a, b), max(a, b)

    def near_pairs(self, distance: float) -> Iterator[IntIndex]:
        """Yield the pairs (2, p) of bodies whose boxes are within a distance, in batches."""
        for pair in pair_boxes(self._low - distance / 2, self._high + distance / 2):
            yield np.stack(pair).astype(np.intp)

    def get(self, body: int) -> Manifold:
        """Return the solid of a closed body, or the one that fills a cavity."""
        if body not in self._solids:
            corners = self._corners[self._begin[body] : self._begin[body + 1]].reshape(-1, 3)
            first, index = weld(corners)
            faces = index.reshape(-1, 3).astype(np.uint64)
            if self._bodies.hollow[body]:
                faces = faces[:, ::-1].copy()
            self._solids[body] = Manifold(Mesh64(corners[first], faces))
        return self._solids[body]

    def is_host(self, body: int, cavity: int) -> bool:
        """Return whether a cavity may belong to a body: both are in one part, and its box is inside the body's."""
        return bool(
            self._bodies.parts[body] == self._bodies.parts[cavity]
            and (self._low[body] <= self._low[cavity]).all()
            and (self._high[body] >= self._high[cavity]).all()
        )

    def measure_cavity(self, cavity: int) -> tuple[float, Float64]:
        """Return the volume of a cavity, and its box (2, 3)."""
        corners = self._corners[self._begin[cavity] : self._begin[cavity + 1]]
        a, b, c = (corners - corners[0, 0]).transpose(1, 0, 2)
        volume = abs(float(np.einsum("ij,ij->", a, np.cross(b, c)))) / 6
        return volume, np.stack([self._low[cavity], self._high[cavity]])

    def empty(self, cavity: int, others: list[int]) -> Manifold:
        """Return the space of a cavity that other bodies leave empty; their own cavities are counted separately."""
        room = self.get(cavity)
        of_part = self._bodies.hollow & (np.arange(len(self._bodies.parts)) != cavity)
        for other in others:
            if self._bodies.hollow[other]:
                # of two nested cavities, the smaller one is counted separately
                if self.get(other).volume() < room.volume():
                    room -= self.get(other)
                continue
            if not self._bodies.solid[other]:
                continue
            material = self.get(cavity) ^ self.get(other)
            for inner in np.flatnonzero(of_part & (self._bodies.parts == self._bodies.parts[other])).tolist():
                material -= self.get(inner)
            room -= material
        return room

    def intersect(self, a: int, b: int) -> Manifold:
        """Return the material that two bodies have in common, without the cavities of their parts."""
        common = self.get(a) ^ self.get(b)
        low, high = np.array(common.bounding_box()).reshape(2, 3)
        is_near = (self._low <= high).all(axis=1) & (self._high >= low).all(axis=1)
        of_parts = np.isin(self._bodies.parts, self._bodies.parts[[a, b]])
        for cavity in np.flatnonzero(self._bodies.hollow & of_parts & is_near).tolist():
            common -= self.get(cavity)
        return common
