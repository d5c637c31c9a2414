"""Beam lattices of 3MF files that the reference library writes, against the volumes of cylinders, cones and balls."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Sequence
from pathlib import Path

import lib3mf
import numpy as np
import pytest
from lib3mf import BeamLatticeBallMode as Balls
from lib3mf import BeamLatticeCapMode as Caps
from lib3mf import BeamLatticeClipMode as Clips

from meshhub import Registry, Source
from meshhub.builtin_plugins.threemf import ThreeMFReadOptions
from meshhub.builtin_plugins.threemf.reader import read
from meshhub.errors import UnreadableFile
from meshhub.model.notes import collecting
from meshhub.toolkit.geometry import bounds, signed_volume, soup
from models import assert_valid, brick

POINTS = ((0, 0, 0), (20, 0, 0), (20, 20, 0), (0, 20, 10), (0, 0, 30))


def write_lattice(
    beams: Sequence[tuple[int, int]],
    radii: tuple[float, float] = (1.0, 1.0),
    cap: Caps = Caps.Butt,
    clip: Clips | None = None,
    balls: Balls | None = None,
    points: Sequence[Sequence[float]] = POINTS,
) -> bytes:
    """Return a file with a lattice; a box with its faces at x = -5 and x = 10 clips it."""
    wrapper = lib3mf.get_wrapper()
    document = wrapper.CreateModel()
    box = document.AddMeshObject()
    corners = brick().vertices / brick().vertices.max(axis=0) * [15, 80, 80] - [5, 30, 30]
    box.SetGeometry(to_positions(corners.tolist()), to_triangles(brick().faces.tolist()))
    mesh = document.AddMeshObject()
    mesh.SetGeometry(to_positions(points), [])
    lattice = mesh.BeamLattice()
    lattice.SetMinLength(0.001)
    if balls is not None:
        lattice.SetBallOptions(balls, 2.0)
    if clip is not None:
        lattice.SetClipping(clip, box.GetResourceID())
    for ends in beams:
        beam = lib3mf.Beam()
        beam.Indices[:], beam.Radii[:], beam.CapModes[:] = ends, radii, (cap, cap)
        lattice.AddBeam(beam)
    document.AddBuildItem(mesh, wrapper.GetIdentityTransform())
    return bytes(document.QueryWriter("3mf").WriteToBuffer())


def to_positions(points: Sequence[Sequence[float]]) -> list[lib3mf.Position]:
    return [lib3mf.Position((lib3mf.ctypes.c_float * 3)(*point)) for point in points]


def to_triangles(faces: Sequence[Sequence[int]]) -> list[lib3mf.Triangle]:
    return [lib3mf.Triangle((lib3mf.ctypes.c_uint32 * 3)(*face)) for face in faces]


def volume_of(content: bytes) -> float:
    with Registry(entry_points=False) as registry:
        scene = registry.read(Source.from_bytes(content, "lattice.3mf"))
    assert_valid(scene)
    return signed_volume(*soup(scene))


BALL = 4 / 3 * math.pi


@pytest.mark.parametrize(
    ("arguments", "volume"),
    [
        pytest.param({}, 20 * math.pi, id="cylinder"),
        pytest.param({"radii": (1.0, 2.0)}, 20 / 3 * 7 * math.pi, id="cone"),
        pytest.param({"cap": Caps.Sphere}, 20 * math.pi + BALL, id="round ends"),
        pytest.param({"cap": Caps.HemiSphere}, 20 * math.pi + BALL, id="half balls"),
        pytest.param({"clip": Clips.Inside}, 10 * math.pi, id="the part inside a mesh"),
        pytest.param({"clip": Clips.Outside}, 10 * math.pi, id="the part outside a mesh"),
    ],
)
def test_a_beam_has_its_volume(arguments: dict, volume: float) -> None:  # type: ignore[type-arg]
    assert volume_of(write_lattice([(0, 1)], **arguments)) == pytest.approx(volume, rel=2e-3)


def test_balls_are_at_all_ends_of_beams() -> None:
    # a ball of radius 2 and a cylinder of radius 1 share a cylinder and a cap of the ball
    depth = math.sqrt(3)
    common = math.pi * depth + math.pi * (2 - depth) ** 2 * (4 + depth) / 3
    volume = volume_of(write_lattice([(0, 1)], balls=Balls.All))
    assert volume == pytest.approx(20 * math.pi + 2 * 8 * BALL - 2 * common, rel=0.01)


def test_beams_that_meet_are_one_solid() -> None:
    beams = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 4)]
    with Registry(entry_points=False) as registry:
        source = Source.from_bytes(write_lattice(beams, cap=Caps.Sphere), "lattice.3mf")
        inspection = registry.inspect(source)
    assert inspection.model.watertight and inspection.model.bodies == 1
    lengths = [math.dist(POINTS[a], POINTS[b]) for a, b in beams]
    # beams overlap where they meet
    assert 0.9 * math.pi * sum(lengths) < inspection.model.volume_mm3 < math.pi * sum(lengths) + 5 * BALL


def test_a_lattice_becomes_other_formats(tmp_path: Path) -> None:
    (tmp_path / "lattice.3mf").write_bytes(write_lattice([(0, 1), (1, 2)], cap=Caps.Sphere))
    with Registry(entry_points=False) as registry:
        registry.convert(tmp_path / "lattice.3mf", tmp_path / "lattice.stl", place_on_bed=True)
        scene = registry.read(tmp_path / "lattice.stl")
    assert_valid(scene)
    assert np.ptp(bounds(scene), axis=0) == pytest.approx([22, 22, 2], abs=0.1)


def test_many_beams_overlap_and_a_note_says_so() -> None:
    side = 9
    points = np.stack(np.meshgrid(*[5.0 * np.arange(side)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    number = np.arange(len(points)).reshape(side, side, side)
    beams = np.concatenate([
        np.stack([number.swapaxes(0, axis)[:-1].ravel(), number.swapaxes(0, axis)[1:].ravel()], axis=1)
        for axis in range(3)
    ])  # fmt: skip
    content = write_lattice(beams.tolist(), cap=Caps.Sphere, points=points.tolist())
    with collecting("3mf") as remarks:
        scene = read(Source.from_bytes(content, "a.3mf"), ThreeMFReadOptions())
    assert [note.code for note in remarks.notes] == ["lattice_overlaps"]
    volume = signed_volume(*soup(scene))
    assert volume == pytest.approx(len(beams) * 5 * math.pi + side**3 * BALL, rel=0.01)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('v2="1"', 'v2="9"'), "vertex 9"),
        (('r1="1.000000"', 'r1="-1"'), "radius"),
        (('r1="1.000000"', 'r1="wide"'), "'r1' of <beam>"),
    ],
)
def test_a_broken_lattice_is_reported(change: tuple[str, str], message: str) -> None:
    content = io.BytesIO()
    package = io.BytesIO(write_lattice([(0, 1)], radii=(1.0, 2.0)))
    with zipfile.ZipFile(package) as old, zipfile.ZipFile(content, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith(".model"):
                assert change[0].encode() in data
                data = data.replace(change[0].encode(), change[1].encode())
            new.writestr(name, data)
    with pytest.raises(UnreadableFile, match=message):
        read(Source.from_bytes(content.getvalue(), "a.3mf"), ThreeMFReadOptions())


def test_a_clip_that_leaves_nothing_is_reported() -> None:
    # the box of the clip is far from the beam
    far = [(100, 0, 0), (120, 0, 0)]
    content = write_lattice([(0, 1)], clip=Clips.Inside, points=far)
    with pytest.raises(UnreadableFile, match="leaves nothing of its beam lattice"):
        read(Source.from_bytes(content, "a.3mf"), ThreeMFReadOptions())
    outside = write_lattice([(0, 1)], clip=Clips.Outside, points=far)
    assert volume_of(outside) == pytest.approx(20 * math.pi, rel=2e-3)
