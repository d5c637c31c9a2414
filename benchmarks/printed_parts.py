"""Bad twins of parts that print well: each has one defect at a known place.

`benchmarks/check.py --printed` checks the parts and their twins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from manifold3d import Error, Manifold, Mesh64

from meshhub import Mesh, Registry
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import face_normals, soup, unit_vectors, welded

SUFFIXES = (".stl", ".3mf")
"""Formats of the parts."""

TRIES_COUNT = 60
"""Places at which a defect is tried; parts without a wall or a top of its size have no such twin."""

LEVEL = 0.02
"""Largest sine of the angle between a side and an upright plane."""

Random = np.random.Generator


class Twin(NamedTuple):
    """A part with a defect.

    solid:  what is checked
    center: (3,) the middle of the defect in mm; None if the whole model is at fault
    radius: mm around the center in which a finding is at the right place
    """

    solid: Manifold
    center: Float64 | None
    radius: float


def list_parts(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield name and path of each part."""
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() in SUFFIXES:
            yield path.stem, path


def read_solid(registry: Registry, path: Path) -> Manifold | None:
    """Return a part as a solid in mm; None if it is not closed."""
    vertices, faces = soup(registry.read(path))
    points, faces = welded(Mesh(vertices, faces))
    a, b, c = faces.T
    solid = Manifold(Mesh64(points, faces[(a != b) & (b != c) & (c != a)].astype(np.uint64)))
    return solid if solid.status() is Error.NoError and solid.volume() > 0 else None


def make_twins(solid: Manifold, random: Random) -> Iterator[tuple[str, Twin]]:
    """Yield the kinds and the twins of a part."""
    points, normals = _sample(solid, random)
    for kind, make in _KINDS.items():
        for number in random.permutation(len(points))[:TRIES_COUNT].tolist():
            twin = make(solid, points[number], normals[number])
            if twin is not None:
                yield kind, twin
                break


def _sample(solid: Manifold, random: Random) -> tuple[Float64, Float64]:
    """Return points that are evenly distributed on the surface, and the normals there."""
    mesh = solid.to_mesh64()
    vertices, faces = np.asarray(mesh.vert_properties)[:, :3], np.asarray(mesh.tri_verts).astype(np.int32)
    doubled = face_normals(vertices, faces)
    areas = np.linalg.norm(doubled, axis=1)
    face = random.choice(len(faces), 20_000, p=areas / areas.sum())
    weights = random.dirichlet((1.0, 1.0, 1.0), len(face))
    return np.einsum("ij,ijk->ik", weights, vertices[faces[face]]), unit_vectors(doubled[face])


def _place(solid: Manifold, point: Float64, normal: Float64) -> Manifold:
    """Return a solid whose X axis points along a horizontal normal, at a point."""
    return solid.rotate((0, 0, float(np.rad2deg(np.arctan2(normal[1], normal[0]))))).translate(point.tolist())


def _fills(solid: Manifold, probe: Manifold) -> bool:
    return (solid ^ probe).volume() > 0.999 * probe.volume()


def _is_free(solid: Manifold, probe: Manifold) -> bool:
    return (solid ^ probe).volume() < 1e-6


def _box(low: tuple[float, float, float], high: tuple[float, float, float]) -> Manifold:
    return Manifold.cube(np.subtract(high, low).tolist()).translate(low)


def _make_thin_wall(solid: Manifold, point: Float64, normal: Float64) -> Twin | None:
    """Cut out what is behind 0.3 mm of an upright side, 5 x 5 mm wide."""
    skin = _place(_box((-0.3, -3, -3), (-0.01, 3, 3)), point, normal)
    front = _place(_box((0.01, -3, -3), (1, 3, 3)), point, normal)
    if abs(normal[2]) > LEVEL or not _fills(solid, skin) or not _is_free(solid, front):
        return None
    pocket = _place(_box((-4, -2.5, -2.5), (-0.3, 2.5, 2.5)), point, normal)
    return Twin(solid - pocket, point - 0.15 * normal, 4.0)


