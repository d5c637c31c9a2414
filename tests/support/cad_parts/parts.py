"""Random parts: plates, blocks, boxes, brackets, turned parts, and parts with free-form faces.

A number determines a part and its triangles. `make` writes the triangles as binary STL, which rounds them to 32 bits.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any, NamedTuple

from cad_parts import occ
from cad_parts.features import CELL_MM, FEATURES, Place
from cad_parts.scad import Scad

MAX_TRIANGLES_COUNT = 30_000
"""Triangles of a part; bounds the time of its conversion and check."""


class Design(NamedTuple):
    """A part before it is placed.

    style:    name of the kind of part
    features: names of its features
    build:    builds the solid with a kernel
    """

    style: str
    features: list[str]
    shape: Any


def plate(kernel: Any, chance: random.Random) -> tuple[Any, list[str]]:
    """Build a plate with up to four features beside each other."""
    thickness, count = chance.choice([4.0, 10.0, chance.uniform(3, 15)]), chance.randrange(1, 5)
    part = kernel.box(CELL_MM * count / 2, 0, 0, thickness, CELL_MM * count, CELL_MM)
    names = []
    for cell in range(count):
        feature = chance.choice(FEATURES)
        names.append(feature.__name__)
        part = feature(kernel, part, Place(CELL_MM * (cell + 0.5), 0, thickness, thickness), chance)
    if kernel.has_fillets and chance.random() < 0.4:
        part = kernel.round_edges(kernel.unify(part), chance, (0.3, 1.5))
        names.append("rounded")
    return part, names


def block(kernel: Any, chance: random.Random) -> tuple[Any, list[str]]:
    """Build a box or a pin from which round and square tools are cut at random places, or joined to it."""
    begin = chance.randrange(4)
    if begin < 2:
        length, width, high = (chance.uniform(*sides) for sides in ((20, 60), (20, 60), (8, 30)))
        part = kernel.box(length / 2, width / 2, 0, high, length, width)
    elif begin == 2:
        part = kernel.cylinder(0, 0, 0, chance.uniform(8, 40), chance.uniform(8, 25))
    else:
        wide = kernel.cylinder(0, 0, 0, chance.uniform(5, 15), chance.uniform(10, 25))
        part = kernel.join(wide, kernel.cylinder(0, 0, 0, chance.uniform(20, 40), chance.uniform(3, 9)))
    for _ in range(chance.randrange(5)):
        part = (kernel.cut if chance.random() < 0.75 else kernel.join)(part, _tool(kernel, chance))
    names = ["tools"]
    if kernel.has_fillets and chance.random() < 0.7:
        part = kernel.round_edges(part, chance)
        names.append("rounded")
    return part, names


def _tool(kernel: Any, chance: random.Random) -> Any:
    """Return a random body that is cut from a part or joined to it."""
    kind = chance.random()
    if kind < 0.5:
        tool = kernel.cylinder(0, 0, 0, chance.uniform(5, 80), chance.uniform(1.5, 6))
    elif kind < 0.65:
        tool = kernel.cylinder(0, 0, 0, chance.uniform(4, 20), chance.uniform(1, 4), chance.uniform(4, 9))
    elif kind < 0.75:
        tool = kernel.ball(0, 0, 0, chance.uniform(3, 9))
    elif kind < 0.8:
        tool = kernel.ring(0, 0, 0, chance.uniform(8, 14), chance.uniform(1, 4))
    else:
        tool = kernel.box(0, 0, 0, chance.uniform(5, 60), chance.uniform(3, 15), chance.uniform(3, 15))
    axis, degrees = chance.choice([((0, 1, 0), 90), ((1, 0, 0), -90), ((0, 0, 1), 0), ((1, 1, 0), 30)])
    tool = kernel.turn(tool, axis, degrees)
    return kernel.move(tool, chance.uniform(0, 40), chance.uniform(0, 40), chance.uniform(-5, 20))


def open_box(kernel: Any, chance: random.Random) -> tuple[Any, list[str]]:
    """Build a box with walls, bosses and ribs inside, and openings in a side."""
    columns, rows = chance.randrange(1, 4), chance.randrange(1, 3)
    length, width, high = CELL_MM * columns + 4, CELL_MM * rows + 4, chance.uniform(8, 20)
    wall, floor = chance.uniform(1, 2.5), chance.uniform(1.5, 3)
    names = ["box"]
    part = kernel.box(length / 2, width / 2, 0, high, length, width)
    is_shelled = kernel.has_fillets and chance.random() < 0.6
    if is_shelled:
        part = kernel.shell(kernel.round_edges_along(part, 2, chance.uniform(wall + 0.5, 5)), wall)
        floor = wall
        names.append("shelled")
    else:
        part = kernel.cut(part, kernel.box(length / 2, width / 2, floor, high + 1, length - 2 * wall, width - 2 * wall))
    for column in range(columns):
        for row in range(rows):
            feature = chance.choice(FEATURES)
            names.append(feature.__name__)
            place = Place(CELL_MM * (column + 0.5) + 2, CELL_MM * (row + 0.5) + 2, floor, floor)
            part = feature(kernel, part, place, chance)
    radius = 0.2 * high
    opening = kernel.turn(kernel.cylinder(0, 0, -wall - 1, wall + 1, radius), (1, 0, 0), 90)
    part = kernel.cut(part, kernel.move(opening, length / 2, 0, 0.6 * high))
    return part, names


def bracket(kernel: Any, chance: random.Random) -> tuple[Any, list[str]]:
    """Build an angle with gussets and features in both legs."""
    count, thickness = chance.randrange(1, 4), chance.uniform(3, 8)
    length = CELL_MM * count
    base = kernel.box(length / 2, 0, 0, thickness, length, CELL_MM)
    names = []
    for cell in range(count):
        feature = chance.choice(FEATURES)
        names.append(feature.__name__)
        base = feature(kernel, base, Place(CELL_MM * (cell + 0.5), 0, thickness, thickness), chance)
    leg = kernel.box(length / 2, 0, 0, thickness, length, CELL_MM)
    feature = chance.choice(FEATURES[:8])
    names.append(feature.__name__)
    leg = feature(kernel, leg, Place(length / 2, 0, thickness, thickness), chance)
    leg = kernel.move(kernel.turn(leg, (1, 0, 0), 90), 0, CELL_MM / 2 + thickness, CELL_MM / 2)
    part = kernel.join(base, leg)
    if chance.random() < 0.6:
        size = chance.uniform(5, 9)
        side = [(0.0, 0.0), (-size, 0.0), (0.0, size)]
        gusset = kernel.turn(kernel.turn(kernel.prism(side, 0, 3), (1, 0, 0), 90), (0, 0, 1), 90)
        part = kernel.join(part, kernel.move(gusset, 0, CELL_MM / 2, thickness))
        names.append("gusset")
    if kernel.has_fillets and chance.random() < 0.6:
        part = kernel.round_edges(kernel.unify(part), chance, (0.4, 2))
        names.append("rounded")
    return part, names


def turned(kernel: Any, chance: random.Random) -> tuple[Any, list[str]]:
    """Build a turned part with steps, chamfers, grooves, a bore, cross holes, and sometimes a thread."""
    radius, height = chance.uniform(6, 20), 0.0
    inner = chance.choice([0.0, chance.uniform(1, 4)])
    profile = [(inner, 0.0), (radius, 0.0)]
    names = ["turned"]
    for _ in range(chance.randrange(1, 5)):
        height += chance.uniform(2, 12)
        profile.append((radius, height))
        change = chance.random()
        following = max(inner + 2, radius * chance.uniform(0.5, 1.2))
        if change < 0.3:
            height += abs(following - radius) * chance.choice([1.0, 0.3, 2.0])
        elif change < 0.5:
            depth, width = min(chance.uniform(0.3, 1.5), (radius - inner) / 2), chance.uniform(0.8, 2)
            profile += [(radius - depth, height), (radius - depth, height + width)]
            height += width
            following = radius
        radius = following
        profile.append((radius, height))
    height += chance.uniform(3, 10)
    chamfer = min(chance.uniform(0.2, 1.5), (radius - inner) / 3)
    profile += [(radius, height), (radius - chamfer, height + chamfer), (inner, height + chamfer)]
    part = kernel.revolution(profile)
    if chance.random() < 0.5:
        hole = kernel.turn(kernel.cylinder(0, 0, -60, 60, chance.uniform(0.8, 2.5)), (0, 1, 0), chance.choice([90, 80]))
        part = kernel.cut(part, kernel.move(hole, 0, chance.choice([0, 0, 1.3]), height * chance.uniform(0.2, 0.8)))
        names.append("cross hole")
    if chance.random() < 0.4:
        part = kernel.cut(part, kernel.box(radius, 0, height - 4, height + 5, 0.7 * radius, chance.uniform(1.5, 4)))
        names.append("key")
    if kernel.has_fillets and chance.random() < 0.5:
        part = kernel.round_edges(part, chance, (0.3, 1.5))
        names.append("rounded")
    return part, names


def freeform(kernel: Any, chance: random.Random) -> tuple[Any, list[str]]:
    """Build a loft, a swept pipe, or a threaded pin; only `occ` can."""
    kind = chance.choice(["loft", "sweep", "thread", "draft"])
    if kind == "loft":
        heights = sorted(chance.uniform(0, 40) for _ in range(chance.randrange(2, 5)))
        sections = [
            (chance.choice(["circle", "ellipse", "square"]), chance.uniform(5, 15), 8.0 * number + height)
            for number, height in enumerate(heights)
        ]
        part = kernel.loft(sections, ruled=chance.random() < 0.3)
        hole = kernel.cylinder(0, 0, -1, 100, chance.uniform(1, 2))
        part = kernel.cut(part, hole) if chance.random() < 0.5 else part
    elif kind == "sweep":
        path, height = [(0.0, 0.0, 0.0)], 0.0
        for _ in range(chance.randrange(2, 5)):
            height += chance.uniform(12, 20)
            path.append((chance.uniform(-12, 12), chance.uniform(-12, 12), height))
        radius = chance.uniform(2, 5)
        part = kernel.sweep(path, radius, chance.choice([0.0, 0.6 * radius]))
    elif kind == "thread":
        radius, pitch, turns = chance.uniform(3, 8), chance.uniform(1, 2.5), chance.uniform(2, 4)
        ridge = kernel.thread(radius, pitch, turns, 3.0)
        pin = kernel.cylinder(0, 0, 0, 6 + pitch * turns, radius)
        part = kernel.join(pin, ridge, kernel.cylinder(0, 0, -4, 0, 1.6 * radius))
    else:
        part = kernel.prism(
            [(10, 6), (-10, 6), (-10, -6), (10, -6)], 0, chance.uniform(6, 15), chance.uniform(0.7, 0.95)
        )
        part = kernel.cut(part, kernel.cylinder(chance.uniform(-5, 5), 0, -1, 30, chance.uniform(1, 3)))
        part = kernel.round_edges(part, chance, (0.5, 2))
    return part, [kind]


Style = Callable[[Any, random.Random], tuple[Any, list[str]]]

STYLES: tuple[Style, ...] = (plate, plate, block, block, open_box, bracket, turned, turned, freeform)


class Triangulation(NamedTuple):
    """How a part becomes triangles.

    program:      "occ", "gmsh" or "scad"
    deviation_mm: of "occ"
    angle_rad:    of "occ"
    segments:     of a circle, of "gmsh" and "scad"
    """

    program: str
    deviation_mm: float
    angle_rad: float
    segments: int


def choose_triangulation(number: int) -> Triangulation:
    """Return how the part of a number is triangulated: half by `occ`, a fifth by `gmsh`, the others by `scad`."""
    chance = random.Random(f"triangulation {number}")
    program = "scad" if number % 10 in (3, 6, 9) else "gmsh" if number % 10 in (4, 8) else "occ"
    deviation_mm, angle_rad = chance.choice([0.005, 0.03, 0.1]), chance.choice([0.1, 0.2, 0.35, 0.5])
    segments = chance.choice([12, 16, 24] if program == "gmsh" else [16, 24, 32, 48, 64])
    return Triangulation(program, deviation_mm, angle_rad, segments)


def design(number: int, kernel: Any) -> Design:
    """Return the part of a number, built with a kernel; half of the parts are turned and moved."""
    chance = random.Random(number)
    style = chance.choice(STYLES)
    is_scad = choose_triangulation(number).program == "scad"
    if is_scad and style is freeform:
        style = plate
    # the same random numbers for both kernels
    plain = kernel if not is_scad or not kernel.has_fillets else _WithoutFillets()
    shape, names = style(plain, chance)
    if kernel.has_fillets:
        shape = kernel.unify(shape)
    if chance.random() < 0.5:
        axis = chance.uniform(-1, 1), chance.uniform(-1, 1), chance.uniform(0.1, 1)
        shape = kernel.turn(shape, axis, chance.uniform(0, 360))
        shape = kernel.move(shape, *(chance.uniform(-150, 150) for _ in range(3)))
    return Design(style.__name__, names, shape)


class _WithoutFillets:
    """The kernel `occ` for parts that a `Scad` kernel builds, too."""

    has_fillets = False

    def __getattr__(self, name: str) -> Any:
        return getattr(occ, name)


def make(number: int, path: str) -> dict[str, Any]:
    """Write the triangles of a part, and return its design and true faces.

    Raises:
        ValueError: The kernel built no valid part, or it has too many triangles.
    """
    from cad_parts.triangles import triangulate_gmsh, triangulate_occ, write_stl
    from cad_parts.truth import count_facets, list_faces

    triangulation = choose_triangulation(number)
    true_design = design(number, occ)
    if not occ.is_valid(true_design.shape):
        raise ValueError("OpenCASCADE built an invalid part")
    if triangulation.program == "occ":
        triangles = triangulate_occ(true_design.shape, triangulation.deviation_mm, triangulation.angle_rad)
    elif triangulation.program == "gmsh":
        triangles = triangulate_gmsh(true_design.shape, triangulation.segments)
    else:
        mesh = design(number, Scad(triangulation.segments)).shape.to_mesh64()
        triangles = mesh.vert_properties[:, :3][mesh.tri_verts]
    if len(triangles) > MAX_TRIANGLES_COUNT:
        raise ValueError(f"{len(triangles)} triangles are too many")
    write_stl(path, triangles)
    faces = list_faces(true_design.shape)
    count_facets(faces, triangles)
    return {
        "number": number,
        "style": true_design.style,
        "features": true_design.features,
        "triangulation": triangulation._asdict(),
        "triangles": len(triangles),
        "volume": occ_volume(true_design.shape),
        "faces": faces,
    }


def occ_volume(shape: Any) -> float:
    """Return the volume of a shape of `occ` in mm³."""
    from OCP.BRepGProp import BRepGProp
    from OCP.GProp import GProp_GProps

    properties = GProp_GProps()
    BRepGProp.VolumeProperties_s(shape, properties)
    volume = float(properties.Mass())
    return volume if math.isfinite(volume) else 0.0
