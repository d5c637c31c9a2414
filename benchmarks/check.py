"""Check generated shapes whose defects are known, and count what is found.

Usage: python benchmarks/check.py [--cases 60] [--seed 0] [--csv FILE] [--verbose]
           [--printed [--twins-every 1] | --speed | --thickness]

With --printed, real parts that print well as they stand (folder `../printed` beside MESHHUB_CORPUS) are checked, and
bad twins of them, each with one defect at a known place: how many parts are ready, and in how many twins the defect is
found at its place. With --twins-every 2, only every second part has twins.

With --speed, all checks run on models of a million triangles, each in its own process: seconds of each check, and
seconds, processor time and memory of all of them.

With --thickness, the thickness of ten closed parts of MESHHUB_CORPUS is compared with rays of pymeshlab, and with rays
and balls of MeshLib if it is installed (its license allows no dependency): the least, and that of the thinnest 5 %. The
other programs measure at the vertices, so all get the same mesh with short edges.

Each kind has as many shapes with a defect as without one. Walls and gaps have any size, direction and fineness of
triangles, and are those of resin; values within 3 % of the limit are left out, because both answers are right there.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import importlib.util
import multiprocessing
import os
import platform
import resource
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from manifold3d import Error, Manifold, Mesh64

from meshhub import Material, Mesh, Part, Registry, Scene
from meshhub.errors import MeshhubError
from meshhub.model.scene import Float64
from meshhub.model.verdict import Verdict
from meshhub.toolkit.geometry import welded
from meshhub.toolkit.thickness import OppositeSides, sample_evenly
from printed_parts import TWIN_CHECKS, TWIN_CODES, Twin, list_parts, make_twins, read_solid
from reduction import make_sphere

WALL_MM, GAP_MM, BRIDGE_MM, REACH_MM = 0.6, 0.2, 30.0, 3.6
"""Limits of the checks: walls and gaps of resin, and bridges and overhangs of a nozzle of 0.4 mm."""

RESIN = MappingProxyType({"print_process": "resin"})
"""Process whose walls have one thickness in any direction; filament is judged by lines within layers."""

OVERHANG_DEG = 35.0
"""Angle from the bed under which a long slope needs support."""

UNDECIDED_RATIO = 0.03
"""Distance from a limit within which a finding is neither right nor wrong."""

UNDECIDED_MM = 0.4
"""The same for overhangs, in cells of 0.2 mm."""

Random = np.random.Generator


class Case(NamedTuple):
    """A shape, and what a check must say.

    parts:  solids, or meshes
    value:  the worst value: mm, mm² or a number; 0 if it is not known
    is_bad: whether it must be found
    """

    parts: tuple[Manifold | Mesh, ...]
    value: float
    is_bad: bool


class Kind(NamedTuple):
    """Shapes with one kind of defect; `make` gets whether the shape has it."""

    name: str
    check: str
    code: str
    make: Callable[[Random, bool], Case]
    options: Mapping[str, Any] = MappingProxyType({})


def draw(random: Random, limit: float, is_bad: bool, low: float = 0.2, high: float = 4.0) -> float:
    """Return a length under a limit, or over it, by more than UNDECIDED_RATIO."""
    if is_bad:
        return float(random.uniform(low, 1 - UNDECIDED_RATIO) * limit)
    return float(random.uniform(1 + UNDECIDED_RATIO, high) * limit)


def turn(random: Random, solid: Manifold) -> Manifold:
    """Turn a solid in any direction, and split its triangles or not."""
    edge = float(random.choice([0.7, 2.0, 100.0]))
    return solid.refine_to_length(edge).rotate(random.uniform(0, 360, 3).tolist())


def block(x: float, y: float, z: float, at: tuple[float, float, float] = (0, 0, 0)) -> Manifold:
    """Return a block with its lower corner at a point."""
    return Manifold.cube((x, y, z)).translate(at)


def make_plate(random: Random, is_bad: bool) -> Case:
    """A plate of one thickness."""
    thickness = draw(random, WALL_MM, is_bad)
    x, y = random.uniform(8, 40, 2)
    return Case((turn(random, block(x, y, thickness)),), thickness, is_bad)


def make_ribbed(random: Random, is_bad: bool) -> Case:
    """A thick plate with a rib."""
    thickness = draw(random, WALL_MM, is_bad)
    plate = block(30, 20, 3) + block(30, thickness, float(random.uniform(4, 15)), (0, 9, 2.9))
    return Case((turn(random, plate),), thickness, is_bad)


def make_tube(random: Random, is_bad: bool) -> Case:
    """A tube; the wall is thinnest in the middle of its facets."""
    thickness, radius, segments = (
        draw(random, WALL_MM, is_bad),
        float(random.uniform(5, 15)),
        int(random.integers(24, 129)),
    )
    outer = Manifold.cylinder(12, radius, radius, segments)
    inner = Manifold.cylinder(14, radius - thickness, radius - thickness, segments).translate((0, 0, -1))
    return Case((turn(random, outer - inner),), thickness * float(np.cos(np.pi / segments)), is_bad)


def make_shell(random: Random, is_bad: bool) -> Case:
    """A hollow ball with a window."""
    thickness, radius = draw(random, WALL_MM, is_bad), float(random.uniform(8, 15))
    ball = Manifold.sphere(radius, 96) - Manifold.sphere(radius - thickness, 96)
    window = block(40, 40, 40, (-20, -20, (radius - thickness) / 2))
    return Case((turn(random, ball - window),), thickness, is_bad)


def make_pin(random: Random, is_bad: bool) -> Case:
    """A plate with a round pin; its flats are nearer than its corners."""
    diameter, segments = draw(random, WALL_MM, is_bad, low=0.3), 2 * int(random.integers(8, 33))
    pin = Manifold.cylinder(8, diameter / 2, diameter / 2, segments).translate((5, 5, 2))
    return Case((turn(random, block(10, 10, 2.5) + pin),), diameter * float(np.cos(np.pi / segments)), is_bad)


def make_solid(random: Random, _: bool) -> Case:
    """A thick body with sharp tips, edges and holes: nothing is thin."""
    kind = int(random.integers(4))
    size = float(random.uniform(8, 30))
    solids = (
        Manifold.cylinder(size, size / 2, 0, 64),
        Manifold.tetrahedron().scale((size, size, size)),
        Manifold.sphere(size, 64),
        block(size, size, size)
        - Manifold.cylinder(3 * size, size / 4, size / 4, 48).translate((size / 2, size / 2, -1)),
    )
    return Case((turn(random, solids[kind]),), 0.0, is_bad=False)


def make_parted(random: Random, is_bad: bool) -> Case:
    """Two blocks as parts, with a gap between them."""
    gap = draw(random, GAP_MM, is_bad)
    angles = random.uniform(0, 360, 3).tolist()
    pair = block(12, 12, 6), block(12, 12, 6, (float(random.uniform(0, 4)), 0, 6 + gap))
    return Case(tuple(solid.rotate(angles) for solid in pair), gap, is_bad)


def make_slot(random: Random, is_bad: bool) -> Case:
    """A block with a slot."""
    gap = draw(random, GAP_MM, is_bad)
    return Case((turn(random, block(20, 10, 10) - block(10, gap, 20, (10, 5, -5))),), gap, is_bad)


def make_joint(random: Random, is_bad: bool) -> Case:
    """A pin in a hole, as parts; the gap is narrowest where facets of the hole are in front of corners of the pin."""
    gap, radius = draw(random, GAP_MM, is_bad), float(random.uniform(2, 6))
    hole = Manifold.cylinder(12, radius + gap, radius + gap, 96).translate((0, 0, -1))
    ring = Manifold.cylinder(10, radius + gap + 3, radius + gap + 3, 96) - hole
    pin = Manifold.cylinder(14, radius, radius, 96).translate((0, 0, -2))
    angles = random.uniform(0, 360, 3).tolist()
    return Case((ring.rotate(angles), pin.rotate(angles)), gap, is_bad)


def make_overhang(random: Random, is_bad: bool) -> Case:
    """A prism whose underside rises from the bed, and reaches beyond the slope that needs no support."""
    while True:
        angle, width, reach = (
            np.deg2rad(random.uniform(5, 80)),
            float(random.uniform(5, 20)),
            float(random.uniform(1, 30)),
        )
        beyond = reach * (1 - float(np.tan(angle) / np.tan(np.deg2rad(OVERHANG_DEG))))
        if abs(beyond - REACH_MM) > UNDECIDED_MM and (beyond > REACH_MM) == is_bad:
            break
    rise = reach * float(np.tan(angle))
    points = [(0, 0), (10, 0), (10 + reach, rise), (10 + reach, rise + 5), (0, rise + 5)]
    corners = [(x, y, z) for x, z in points for y in (0.0, width)]
    spin = float(random.uniform(0, 360))
    # the profile is not convex only above, so the hull of its lower side is the prism
    return Case((Manifold.hull_points(corners).rotate((0, 0, spin)),), 0.0, is_bad)


def make_islands(random: Random, is_bad: bool) -> Case:
    """A table with legs that hang from it, or stand."""
    count = int(random.integers(1, 6)) if is_bad else 0
    length = float(random.uniform(3, 8))
    solid = block(60, 10, 3, (0, 0, 10)) + block(3, 10, 11) + block(3, 10, 11, (57, 0, 0))
    for number in range(count):
        solid += block(3, 3, length + 0.1, (7 + 9 * number, 3, 10 - length))
    return Case((solid.rotate((0, 0, float(random.uniform(0, 360)))),), float(count), is_bad)


def make_bridge(random: Random, is_bad: bool) -> Case:
    """Two posts and a beam."""
    length = draw(random, BRIDGE_MM, is_bad=not is_bad, low=0.3, high=3.0)
    beam = block(length + 10, 6, 3, (0, 0, 10)) + block(5, 6, 11) + block(5, 6, 11, (length + 5, 0, 0))
    return Case((beam,), length, is_bad)


def make_body(random: Random, size: float) -> Manifold:
    """Return a convex body of about a size in any direction, with coarse or fine triangles."""
    segments = int(random.integers(12, 65))
    solid = (
        Manifold.cube((size, size * float(random.uniform(0.3, 1)), size), True),
        Manifold.sphere(size / 2, segments),
        Manifold.cylinder(size, size / 2, size * float(random.uniform(0, 0.5)), segments, True),
    )[int(random.integers(3))]
    edge = size * float(random.choice([0.1, 0.4, 4.0]))
    return solid.refine_to_length(edge).rotate(random.uniform(0, 360, 3).tolist())


def join(random: Random, *bodies: Manifold) -> tuple[Manifold | Mesh, ...]:
    """Return bodies as parts, or as one mesh."""
    return bodies if random.random() < 0.5 else (merge(*map(to_mesh, bodies)),)


def make_pair(random: Random, is_bad: bool) -> Case:
    """Two bodies that overlap, or touch, or are at least 1e-4 of their size apart."""
    size = float(10 ** random.uniform(0.5, 2))
    if not is_bad and random.random() < 0.3:
        # face to face, edge to edge, or corner to corner
        steps = [1.0, *random.integers(0, 2, 2).tolist()]
        cube = Manifold.cube((size, size, size)).refine_to_length(size * float(random.choice([0.2, 4.0])))
        spin = random.uniform(0, 360, 3).tolist()
        other = cube.translate([size * step for step in steps])
        return Case(join(random, cube.rotate(spin), other.rotate(spin)), 0.0, is_bad)
    one, other = make_body(random, size), make_body(random, size * float(random.uniform(0.3, 1)))
    direction = random.normal(size=3)
    direction /= np.linalg.norm(direction)
    near, far = 0.0, 3 * size
    for _ in range(40):
        middle = (near + far) / 2
        is_apart = (one ^ other.translate((middle * direction).tolist())).volume() <= 0
        near, far = (near, middle) if is_apart else (middle, far)
    gap = size * (-(10 ** random.uniform(-2.5, -0.5)) if is_bad else 10 ** random.uniform(-4, -1))
    return Case(join(random, one, other.translate(((far + gap) * direction).tolist())), 2.0 * is_bad, is_bad)


def make_nested(random: Random, is_bad: bool) -> Case:
    """A body in the material of another one of the same part, or as its cavity, or beside it."""
    size = float(10 ** random.uniform(0.5, 2))
    inner, outer = make_body(random, 0.3 * size), to_mesh(Manifold.sphere(size, int(random.integers(24, 65))))
    if is_bad or random.random() < 0.5:
        body = to_mesh(inner.translate(random.uniform(-0.3, 0.3, 3) * size))
        if not is_bad:
            body = Mesh(body.vertices, body.faces[:, ::-1].copy())
    else:
        body = to_mesh(inner.translate((1.5 * size, 0, 0)))
    return Case((merge(outer, body),), 1.0 * is_bad, is_bad)


def make_copy(random: Random, is_bad: bool) -> Case:
    """A part twice in the same place, or beside itself by 1e-4 of its size."""
    size = float(10 ** random.uniform(0.5, 2))
    solid = make_body(random, size)
    mesh = to_mesh(solid)
    other = mesh if is_bad else to_mesh(solid.translate((1e-4 * size, 0, 0)))
    return Case((mesh, other), 1.0 * is_bad, is_bad)


def make_doubled(random: Random, is_bad: bool) -> Case:
    """A body with some faces twice, which may start at another corner."""
    mesh = to_mesh(make_body(random, float(10 ** random.uniform(0.5, 2))))
    if not is_bad:
        return Case((mesh,), 0.0, is_bad)
    count = int(random.integers(1, len(mesh.faces) // 2))
    chosen = random.choice(len(mesh.faces), count, replace=False)
    doubled = np.roll(mesh.faces[chosen], int(random.integers(3)), axis=1)
    return Case((Mesh(mesh.vertices, np.concatenate([mesh.faces, doubled])),), float(count), is_bad)


def make_loop(random: Random, is_bad: bool) -> Case:
    """A tube along a figure of eight, whose passages go through each other or do not."""
    radius, rings, sides = float(random.uniform(0.05, 0.15)), int(random.integers(60, 200)), int(random.integers(6, 25))
    height = radius * float(random.uniform(0.1, 0.7) if is_bad else random.uniform(1.1, 2))
    angle = np.linspace(0, 2 * np.pi, rings, endpoint=False)
    # a whole number of rings per half, so that the passages meet where their heights are largest
    path = np.stack([np.sin(angle), np.sin(2 * angle) / 2, height * np.cos(angle)], axis=1)
    along = np.roll(path, -1, axis=0) - np.roll(path, 1, axis=0)
    across = np.cross(along, [0.0, 0.0, 1.0])
    up = np.cross(across, along)
    across, up = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True) for vectors in (across, up))
    turn = np.linspace(0, 2 * np.pi, sides, endpoint=False)
    circle = across[:, None] * np.cos(turn)[:, None] + up[:, None] * np.sin(turn)[:, None]
    index = np.arange(rings * sides).reshape(rings, sides)
    a, b = index, np.roll(index, -1, axis=0)
    c, d = np.roll(index, -1, axis=1), np.roll(b, -1, axis=1)
    faces = np.concatenate([np.stack([a, b, d], axis=-1), np.stack([a, d, c], axis=-1)]).reshape(-1, 3)
    points = (path[:, None] + radius * circle).reshape(-1, 3) * 10 ** random.uniform(0.7, 2)
    rotation, _ = np.linalg.qr(random.normal(size=(3, 3)))
    return Case((Mesh(points @ rotation, faces.astype(np.int32)),), 0.0, is_bad)


def make_sheet(random: Random, is_bad: bool) -> Case:
    """Cloth with waves, or a thin closed plate, or a body with a hole."""
    size = float(10 ** random.uniform(1, 2.3))
    if is_bad:
        count = int(random.integers(4, 60))
        x, y = np.meshgrid(np.linspace(0, 1, count), np.linspace(0, random.uniform(0.3, 1), count))
        z = random.uniform(0, 0.08) * np.sin(x * random.uniform(2, 12)) * np.cos(y * random.uniform(2, 12))
        points = np.stack([x, y, z], axis=-1).reshape(-1, 3) * size
        index = np.arange(count**2).reshape(count, count)
        a, b, c, d = index[:-1, :-1], index[:-1, 1:], index[1:, :-1], index[1:, 1:]
        faces = np.concatenate([np.stack([a, b, d], axis=-1), np.stack([a, d, c], axis=-1)]).reshape(-1, 3)
        rotation, _ = np.linalg.qr(random.normal(size=(3, 3)))
        return Case((Mesh(points @ rotation, faces.astype(np.int32)),), 1.0, is_bad)
    if random.random() < 0.5:
        return Case((turn(random, block(size, size, float(random.uniform(0.2, 2)))),), 0.0, is_bad)
    mesh = to_mesh(make_body(random, size).refine(2))
    centers = mesh.vertices[mesh.faces].mean(axis=1)
    distance = np.linalg.norm(centers - centers[int(random.integers(len(centers)))], axis=1)
    return Case((Mesh(mesh.vertices, mesh.faces[distance > 0.25 * size]),), 0.0, is_bad)


def make_colors(random: Random, is_bad: bool) -> Case:
    """Blocks in more colors than the printer has filaments, or in as many; each color may come twice."""
    count = int(random.integers(FILAMENTS_COUNT + 1, 12)) if is_bad else int(random.integers(1, FILAMENTS_COUNT + 1))
    faces = block(10, 10, 10).to_mesh().tri_verts.shape[0]
    meshes = []
    for number in range(count + int(random.integers(0, 3))):
        mesh = to_mesh(block(10, 10, 10, (12.0 * number, 0, 0)))
        meshes.append(replace(mesh, face_material=np.full(faces, number % count, np.int32)))
    return Case(tuple(meshes), float(count), is_bad)


FILAMENTS_COUNT = 4
"""Filaments of the printer for which colors are counted."""

KINDS = (
    Kind("plates", "walls", "thin_walls", make_plate, RESIN),
    Kind("ribs", "walls", "thin_walls", make_ribbed, RESIN),
    Kind("tubes", "walls", "thin_walls", make_tube, RESIN),
    Kind("shells of balls", "walls", "thin_walls", make_shell, RESIN),
    Kind("pins", "walls", "thin_walls", make_pin, RESIN),
    Kind("thick bodies", "walls", "thin_walls", make_solid, RESIN),
    Kind("gaps between parts", "gaps", "narrow_gaps", make_parted, RESIN),
    Kind("slots", "gaps", "narrow_gaps", make_slot, RESIN),
    Kind("pins in holes", "gaps", "narrow_gaps", make_joint, RESIN),
    Kind("overhangs", "overhangs", "overhangs", make_overhang),
    Kind("islands", "islands", "islands", make_islands),
    Kind("bridges", "spans", "long_bridges", make_bridge),
    Kind("overlapping bodies", "overlaps", "overlapping_bodies", make_pair),
    Kind("bodies in bodies", "overlaps", "nested_bodies", make_nested),
    Kind("parts that lie twice", "overlaps", "duplicate_parts", make_copy),
    Kind("faces that lie twice", "overlaps", "duplicate_faces", make_doubled),
    Kind("tubes through themselves", "overlaps", "self_intersections", make_loop),
    Kind("sheets", "mesh", "open_surface", make_sheet),
    Kind("colors", "size", "too_many_colors", make_colors, {"print_printer": "bambu-a1"}),
)


def to_mesh(solid: Manifold) -> Mesh:
    """Return a solid as a mesh, in the precision of an STL file."""
    mesh = solid.to_mesh64()
    points = np.asarray(mesh.vert_properties)[:, :3].astype(np.float32).astype(np.float64)
    return Mesh(points, np.asarray(mesh.tri_verts).astype(np.int32))


def merge(*meshes: Mesh) -> Mesh:
    """Return the faces of all meshes as one mesh."""
    begin = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    faces = [mesh.faces + first for mesh, first in zip(meshes, begin.tolist(), strict=False)]
    return Mesh(np.concatenate([mesh.vertices for mesh in meshes]), np.concatenate(faces).astype(np.int32))


def as_scene(parts: tuple[Manifold | Mesh, ...]) -> Scene:
    """Return solids and meshes as parts of a scene; equal meshes are one, and each material has its own color."""
    meshes = [to_mesh(part) if isinstance(part, Manifold) else part for part in parts]
    distinct = list(dict.fromkeys(meshes))
    count = max((int(mesh.face_material.max()) + 1 for mesh in meshes if mesh.face_material is not None), default=0)
    return Scene(
        meshes=tuple(distinct),
        parts=tuple(Part(distinct.index(mesh)) for mesh in meshes),
        materials=tuple(Material(str(number), (number / 12, 0.5, 0.5, 1.0)) for number in range(count)),
    )


FACES_COUNT = 1_000_000
"""Triangles of the models whose checks are timed."""


def make_balls() -> Scene:
    """A body of balls that were united, with fine triangles."""
    random, solid = np.random.default_rng(1), Manifold()
    for _ in range(60):
        solid += Manifold.sphere(float(random.uniform(6, 14)), 48).translate(random.uniform(-35, 35, 3).tolist())
    solid = max(solid.decompose(), key=lambda body: body.num_tri())
    return as_scene(
        (solid.refine_to_length(1.14 * float(np.sqrt(4 * solid.surface_area() / np.sqrt(3) / FACES_COUNT))),)
    )


def make_plate_of_parts() -> Scene:
    """A large ball with waves, and 40 small ones beside it, some of which overlap."""
    vertices, faces = make_sphere(FACES_COUNT * 4 // 5)
    small, small_faces = make_sphere(FACES_COUNT // 200)
    meshes = [Mesh(vertices.astype(np.float32).astype(np.float64), faces)]
    for x, y in np.random.default_rng(2).uniform(-45, 45, (40, 2)):
        points = small * 0.08 + np.array([x + 120, y, 0])
        meshes.append(Mesh(points.astype(np.float32).astype(np.float64), small_faces))
    return Scene(tuple(meshes), tuple(Part(number) for number in range(len(meshes))))


SPEED_MODELS: dict[str, Callable[[], Scene]] = {"united balls": make_balls, "ball and 40 parts": make_plate_of_parts}


def time_checks(name: str) -> list[tuple[str, int, str, float, float | str, int | str]]:
    """Check a large model in this process; return a row for each check, and one for all of them.

    Returns:
        Name of the model, triangles, check, seconds; for all also seconds of the processor, and largest resident memory
        in MB. Checks run at the same time, so that only all of them have both.
    """
    scene = SPEED_MODELS[name]()
    with Registry(entry_points=False) as registry:
        # libraries load once in a worker
        registry.check(as_scene((block(10, 10, 10),)))
        begin, cpu_begin = time.perf_counter(), time.process_time()
        verdict = registry.check(scene)
        seconds, cpu_seconds = time.perf_counter() - begin, time.process_time() - cpu_begin
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    rows = [(name, scene.face_count, check.step, round(check.seconds, 2), "", "") for check in verdict.checks]
    return [*rows, (name, scene.face_count, "all", round(seconds, 2), round(cpu_seconds, 2), memory)]


def write_csv(path: Path, names: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Write rows with the machine and the day before them."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("machine", "recorded", *names))
        writer.writerows((platform.machine(), datetime.date.today().isoformat(), *row) for row in rows)


PARTS_COUNT = 10
"""Parts whose thickness is compared."""

EDGES_PER_DIAGONAL = 150
"""Edges of the compared meshes along the diagonal of the part."""

MIN_FACES_COUNT, MAX_FACES_COUNT = 200, 100_000
"""Triangles of the parts: more than a block has, and few enough for the slowest program."""


def list_solids(folder: Path) -> list[tuple[str, Manifold]]:
    """Return the first closed parts of a corpus, with short edges."""
    solids = []
    with Registry(entry_points=False) as registry:
        for path in sorted((folder / "stl").iterdir()):
            try:
                mesh = compact(registry.read(path).meshes[0])
            except MeshhubError:
                continue
            if not MIN_FACES_COUNT <= len(mesh.faces) <= MAX_FACES_COUNT:
                continue
            solid = Manifold(Mesh64(mesh.vertices.copy(), mesh.faces.astype(np.uint64)))
            if solid.status() is Error.NoError and solid.volume() > 0:
                low, high = np.array(solid.bounding_box()).reshape(2, 3)
                edge = float(np.linalg.norm(high - low)) / EDGES_PER_DIAGONAL
                solids.append((path.stem.rpartition("__")[2], solid.refine_to_length(edge)))
            if len(solids) == PARTS_COUNT:
                break
    return solids


def compact(mesh: Mesh) -> Mesh:
    """Return a mesh whose points are distinct."""
    points, faces = welded(mesh)
    a, b, c = faces.T
    return Mesh(points, faces[(a != b) & (b != c) & (c != a)])


def measure_ours(mesh: Mesh) -> dict[str, Float64]:
    """Measure with rays of meshhub, at the points that a check measures."""
    samples = sample_evenly(mesh.vertices, mesh.faces, WALL_MM)
    limit = float(np.linalg.norm(np.ptp(mesh.vertices, axis=0)))
    sides = OppositeSides(mesh.vertices, mesh.faces, samples)
    return {"meshhub ray": sides.measure(np.arange(len(samples.points)), limit)}


def measure_pymeshlab(mesh: Mesh) -> dict[str, Float64]:
    """Measure with rays of the shape diameter function, in a cone of a degree."""
    import pymeshlab

    meshes = pymeshlab.MeshSet(verbose=False)
    meshes.add_mesh(pymeshlab.Mesh(mesh.vertices, mesh.faces))
    meshes.compute_scalar_by_shape_diameter_function_per_vertex(rays=1, cone_amplitude=1.0)
    return {"pymeshlab ray": np.asarray(meshes.current_mesh().vertex_scalar_array())}


def measure_meshlib(mesh: Mesh) -> dict[str, Float64]:
    """Measure with rays and balls of MeshLib."""
    from meshlib import mrmeshnumpy, mrmeshpy

    own = mrmeshnumpy.meshFromFacesVerts(mesh.faces, mesh.vertices)
    rays = mrmeshpy.computeRayThicknessAtVertices(own)
    settings = mrmeshpy.InSphereSearchSettings()
    settings.maxRadius = float(np.linalg.norm(np.ptp(mesh.vertices, axis=0)))
    balls = mrmeshpy.computeInSphereThicknessAtVertices(own, settings)
    return {
        f"MeshLib {name}": np.array([float(value) for value in values.vec])
        for name, values in (("ray", rays), ("ball", balls))
    }


def compare_thickness(folder: Path, path: Path | None) -> None:
    """Print and write the thickness of parts by each program."""
    rows = []
    measures = [measure_ours, measure_pymeshlab]
    if importlib.util.find_spec("meshlib") is not None:
        measures.append(measure_meshlib)
    for name, solid in list_solids(folder):
        mesh = to_mesh(solid)
        for measure in measures:
            for method, values in measure(mesh).items():
                # rays without an opposite side, and balls above the limit
                known = values[np.isfinite(values) & (values > 0) & (values < 1e30)]
                row = (name, len(mesh.faces), method, f"{known.min():.4g}", f"{np.quantile(known, 0.05):.4g}")
                rows.append(row)
                print(*row, sep="\t", flush=True)
    if path is not None:
        write_csv(path, ("part", "triangles", "method", "least_mm", "thinnest_5_percent_mm"), rows)


class Tally(NamedTuple):
    """Results of one kind; errors: relative errors of the value of what was found."""

    bad_count: int
    found_count: int
    good_count: int
    alarm_count: int
    errors: list[float]


def judge(registry: Registry, kind: Kind, count: int, random: Random, *, verbose: bool) -> Tally:
    """Check the shapes of a kind, half of them with a defect."""
    bad_count = found_count = good_count = alarm_count = 0
    errors = []
    for number in range(count):
        case = kind.make(random, number % 2 == 0)
        verdict = registry.check(as_scene(case.parts), checks=kind.check, **kind.options)
        finding = next((finding for finding in verdict.findings if finding.code == kind.code), None)
        is_right = (finding is not None) == case.is_bad
        error = 0.0
        if case.is_bad:
            bad_count += 1
            if finding is not None:
                found_count += 1
                value = finding.places_found if kind.code == "islands" else finding.amount or 0.0
                if case.value:
                    error = value / case.value - 1
                    errors.append(error)
        else:
            good_count += 1
            alarm_count += finding is not None
        if verbose and (not is_right or abs(error) > UNDECIDED_RATIO):
            print(f"  {kind.name} {number}: value {case.value:.4g}, bad: {case.is_bad}, "
                  f"found: {None if finding is None else finding.message}")  # fmt: skip
    return Tally(bad_count, found_count, good_count, alarm_count, errors)


def check_part(job: tuple[str, Path, bool]) -> tuple[str, str, float, list[tuple[str, bool]]]:
    """Check a part and its twins; return its name, verdict and support in g, and which kinds of defects are found.

    Args:
        job: Name, file, and whether the part has twins.
    """
    name, path, has_twins = job
    with Registry(entry_points=False) as registry:
        verdict = registry.check(path)
        support = verdict.estimate.support_weight_g if verdict.estimate is not None else 0.0
        solid = read_solid(registry, path) if has_twins else None
        twins = []
        if solid is not None:
            # the seed depends on the part alone, not on the others
            for kind, twin in make_twins(solid, np.random.default_rng(zlib.crc32(name.encode()))):
                scene = as_scene((twin.solid,))
                if twin.center is None:
                    answer = registry.check(scene, skip_checks="estimate,cups")
                else:
                    # checks do not depend on each other, so that one is enough for a defect with a place
                    answer = registry.check(scene, checks=TWIN_CHECKS[kind])
                twins.append((kind, is_found(kind, twin, answer)))
    return name, verdict.verdict, support, twins


def is_found(kind: str, twin: Twin, verdict: Verdict) -> bool:
    """Return whether a verdict reports the defect of a twin at its place."""
    findings = [finding for finding in verdict.findings if finding.code in TWIN_CODES[kind]]
    if twin.center is None:
        return verdict.verdict != "ready"
    center = twin.center
    places = [np.array(place.position_mm) for finding in findings for place in finding.places]
    return any(float(np.linalg.norm(place - center)) <= twin.radius for place in places)


def measure_printed(folder: Path, path: Path | None, every: int, *, verbose: bool) -> None:
    """Print and write how many parts are ready, and how many defects of the twins of every so many are found."""
    jobs = [(name, part, number % every == 0) for number, (name, part) in enumerate(list_parts(folder))]
    parts = []
    with multiprocessing.get_context("spawn").Pool() as pool:
        for name, verdict, support, twins in pool.imap(check_part, jobs):
            parts.append((name, verdict, support, twins))
            missed = [kind for kind, is_right in twins if not is_right]
            if verbose and (verdict != "ready" or missed):
                print(f"  {name}: {verdict}, missed: {', '.join(missed) or 'none'}", flush=True)
    verdicts = [verdict for _, verdict, _, _ in parts]
    rows: list[tuple[str, int, int, int, int]] = [
        ("parts as they stand", len(parts), verdicts.count("ready"), verdicts.count("will_not_print"),
         sum(support > 0 for _, _, support, _ in parts))
    ]  # fmt: skip
    for kind in TWIN_CODES:
        found = [is_right for *_, twins in parts for own, is_right in twins if own == kind]
        rows.append((kind, len(found), sum(found), 0, 0))
    for row in rows:
        print(*row, sep="\t")
    if path is not None:
        write_csv(path, ("models", "count", "right", "will_not_print", "with_support"), rows)


def main() -> None:
    """Print and write one row for each kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=60, help="shapes of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--csv", type=Path, help="file to write the rows to")
    parser.add_argument("--verbose", action="store_true", help="print each wrong answer")
    parser.add_argument("--printed", action="store_true", help="check parts that print well, and bad twins of them")
    parser.add_argument("--twins-every", type=int, default=1, help="of how many printed parts one has bad twins")
    parser.add_argument("--speed", action="store_true", help="time checks of large models instead")
    parser.add_argument("--thickness", action="store_true", help="compare the thickness of real parts instead")
    arguments = parser.parse_args()
    if arguments.printed:
        folder = Path(os.environ["MESHHUB_CORPUS"]).parent / "printed"
        measure_printed(folder, arguments.csv, arguments.twins_every, verbose=arguments.verbose)
    elif arguments.speed:
        measure_speed(arguments.csv)
    elif arguments.thickness:
        compare_thickness(Path(os.environ["MESHHUB_CORPUS"]), arguments.csv)
    else:
        measure_truth(arguments.cases, arguments.seed, arguments.csv, verbose=arguments.verbose)


def measure_speed(path: Path | None) -> None:
    """Print and write the seconds of checks."""
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        rows = [row for rows in pool.map(time_checks, SPEED_MODELS, chunksize=1) for row in rows]
    for row in rows:
        print(*row, sep="\t")
    if path is not None:
        write_csv(path, ("model", "triangles", "check", "seconds", "cpu_seconds", "resident_mb"), rows)


def measure_truth(cases: int, seed: int, path: Path | None, *, verbose: bool) -> None:
    """Print and write how many defects are found."""
    rows = []
    with Registry(entry_points=False) as registry:
        for kind in KINDS:
            tally = judge(registry, kind, cases, np.random.default_rng(seed), verbose=verbose)
            off = np.abs(tally.errors) * 100
            row = (
                kind.name, tally.bad_count, tally.found_count, tally.good_count, tally.alarm_count,
                f"{np.median(off):.2f}" if len(off) else "", f"{off.max():.2f}" if len(off) else "",
            )  # fmt: skip
            rows.append(row)
            print(*row, sep="\t", flush=True)
    if path is not None:
        names = "shapes,with_defect,found,without,false_alarms,median_error_percent,largest_error_percent"
        write_csv(path, names.split(","), rows)


if __name__ == "__main__":
    main()
