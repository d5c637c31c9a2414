"""Vertices that no face uses change no measure, no operation and no file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from meshhub.errors import UnreadableFile
from meshhub.model.scene import Division, Mesh, Part, Scene
from meshhub.registry import Registry
from meshhub.toolkit.geometry import compacted, soup
from models import brick, scene_of, sphere

pytestmark = pytest.mark.once

registry = Registry()

FAR = np.array([[-500.0, 0, -60], [900, 900, 0], [0, 0, 2000]])


def add_points(scene: Scene) -> Scene:
    """Return the scene with vertices far from the model, before and behind those of its faces."""
    meshes = [
        replace(mesh, vertices=np.concatenate([FAR, mesh.vertices, FAR]), faces=mesh.faces + 3) for mesh in scene.meshes
    ]
    return replace(scene, meshes=tuple(meshes))


CLEAN = Scene((brick(30, 30, 30), sphere(15)), (Part(0, name="a"), Part(1, np.diag([1.0, 1, 2, 1]), name="b")))


def ply(points: str) -> bytes:
    """Return a tetrahedron as PLY, with a fifth point, which no face uses."""
    rows = f"0 0 0\n30 0 0\n0 30 0\n0 0 30\n{points}\n3 0 2 1\n3 0 1 3\n3 0 3 2\n3 1 2 3\n"
    header = "ply\nformat ascii 1.0\nelement vertex 5\nproperty float x\nproperty float y\nproperty float z\n"
    return f"{header}element face 4\nproperty list uchar int vertex_indices\nend_header\n{rows}".encode()


def test_measures_are_those_of_the_faces() -> None:
    scene = scene_of(brick(15, 15, 15))
    loose = add_points(scene)
    assert registry.inspect(loose).model == registry.inspect(scene).model
    expected, actual = registry.check(scene), registry.check(loose)
    assert expected.estimate is not None and actual.estimate == expected.estimate
    assert actual.findings == expected.findings == ()
    assert soup(loose)[0].tolist() == soup(scene)[0].tolist()


@pytest.mark.parametrize("target", ["stl", "3mf", "obj", "ply", "glb", "step"])
def test_files_are_the_same_to_the_byte(target: str) -> None:
    assert registry.convert_bytes(add_points(CLEAN), target=target) == registry.convert_bytes(CLEAN, target=target)


@pytest.mark.parametrize(
    "options",
    [
        {"target_height_mm": 50},
        {"fit_mm": "100x100x100"},
        {"place_on_bed": True},
        {"arrange_bed": "200x200"},
        {"orient": True},
        {"lay_flat": True},
        {"flatten_base_mm": 2},
        {"split_for_bed": "40x40x40"},
        {"mirror": "x"},
        {"scale_percent": 50},
        {"repair": True},
        {"optimize_target_faces": 200},
        {"plinth_mm": 2},
    ],
    ids=lambda options: next(iter(options)),
)
def test_operations_give_the_same_model(options: dict[str, Any]) -> None:
    expected, actual = (registry.convert_bytes(scene, target="stl", **options) for scene in (CLEAN, add_points(CLEAN)))
    assert actual == expected


def test_points_beside_the_faces_of_a_ply_are_noted() -> None:
    report = registry.inspect(ply("900 0 0"))
    assert report.model.size_mm == (30, 30, 30)
    assert [note.code for note in report.notes] == ["points_ignored"]


@pytest.mark.parametrize("point", ["nan nan nan", "1e30 0 0"])
def test_points_that_a_scanner_does_not_see_are_left_out(point: str) -> None:
    assert registry.inspect(ply(point)).model.size_mm == (30, 30, 30)
    with pytest.raises(UnreadableFile, match="line 13 of the PLY file has a coordinate that is not a finite number"):
        registry.inspect(ply("0 0 0").replace(b"0 0 30\n", b"0 nan 30\n"))


def test_the_division_into_painted_pieces_stays() -> None:
    mesh = Mesh(np.concatenate([FAR, brick().vertices]), brick().faces + 3)
    result = compacted(mesh.with_division(Division(mesh.faces, np.arange(12, dtype=np.int32))))
    assert result.division is not None
    assert result.division.triangles.tolist() == brick().faces.tolist()
    assert result.vertices.tolist() == brick().vertices.tolist()
