"""The check `overlaps`: faces that cross, bodies that overlap or lie in others, and what is there twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from manifold3d import Manifold, OpType

from meshhub import Finding, Mesh, Part, Registry, Scene
from translated_findings import TranslatedRegistry

pytestmark = pytest.mark.once

turns = st.tuples(*[st.floats(0, 360)] * 3)


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with TranslatedRegistry() as registry:
        yield registry


def mesh_of(*bodies: Manifold) -> Mesh:
    """All bodies in one mesh, as they are."""
    points: list[np.ndarray[tuple[int, int], np.dtype[np.float64]]] = []
    faces: list[np.ndarray[tuple[int, int], np.dtype[np.int32]]] = []
    for body in bodies:
        native = body.to_mesh64()
        faces.append(np.asarray(native.tri_verts).astype(np.int32) + sum(len(own) for own in points))
        points.append(np.asarray(native.vert_properties)[:, :3])
    return Mesh(np.concatenate(points), np.concatenate(faces).astype(np.int32))


def scene(*meshes: Mesh) -> Scene:
    return Scene(meshes=meshes, parts=tuple(Part(number) for number in range(len(meshes))))


def findings(registry: Registry, model: Scene) -> dict[str, Finding]:
    return {finding.code: finding for finding in registry.check(model, checks="overlaps").findings}


def after(registry: Registry, model: Scene, finding: Finding) -> dict[str, Finding]:
    """Findings after the conversion that the finding advises."""
    verdict = registry.check(model, checks="overlaps", **finding.remedy)
    return {finding.code: finding for finding in verdict.findings}


def ribbon(turn_deg: float) -> Mesh:
    """A square bar along a circle by more than a full turn: its end passes through its start."""
    angle = np.radians(np.linspace(0, turn_deg, 65))
    square = np.array([[9, -1], [11, -1], [11, 1], [9, 1]], float)
    points = np.stack(
        [
            np.outer(np.cos(angle), square[:, 0]),
            np.outer(np.sin(angle), square[:, 0]),
            np.tile(square[:, 1], (65, 1)) + np.linspace(0, 0.7, 65)[:, None],
        ],
        axis=-1,
    ).reshape(-1, 3)
    faces = []
    for ring in range(64):
        for side in range(4):
            a, b = 4 * ring + side, 4 * ring + (side + 1) % 4
            faces += [(a, a + 4, b), (b, a + 4, b + 4)]
    faces += [(0, 1, 2), (0, 2, 3), (258, 257, 256), (259, 258, 256)]
    return Mesh(points, np.array(faces, np.int32))


def test_faces_along_the_axes_cross_where_their_boxes_are_flat(registry: Registry) -> None:
    plate, post = Manifold.cube((20, 20, 4)), Manifold.cube((4, 4, 20))
    through = findings(registry, scene(mesh_of(plate, post.translate((8, 8, -8)))))
    assert through["overlapping_bodies"].amount == 2
    # crossing faces have an amount, which bodies with a common solid do not
    assert through["overlapping_bodies"].places[0].amount
    assert findings(registry, scene(mesh_of(plate, post.translate((8, 8, 4))))) == {}


@settings(max_examples=10)
@given(turn=turns, offset=st.floats(1, 18), edge=st.sampled_from([2.0, 100.0]))
def test_bodies_that_overlap_are_found_with_their_place(
    registry: Registry, turn: Sequence[float], offset: float, edge: float
) -> None:
    bar = Manifold.cube((30, 4, 4), True).refine_to_length(edge)
    other = Manifold.sphere(10, 32).translate((offset, 0.3, 0.2))
    model = scene(mesh_of(bar.rotate(turn), other.rotate(turn)))
    found = findings(registry, model)
    assert set(found) == {"overlapping_bodies"}
    assert found["overlapping_bodies"].amount == 2
    # where the bar leaves the ball
    truth = Manifold.sphere(10.01, 64).translate((offset, 0.3, 0.2)).rotate(turn)
    for place in found["overlapping_bodies"].places:
        probe = Manifold.sphere(place.size_mm / 2 + 0.5, 16).translate(place.position_mm)
        assert (probe ^ truth).volume() > 0
    assert not after(registry, model, found["overlapping_bodies"])


@settings(max_examples=20)
@given(turn=turns, seed=st.integers(0, 10_000))
def test_unions_have_no_overlap(registry: Registry, turn: Sequence[float], seed: int) -> None:
    rng = np.random.default_rng(seed)
    bodies = []
    for _ in range(6):
        size, at = rng.uniform(2, 20, 3), rng.uniform(-10, 10, 3)
        body = Manifold.cube(tuple(size)) if rng.random() < 0.5 else Manifold.sphere(float(size[0]) / 2, 24)
        bodies.append(body.rotate(tuple(rng.uniform(0, 360, 3))).translate(tuple(at)))
    union = Manifold.batch_boolean(bodies, OpType.Add).rotate(turn)
    rounded = mesh_of(union)
    rounded = replace(rounded, vertices=rounded.vertices.astype(np.float32).astype(np.float64))
    assert not findings(registry, scene(rounded))


@pytest.mark.parametrize("as_parts", [False, True])
def test_boxes_whose_edges_meet_overlap(registry: Registry, as_parts: bool) -> None:
    bars = [Manifold.cube((30, 4, 4), True), Manifold.cube((4, 30, 4), True)]
    model = scene(*(mesh_of(bar) for bar in bars)) if as_parts else scene(mesh_of(*bars))
    found = findings(registry, model)
    assert set(found) == {"overlapping_bodies"}
    place = found["overlapping_bodies"].places[0]
    assert place.position_mm == pytest.approx((0, 0, 0), abs=1e-6)
    assert place.size_mm <= np.sqrt(48) + 1e-6
    assert not after(registry, model, found["overlapping_bodies"])


@pytest.mark.parametrize("as_parts", [False, True])
def test_bodies_that_touch_do_not_overlap(registry: Registry, as_parts: bool) -> None:
    boxes = [Manifold.cube((10, 10, 10)), Manifold.cube((10, 10, 10)).translate((10, 3, 0))]
    meshes = [mesh_of(box) for box in boxes] if as_parts else [mesh_of(*boxes)]
    assert not findings(registry, scene(*meshes))


def test_parts_that_overlap_are_united_by_their_remedy(registry: Registry) -> None:
    model = scene(*(mesh_of(Manifold.sphere(5, 32).translate((x, 0, 0))) for x in (0, 4, 20)))
    found = findings(registry, model)
    assert set(found) == {"overlapping_bodies"}
    assert found["overlapping_bodies"].amount == 2
    assert found["overlapping_bodies"].severity == "info"
    assert not after(registry, model, found["overlapping_bodies"])


@pytest.mark.parametrize("turn_deg", [363, 380, 400])
def test_a_body_that_passes_through_itself_is_found(registry: Registry, turn_deg: float) -> None:
    model = scene(ribbon(turn_deg))
    found = findings(registry, model)
    assert set(found) == {"self_intersections"}
    assert found["self_intersections"].severity == "warning"
    for place in found["self_intersections"].places:
        assert 8 < np.hypot(*place.position_mm[:2]) < 12
        assert place.part == 0
    assert not findings(registry, scene(ribbon(340)))


def test_a_body_in_the_material_of_another_is_a_double_wall(registry: Registry) -> None:
    inner = Manifold.sphere(8, 32)
    model = scene(mesh_of(Manifold.sphere(10, 32), inner))
    found = findings(registry, model)
    assert set(found) == {"nested_bodies"}
    assert found["nested_bodies"].amount == 1
    assert not after(registry, model, found["nested_bodies"])


def test_a_body_in_a_cavity_is_free(registry: Registry) -> None:
    cage = Manifold.sphere(10, 32) - Manifold.sphere(8, 32)
    assert not findings(registry, scene(mesh_of(cage, Manifold.sphere(5, 32))))


def test_what_is_there_twice_is_counted(registry: Registry) -> None:
    box = mesh_of(Manifold.cube((10, 10, 10)))
    doubled = replace(box, faces=np.concatenate([box.faces, box.faces[:4, [1, 2, 0]]]))
    found = findings(registry, scene(doubled))
    assert set(found) == {"duplicate_faces"}
    assert found["duplicate_faces"].amount == 4
    assert not after(registry, scene(doubled), found["duplicate_faces"])

    copies = Scene(meshes=(box,), parts=(Part(0), Part(0), Part(0)))
    found = findings(registry, copies)
    assert set(found) == {"duplicate_parts"}
    assert found["duplicate_parts"].amount == 2
    assert [place.part for place in found["duplicate_parts"].places] == [1, 2]
    assert found["duplicate_parts"].places[0].position_mm == (5, 5, 5)
    assert not after(registry, copies, found["duplicate_parts"])


def test_a_single_face_has_no_overlap(registry: Registry) -> None:
    triangle = Mesh(np.array([[0.0, 0, 0], [9, 0, 0], [0, 9, 5]]), np.array([[0, 1, 2]], np.int32))
    assert findings(registry, scene(triangle)) == {}


def test_places_of_nested_bodies_and_duplicate_faces_are_listed(registry: Registry) -> None:
    box = mesh_of(Manifold.cube((10, 10, 10)), Manifold.cube((2, 2, 2)).translate((5, 5, 5)))
    nested = findings(registry, scene(box))["nested_bodies"]
    assert [place.position_mm for place in nested.places] == [(6, 6, 6)]
    top = box.vertices[box.faces][:12, :, 2].min(axis=1) == 10
    moved = np.eye(4)
    moved[0, 3] = 100
    doubled = replace(box, faces=np.concatenate([box.faces[:12], box.faces[:12][top]]))
    model = Scene(meshes=(doubled,), parts=(Part(0, moved), Part(0, moved), Part(0)))
    faces = findings(registry, model)["duplicate_faces"]
    assert [(place.position_mm, place.part, place.amount) for place in faces.places] == [
        ((105, 5, 10), 0, 2),
        ((5, 5, 10), 2, 2),
    ]
    assert (faces.amount, faces.places_found) == (4, 2)


@pytest.mark.parametrize("turn", [(0, 0, 0), (10, 20, 30)])
def test_equal_parts_in_one_place_are_copies_whatever_their_meshes(registry: Registry, turn: Sequence[float]) -> None:
    body = (Manifold.cube((20, 20, 20)) - Manifold.sphere(8, 16)).rotate(list(turn))
    mesh = mesh_of(body)
    order = np.random.default_rng(1).permutation(len(mesh.vertices))
    shuffled = replace(mesh, vertices=mesh.vertices[order], faces=np.argsort(order).astype(np.int32)[mesh.faces[::-1]])
    rounded = replace(mesh, vertices=mesh.vertices.astype(np.float32).astype(np.float64))
    shift = np.eye(4)
    shift[:3, 3] = 7
    elsewhere = replace(mesh, vertices=mesh.vertices - 7)
    model = scene(mesh, shuffled, rounded, elsewhere)
    model = replace(model, parts=(*model.parts[:3], Part(3, shift)))
    found = findings(registry, model)
    assert set(found) == {"duplicate_parts"}
    assert found["duplicate_parts"].amount == 3
    assert not after(registry, model, found["duplicate_parts"])
    other = mesh_of((Manifold.cube((20, 20, 20)) - Manifold.sphere(8, 12)).rotate(list(turn)))
    assert "duplicate_parts" not in findings(registry, scene(mesh, other))
    # other edges divide the sides of the same cube
    cube, edges = (
        mesh_of(Manifold.cube((9, 9, 9))),
        mesh_of(Manifold.cube((9, 9, 9)).rotate((0, 0, 90)).translate((9, 0, 0))),
    )
    assert set(findings(registry, scene(cube, edges))) == {"duplicate_parts"}


def test_a_scene_without_faces_has_no_overlap(registry: Registry) -> None:
    empty = Mesh(np.empty((0, 3)), np.empty((0, 3), np.int32))
    assert not findings(registry, scene(empty, mesh_of(Manifold.cube((10, 10, 10)))))
