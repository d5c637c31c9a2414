"""Solids whose flats may pass for round surfaces, and round solids, as STEP; OpenCASCADE measures the files.

    python benchmarks/step_plausible.py [--seeds 3] [--unexplained 1.0 1.25 1.5]

Each solid is written as it is, and rotated, mirrored and scaled. `silent` counts the files whose volume differs by more
than 0.5 %, or whose box grows by more than the sagitta of the widest flat, without the note `volume_changed`; it must
be 0. `changed` counts the files of flat solids with another volume. `lost` counts round faces that became facets.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from manifold3d import CrossSection, Manifold
from scipy.spatial.transform import Rotation

from meshhub.builtin_plugins.step import StepWriteOptions, writer
from meshhub.builtin_plugins.step.recognition import roundness
from meshhub.model.notes import collecting
from meshhub.model.scene import Mesh
from meshhub.model.source import Target

sys.path.append(str(Path(__file__).parent.parent / "tests" / "support"))

from models import scene_of, volume

MAX_CHANGE_RATIO = 0.005
"""Share of the volume that may change without a note."""
MAX_FLAT_CHANGE_RATIO = 1e-6
"""Share of the volume of a flat solid by which a file of planes differs."""


class Case(NamedTuple):
    """A solid.

    name:    for the table
    solid:   mesh
    rounds:  curved faces that must be written; 0 for flat solids
    sagitta: largest distance between its flats and arcs over them, in millimeters
    """

    name: str
    solid: Manifold
    rounds: int
    sagitta: float


def extrude(outline: Any, height: float = 15.0, top_ratio: float = 1.0) -> Manifold:
    """Return a prism, or a pyramid whose top is `top_ratio` as wide."""
    return Manifold.extrude(CrossSection([np.asarray(outline)]), height, scale_top=(top_ratio, top_ratio))


def polygon(count: int, radius: float, turn_deg: float = 360.0) -> np.ndarray:
    """Return (n, 2) corners on a circle, all around or on an arc with both its ends."""
    ends = count + (turn_deg < 360)
    angle = np.radians(turn_deg) * np.arange(ends) / count
    return radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def bend(count: int, degrees: float, thickness: float) -> Manifold:
    """Return a bent sheet: two legs, and flats between them that all turn by one angle."""
    turn = np.radians(degrees) / (count + 1) * np.arange(count + 2)
    steps = np.array([20, *[6] * count, 20])[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    outer = np.concatenate([[[0, 0]], np.cumsum(steps, axis=0)])
    normal = np.stack([-np.sin(turn), np.cos(turn)], axis=1)
    miter = normal[:-1] + normal[1:]
    miter /= np.einsum("ij,ij->i", miter, normal[1:])[:, None]
    inner = outer + thickness * np.concatenate([normal[:1], miter, normal[-1:]])
    return extrude(np.concatenate([outer, inner[::-1]]))


def sagitta(radius: float, turn_rad: float) -> float:
    """Return the height of an arc over its chord."""
    return radius * (1 - np.cos(turn_rad / 2))


def flat_cases() -> Iterator[Case]:
    """Yield solids of planes, and some with one hole or boss."""
    yield from _bends()
    yield from _sockets()
    yield from _arches()
    yield from _crescents()
    yield from _bends_beside_holes()


def _bends() -> Iterator[Case]:
    for count in (2, 3, 4, 5, 6, 7):
        for degrees in (30, 45, 60, 90):
            turn = np.radians(degrees) / (count + 1)
            allowed = sagitta(6 / 2 / np.sin(turn / 2), turn)
            for thickness in (1.0, 3.0):
                yield Case(f"bend of {count} flats", bend(count, degrees, thickness), 0, allowed)


def _sockets() -> Iterator[Case]:
    block = Manifold.cube([40, 40, 12], True)
    round_block = block + Manifold.cylinder(12, 14, 14, 64)
    for count in (3, 4, 5, 6, 7):
        allowed = sagitta(8, 2 * np.pi / count)
        for ratio in (1.0, 0.7):
            socket = extrude(polygon(count, 8), 30, ratio).translate([0, 0, -9])
            yield Case(f"socket of {count} sides", block - socket, 0, allowed)
            yield Case(f"boss of {count} sides", block + socket.translate([0, 0, 5]), 0, allowed)
            in_boss = round_block - socket.translate([0, 0, 2])
            yield Case(f"socket of {count} sides in a round boss", in_boss, 1, allowed)


def _arches() -> Iterator[Case]:
    for count in (2, 3, 4, 5, 6, 7):
        for degrees in (40, 75, 100, 150):
            allowed = sagitta(20, np.radians(degrees) / count)
            arc = polygon(count, 20, degrees)
            arch = np.concatenate([arc, 0.85 * arc[::-1]])
            yield Case(f"{count} flats and a chord", extrude(arc), 0, allowed)
            yield Case(f"arch of {count} flats", extrude(arch), 0, allowed)
            yield Case(f"tapered arch of {count} flats", extrude(arch, 15, 0.6), 0, allowed)


def _crescents() -> Iterator[Case]:
    """Yield areas between two arcs of flats with the same ends."""
    for count in (2, 3, 4, 6):
        outer, inner = polygon(count, 20, 120), polygon(count, 26, 80)
        one, other = outer[-1] - outer[0], inner[-1] - inner[0]
        spin = complex(*one) / complex(*other)
        turned = (inner - inner[0]) @ np.array([[spin.real, spin.imag], [-spin.imag, spin.real]]) + outer[0]
        crescent = extrude(np.concatenate([outer, turned[-2:0:-1]]))
        yield Case(f"crescent of {count} flats", crescent, 0, sagitta(20, np.radians(120) / count))


def _bends_beside_holes() -> Iterator[Case]:
    """Yield bends with a hole; flats as coarse as its facets count as round."""
    for segments in (12, 16, 24, 96):
        hole = Manifold.cylinder(40, 3, 3, segments).rotate([90, 0, 0]).translate([9, 20, 8])
        for count in (2, 3, 4, 6):
            for step in (14, 22, 30):
                allowed = sagitta(6 / 2 / np.sin(np.radians(step) / 2), np.radians(step))
                part = bend(count, step * (count + 1), 5) - hole
                yield Case(f"bend of {count} flats of {step}° beside a hole of {segments}", part, 1, allowed)


def round_cases() -> Iterator[Case]:
    """Yield solids with curved faces."""
    for segments in (12, 16, 24, 32, 64, 128):
        turn = 2 * np.pi / segments
        yield Case("cylinder", Manifold.cylinder(20, 8, 8, segments), 1, sagitta(8, turn))
        yield Case("cone", Manifold.cylinder(20, 8, 4, segments), 1, sagitta(8, turn))
        plate = Manifold.cube([40, 40, 6], True)
        yield Case("hole", plate - Manifold.cylinder(20, 8, 8, segments, True), 1, sagitta(8, turn))
        yield Case("countersink", plate - Manifold.cylinder(6, 4, 8, segments, True), 1, sagitta(8, turn))
        ring = CrossSection([polygon(segments, 3) + [10, 0]])
        yield Case("torus", ring.revolve(max(segments, 16)), 1, sagitta(13, turn))
        if segments % 4 == 0:
            sphere = Manifold.sphere(10, segments)
            half = sphere.trim_by_plane([0, 0, 1], 0)
            yield Case("sphere", sphere, 1, measure_depth(sphere))
            yield Case("dome", half + Manifold.cube([30, 30, 6], True).translate([0, 0, -2]), 1, measure_depth(sphere))


def measure_depth(sphere: Manifold) -> float:
    """Return the distance of the deepest triangle from the sphere of radius 10 around it."""
    mesh = mesh_of(sphere)
    corner = mesh.vertices[mesh.faces]
    normal = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    height = np.einsum("ij,ij->i", corner[:, 0], normal) / np.linalg.norm(normal, axis=1)
    return float(10 - height.min())


def vary(case: Case, seed: int) -> Case:
    """Return a solid that is rotated, mirrored and scaled at random; as it is for seed 0."""
    if seed == 0:
        return case
    generator = np.random.default_rng(seed)
    scale = np.exp(generator.uniform(-1.5, 1.5))
    turn = Rotation.random(random_state=seed).as_matrix() * scale
    turn[:, 0] *= generator.choice([-1, 1])
    solid = case.solid.transform(np.column_stack([turn, generator.uniform(-50, 50, 3)]))
    return case._replace(solid=solid, sagitta=case.sagitta * scale)


def mesh_of(solid: Manifold) -> Mesh:
    native = solid.to_mesh64()
    vertices = np.asarray(native.vert_properties)[:, :3].astype(np.float32).astype(np.float64)
    return Mesh(vertices, np.asarray(native.tri_verts, np.int32), name="part")


def measure(data: bytes) -> tuple[bool, float, np.ndarray]:
    """Return whether a file is valid, its volume, and the (2, 3) corners of its box."""
    from OCP.Bnd import Bnd_Box
    from OCP.BRepBndLib import BRepBndLib
    from OCP.BRepCheck import BRepCheck_Analyzer
    from OCP.BRepGProp import BRepGProp
    from OCP.GProp import GProp_GProps
    from OCP.STEPControl import STEPControl_Reader

    reader = STEPControl_Reader()
    reader.ReadStream("model.step", io.BytesIO(data))
    reader.TransferRoots()
    shape = reader.OneShape()
    properties, box = GProp_GProps(), Bnd_Box()
    BRepGProp.VolumeProperties_s(shape, properties)
    BRepBndLib.AddOptimal_s(shape, box, False, False)
    low, high = box.CornerMin(), box.CornerMax()
    corners = np.array([[low.X(), low.Y(), low.Z()], [high.X(), high.Y(), high.Z()]])
    return BRepCheck_Analyzer(shape).IsValid(), properties.Mass(), corners


def judge(case: Case) -> list[str]:
    """Write a solid, and return the classes of its outcome."""
    mesh = mesh_of(case.solid)
    target = Target("model.step")
    with collecting("step") as remarks:
        writer.write(scene_of(mesh), target, StepWriteOptions())
    valid, measured, box = measure(target.read())
    true_volume = abs(volume(mesh.vertices, mesh.faces))
    change = measured / true_volume - 1
    grown = np.maximum(mesh.vertices.min(axis=0) - box[0], box[1] - mesh.vertices.max(axis=0)).max()
    is_reported = any(note.code == "volume_changed" for note in remarks.notes)
    size = float(np.ptp(mesh.vertices, axis=0).max())
    curved = int(remarks.figures["faces"] - remarks.figures["planes"])
    classes = ["invalid"] * (not valid)
    if not is_reported and (abs(change) > MAX_CHANGE_RATIO or grown > 1.01 * case.sagitta + 1e-5 * size):
        classes.append("silent")
    if case.rounds == 0 and abs(change) > MAX_FLAT_CHANGE_RATIO:
        classes.append("changed")
    if curved > case.rounds:
        classes.append("rounded")
    if curved < case.rounds:
        classes.append("lost")
    return classes


def main() -> int:
    """Print the outcomes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="", help="part of the names")
    parser.add_argument("--unexplained", type=float, nargs="+", default=[roundness._MAX_UNEXPLAINED_RATIO])
    options = parser.parse_args()
    is_silent = False
    for ratio in options.unexplained:
        roundness._MAX_UNEXPLAINED_RATIO = ratio
        totals: Counter[str] = Counter()
        for group in (flat_cases, round_cases):
            for number, case in enumerate(group()):
                for seed in range(options.seeds if options.only in case.name else 0):
                    classes = judge(vary(case, seed and seed + 100 * number))
                    totals.update([group.__name__, *classes])
                    is_silent |= "silent" in classes
                    if classes:
                        print(f"{ratio:g}: {case.name}, seed {seed}: {', '.join(classes)}", flush=True)
        print(f"{ratio:g}: {dict(totals)}", flush=True)
    return 1 if is_silent else 0


if __name__ == "__main__":
    sys.exit(main())