def _make_pin(solid: Manifold, point: Float64, normal: Float64) -> Twin | None:
    """Put a pin of 0.4 mm on a face that looks up."""
    pin = Manifold.cylinder(6.2, 0.2, 0.2, 24).translate((point - [0, 0, 0.2]).tolist())
    room = Manifold.cylinder(8, 1, 1, 24).translate((point + [0, 0, 0.01]).tolist())
    foot = Manifold.cylinder(0.3, 1, 1, 24).translate((point - [0, 0, 0.31]).tolist())
    if normal[2] < 1 - LEVEL**2 or not _is_free(solid, room) or not _fills(solid, foot):
        return None
    return Twin(solid + pin, point + [0, 0, 3.0], 4.0)


def _make_gap(solid: Manifold, point: Float64, normal: Float64) -> Twin | None:
    """Cut a slot 0.1 mm wide into an upright side."""
    room = _place(_box((-4.5, -1.5, -3.0), (-0.01, 1.5, 3.0)), point, normal)
    if abs(normal[2]) > LEVEL or not _fills(solid, room):
        return None
    return Twin(solid - _place(_box((-4, -0.05, -2.5), (1, 0.05, 2.5)), point, normal), point - 2 * normal, 4.0)


def _make_floating(solid: Manifold, point: Float64, normal: Float64) -> Twin | None:
    """Add a block in the air, above a face that looks up."""
    center = point + [0, 0, 5.0]
    block = Manifold.cube((4, 4, 3), True).translate(center.tolist())
    room = Manifold.cube((6, 6, 5), True).translate(center.tolist())
    return Twin(solid + block, center, 4.0) if normal[2] > 0.9 and _is_free(solid, room) else None


def _make_overhang(solid: Manifold, point: Float64, normal: Float64) -> Twin | None:
    """Add a plate that reaches 30 mm into the air."""
    if abs(normal[2]) > LEVEL or point[2] < solid.bounding_box()[2] + 5:
        return None
    plate = _place(_box((-0.3, -5, -1), (30, 5, 1)), point, normal)
    room = _place(_box((0.01, -6, -100), (32, 6, 2)), point, normal)
    foot = _place(_box((-0.3, -5, -1), (-0.01, 5, 1)), point, normal)
    if not _is_free(solid, room) or not _fills(solid, foot):
        return None
    return Twin(solid + plate, point + 15 * normal, 20.0)


def _make_tenth(solid: Manifold, _: Float64, __: Float64) -> Twin:
    """Scale the part to a tenth."""
    return Twin(solid.scale((0.1, 0.1, 0.1)), None, 0.0)


def _make_large(solid: Manifold, _: Float64, __: Float64) -> Twin:
    """Scale the part to a meter."""
    factor = 1000 / float(np.ptp(np.array(solid.bounding_box()).reshape(2, 3), axis=0).max())
    return Twin(solid.scale((factor, factor, factor)), None, 0.0)


_KINDS: dict[str, Callable[[Manifold, Float64, Float64], Twin | None]] = {
    "wall of 0.3 mm": _make_thin_wall,
    "pin of 0.4 mm": _make_pin,
    "gap of 0.1 mm": _make_gap,
    "floating block": _make_floating,
    "overhang of 30 mm": _make_overhang,
    "scaled to 1/10": _make_tenth,
    "scaled to 1 m": _make_large,
}

TWIN_CODES: dict[str, frozenset[str]] = {
    "wall of 0.3 mm": frozenset({"thin_walls"}),
    "pin of 0.4 mm": frozenset({"thin_walls"}),
    "gap of 0.1 mm": frozenset({"narrow_gaps"}),
    "floating block": frozenset({"islands"}),
    "overhang of 30 mm": frozenset({"overhangs"}),
    "scaled to 1/10": frozenset({"thin_walls", "doubtful_unit"}),
    "scaled to 1 m": frozenset({"does_not_fit"}),
}
"""Codes of which one must be found in a twin of each kind."""

TWIN_CHECKS = {
    "wall of 0.3 mm": "walls",
    "pin of 0.4 mm": "walls",
    "gap of 0.1 mm": "gaps",
    "floating block": "islands",
    "overhang of 30 mm": "overhangs",
}
"""Checks that find defects with a place."""
