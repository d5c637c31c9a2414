"""Places of defects in models with known defects."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshhub.model.report import Defects
from meshhub.model.scene import Mesh, Part, Scene
from meshhub.pipeline.inspection import examine, inspect
from meshhub.toolkit.scene_defects import MAX_PLACES_COUNT, MAX_SHOWN_COUNT
from models import brick, move_mesh, scene_of, sphere

pytestmark = pytest.mark.once


def join(*meshes: Mesh) -> Mesh:
    first = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
    return Mesh(
        np.concatenate([mesh.vertices for mesh in meshes]),
        np.concatenate([mesh.faces + start for mesh, start in zip(meshes, first, strict=False)]),
    )


def find(scene: Scene) -> dict[str, Defects]:
    return {finding.kind: finding for finding in inspect(scene).findings}


def flip(mesh: Mesh, *faces: int) -> Mesh:
    flipped = mesh.faces.copy()
    flipped[list(faces)] = flipped[list(faces)][:, ::-1]
    return replace(mesh, faces=flipped)


def test_a_valid_model_has_no_findings() -> None:
    hollow = join(sphere(10), flip(sphere(5), *range(len(sphere(5).faces))))
    assert find(scene_of(brick(), hollow)) == {}


def test_each_hole_is_a_place() -> None:
    whole = sphere(10, 32)
    scene = scene_of(replace(whole, faces=np.delete(whole.faces, [0, 400], axis=0)))
    (finding,) = find(scene).values()
    assert (finding.kind, finding.count, finding.places_found) == ("open_edges", 6, 2)
    centers = [np.ptp(whole.vertices[whole.faces[face]], axis=0) for face in (0, 400)]
    assert sorted(place.size_mm for place in finding.places) == pytest.approx(sorted(map(np.linalg.norm, centers)))
    middles = [
        (whole.vertices[whole.faces[face]].min(axis=0) + whole.vertices[whole.faces[face]].max(axis=0)) / 2
        for face in (0, 400)
    ]
    for place in finding.places:
        assert min(np.abs(middle - place.position_mm).max() for middle in middles) < 1e-9


def test_three_faces_at_an_edge_are_a_place() -> None:
    box = brick(10, 10, 10)
    fin = Mesh(np.vstack([box.vertices, [[20, 0, 0]]]), np.vstack([box.faces, [[0, 4, 8]]]))
    findings = find(scene_of(fin))
    assert findings["nonmanifold_edges"].count == 1
    assert findings["nonmanifold_edges"].places[0].position_mm == (5, 0, 0)
    assert findings["open_edges"].count == 2


@pytest.mark.parametrize("faces", [(3,), (3, 100, 101), tuple(range(40))])
def test_flipped_faces_are_those_of_the_smaller_area(faces: tuple[int, ...]) -> None:
    scene = scene_of(flip(sphere(10), *faces))
    examination = examine(scene)
    (defect,) = examination.defects
    assert (defect.finding.kind, defect.finding.count) == ("flipped_faces", len(faces))
    expected = scene.meshes[0].vertices[scene.meshes[0].faces[list(faces)]]
    assert np.array_equal(defect.corners, expected)


def test_a_body_that_is_inside_out_is_flipped() -> None:
    inverted = flip(brick(), *range(12))
    assert find(scene_of(inverted))["flipped_faces"].count == 12
    # the cavity of a body that is inside out is inside out, too
    assert find(scene_of(join(flip(sphere(10), *range(960)), sphere(5))))["flipped_faces"].count == 1920
    # and if it is inward like the body, only the body is
    hollow = join(flip(sphere(10, 16), *range(len(sphere(10, 16).faces))), flip(sphere(5), *range(960)))
    assert find(scene_of(hollow))["flipped_faces"].count == len(sphere(10, 16).faces)
    assert inspect(scene_of(hollow)).cavities == 1
    assert find(scene_of(join(move_mesh(sphere(10), 50, 0, 0), inverted)))["flipped_faces"].count == 12


@pytest.mark.parametrize("by", [(10, 20, 0), (10, 0, 0)], ids=["an edge", "a wall"])
@pytest.mark.parametrize("order", range(4))
def test_a_body_that_is_inside_out_is_flipped_where_it_touches_another(by: tuple[float, ...], order: int) -> None:
    touching = join(brick(), flip(move_mesh(brick(), *by), *range(12)))
    faces = np.random.default_rng(order).permutation(touching.faces) if order else touching.faces
    findings = find(scene_of(replace(touching, faces=faces)))
    assert findings["flipped_faces"].count == 12
    assert findings["flipped_faces"].places[0].position_mm[0] in (5, 15)
    assert "open_edges" not in findings


def test_a_surface_with_one_side_has_no_flipped_faces() -> None:
    angle = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    half = np.stack([np.cos(angle / 2) * np.cos(angle), np.cos(angle / 2) * np.sin(angle), np.sin(angle / 2)], axis=1)
    ring = 5 * np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    points = np.concatenate([ring - half, ring + half])
    faces = []
    for a in range(24):
        b = (a + 1) % 24
        low, high = (b, b + 24) if b else (24, 0)
        faces += [[a, low, high], [a, high, a + 24]]
    findings = find(scene_of(Mesh(points, np.array(faces))))
    assert "flipped_faces" not in findings
    assert findings["open_edges"].places_found == 1


def test_stray_fragments_are_counted_as_shells() -> None:
    crumb = move_mesh(sphere(0.01, 8), 30, 0, 0)
    crumb = replace(crumb, faces=crumb.faces[1:])
    findings = find(scene_of(join(sphere(10), crumb, move_mesh(crumb, 0, 30, 0))))
    fragments = findings["stray_fragments"]
    assert (fragments.count, fragments.places_found) == (2, 2)
    assert {place.count for place in fragments.places} == {len(crumb.faces)}


def test_stray_fragments_that_touch_in_a_point_are_one_place() -> None:
    points = np.array([[30, 0, 0], [30.1, 0, 0], [30, 0.1, 0], [29.9, 0, 0], [30, -0.1, 0]])
    crumbs = Mesh(points, np.array([[0, 1, 2], [0, 3, 4]]))
    fragments = find(scene_of(join(sphere(10), crumbs)))["stray_fragments"]
    assert (fragments.count, fragments.places_found) == (2, 1)
    assert fragments.places[0].count == 2


def test_places_of_instances_are_in_the_scene() -> None:
    mesh = replace(brick(10, 10, 10), faces=brick().faces[2:])
    shift = np.eye(4)
    shift[:3, 3] = [100, 0, 0]
    scene = Scene(meshes=(brick(), mesh), parts=(Part(0), Part(1, shift), Part(1, 2 * shift - np.eye(4))))
    finding = find(scene)["open_edges"]
    assert (finding.count, finding.places_found) == (8, 2)
    assert [(place.part, place.position_mm) for place in finding.places] == [(1, (100, 5, 5)), (2, (200, 5, 5))]


def test_places_and_geometry_are_bounded() -> None:
    count = MAX_SHOWN_COUNT
    corner = np.arange(count)[:, None] * [[2.0, 0, 0]]
    vertices = (corner[:, None] + [[0, 0, 0], [1, 0, 0], [0, 1, 0]]).reshape(-1, 3)
    scene = scene_of(Mesh(vertices, np.arange(3 * count).reshape(-1, 3)))
    defect = examine(scene).defects[0]
    assert (defect.finding.count, defect.finding.places_found) == (3 * count, count)
    assert len(defect.finding.places) == MAX_PLACES_COUNT
    assert len(defect.corners) == MAX_SHOWN_COUNT


def test_the_largest_places_of_all_parts_are_listed() -> None:
    corner = 3.0 * np.arange(2 * MAX_PLACES_COUNT)[:, None, None] * [1, 0, 0] + np.eye(3)
    small = Mesh(corner.reshape(-1, 3), np.arange(6 * MAX_PLACES_COUNT).reshape(-1, 3))
    large = replace(brick(), faces=brick().faces[:6])
    scene = Scene(meshes=(small, large), parts=(Part(0), *[Part(0)] * 2000, Part(1)))
    finding = find(scene)["open_edges"]
    assert finding.places_found == 2001 * len(small.faces) + 1
    assert (finding.places[0].part, finding.places[0].count) == (2001, inspect(scene_of(large)).open_edges)
    assert [(place.part, place.count) for place in finding.places[1:]] == [(0, 3)] * (MAX_PLACES_COUNT - 1)


@settings(max_examples=40)
@given(st.lists(st.tuples(*[st.integers(0, 4)] * 3), min_size=1, max_size=30))
def test_a_volume_needs_as_many_edges_in_both_directions(faces: list[tuple[int, int, int]]) -> None:
    points = np.random.default_rng(1).random((5, 3))
    proper = [face for face in faces if len(set(face)) == 3]
    directed = Counter((face[corner - 1], face[corner]) for face in proper for corner in range(3))
    is_balanced = bool(proper) and all(directed[end, begin] == count for (begin, end), count in directed.items())
    model = inspect(scene_of(Mesh(points, np.array(faces))))
    assert (model.volume_mm3 is not None) == is_balanced


@settings(max_examples=40)
@given(st.lists(st.tuples(*[st.integers(0, 9)] * 3), min_size=1, max_size=40))
def test_findings_agree_with_the_counts(faces: list[tuple[int, int, int]]) -> None:
    points = np.random.default_rng(1).random((10, 3))
    examination = examine(scene_of(Mesh(points, np.array(faces))))
    counts = {defect.finding.kind: defect.finding.count for defect in examination.defects}
    assert counts.get("open_edges", 0) == examination.model.open_edges
    assert counts.get("nonmanifold_edges", 0) == examination.model.nonmanifold_edges
    for defect in examination.defects:
        assert len(defect.corners) == sum(place.count for place in defect.finding.places)
