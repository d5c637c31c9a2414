"""Judgement of the meshes that operations make."""

from __future__ import annotations

import numpy as np
import pytest

from meshhub.model.notes import collecting
from meshhub.model.scene import Mesh
from meshhub.toolkit.validity import (
    check_mesh,
    check_meshes,
    find_damage,
    note_damage,
    without_empty_faces,
)
from models import brick, move_mesh, sphere

pytestmark = pytest.mark.once


def join(*meshes: Mesh) -> Mesh:
    begin = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    faces = [mesh.faces + np.int32(start) for mesh, start in zip(meshes, begin, strict=False)]
    return Mesh(np.concatenate([mesh.vertices for mesh in meshes]), np.concatenate(faces))


def test_a_valid_solid_has_no_damage_and_no_note() -> None:
    with collecting("step") as remarks:
        note_damage("'cube'", find_damage(brick(10, 10, 10), expected_shells=1))
    assert remarks.notes == []


@pytest.mark.parametrize(
    ("mesh", "defect"),
    [
        (Mesh(brick(10, 10, 10).vertices, brick(10, 10, 10).faces[1:]), "3 open edges"),
        (
            Mesh(
                np.append(brick(10, 10, 10).vertices, [[20.0, 20.0, 20.0]], axis=0),
                np.append(brick(10, 10, 10).faces, [[*brick(10, 10, 10).faces[0, :2], 8]], axis=0).astype(np.int32),
            ),
            "2 open edges and 1 edge of more than two faces",
        ),
        (Mesh(brick(10, 10, 10).vertices, brick(10, 10, 10).faces[:, ::-1]), "no volume"),
        (join(brick(10, 10, 10), move_mesh(brick(10, 10, 10), 20, 0, 0)), "an unexpected number of shells, 2"),
        (
            Mesh(
                brick(10, 10, 10).vertices, np.concatenate([brick(10, 10, 10).faces, np.array([[0, 1, 1]], np.int32)])
            ),
            "1 face without area",
        ),
    ],
)
def test_each_kind_of_damage_is_named(mesh: Mesh, defect: str) -> None:
    with collecting("step") as remarks:
        note_damage("'cube'", find_damage(mesh, expected_shells=1 if "shells" in defect else None))
    (note,) = remarks.notes
    assert note.code == "result_invalid"
    assert defect in note.message


def test_defects_that_were_there_are_no_damage() -> None:
    open_cube = Mesh(brick(10, 10, 10).vertices, brick(10, 10, 10).faces[1:])
    assert not find_damage(open_cube, check_mesh(open_cube))
    assert find_damage(Mesh(open_cube.vertices, open_cube.faces[3:]), check_mesh(open_cube)).open > 0


def test_many_meshes_are_checked_as_each_alone() -> None:
    meshes = [
        brick(10, 10, 10),
        sphere(5),
        join(brick(10, 10, 10), sphere(3)),
        Mesh(sphere(5).vertices, sphere(5).faces[2:]),
    ]
    together = check_meshes(meshes)
    for mesh, check in zip(meshes, together, strict=True):
        alone = check_mesh(mesh)
        assert check._replace(volume=0) == alone._replace(volume=0)
        assert check.volume == pytest.approx(alone.volume)


def test_faces_that_a_file_collapses_are_removed_and_the_mesh_stays_closed() -> None:
    cube = move_mesh(brick(10, 10, 10), 50, 50, 50)
    # the edge from corner a to corner b of the first face gets a vertex one float64 step beside a
    a, b, c = cube.faces[0]
    (other,) = np.flatnonzero(((cube.faces == a) | (cube.faces == b)).sum(axis=1) == 2)[1:2]
    beside = cube.vertices[a] + 1e-12 * (cube.vertices[b] - cube.vertices[a])
    vertices, n = np.concatenate([cube.vertices, beside[None]]), np.int32(len(cube.vertices))
    d = next(int(corner) for corner in cube.faces[other] if corner not in (a, b))
    rest = np.delete(cube.faces, [0, other], axis=0)
    faces = np.array([[a, n, c], [n, b, c], [n, a, d], [b, n, d]], np.int32)
    mesh = Mesh(vertices, np.concatenate([rest, faces]))
    assert check_mesh(mesh).collapsed == 2
    result = without_empty_faces(mesh)
    assert not find_damage(result)
    assert len(result.faces) == len(cube.faces)


def test_cubes_that_touch_along_an_edge_are_no_damage() -> None:
    touching = join(brick(10, 10, 10), move_mesh(brick(10, 10, 10), 10, 10, 0))
    damage = find_damage(touching)
    assert not damage and damage.touching == 1 and not damage.is_clean


def test_faces_that_lie_on_each_other_enclose_nothing() -> None:
    cube = brick(10, 10, 10)
    fold = np.array([[0, 1, 2], [0, 2, 1]], np.int32)
    mesh = Mesh(cube.vertices, np.concatenate([cube.faces, fold]))
    assert check_mesh(mesh).touching > 0
    assert np.array_equal(without_empty_faces(mesh).faces, cube.faces)
    assert without_empty_faces(cube) is cube
    # as on three sheets, one of two equal faces has no opposite
    odd = Mesh(cube.vertices, np.concatenate([cube.faces, fold, fold[:1]]))
    assert len(without_empty_faces(odd).faces) == len(cube.faces) + 3
