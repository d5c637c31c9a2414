"""Edges, shells, fans and loops of small models with known results."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshhub.model.scene import Int32
from meshhub.toolkit import topology
from models import brick, move_mesh, sphere

pytestmark = pytest.mark.once


def join_faces(*faces: Int32) -> Int32:
    """Return one face array whose parts use separate vertices."""
    offset, result = 0, []
    for each in faces:
        result.append(each + offset)
        offset += int(each.max()) + 1
    return np.concatenate(result).astype(np.int32)


BOX = brick().faces


def test_a_box_is_closed_and_manifold() -> None:
    assert topology.edge_statistics(BOX) == (0, 0, 0)
    assert topology.shells(BOX)[0] == 1
    assert topology.is_closed(brick().vertices, BOX)


def test_a_missing_face_opens_three_edges() -> None:
    assert topology.edge_statistics(BOX[1:]) == (3, 0, 0)
    assert not topology.is_closed(brick().vertices, BOX[1:])


def test_a_flipped_face_is_inconsistent_and_closed() -> None:
    faces = BOX.copy()
    faces[0] = faces[0][::-1]
    assert topology.edge_statistics(faces) == (0, 0, 3)
    assert topology.is_closed(brick().vertices, faces)


def test_a_duplicate_face_is_not_manifold() -> None:
    assert topology.edge_statistics(np.concatenate([BOX, BOX[:1]])).nonmanifold == 3


def test_seams_do_not_open_a_mesh() -> None:
    box = brick()
    assert topology.is_closed(box.vertices[box.faces.ravel()], np.arange(36, dtype=np.int32).reshape(-1, 3))


def test_degenerate_faces_do_not_close_anything() -> None:
    flat = np.array([[0, 0, 1]], np.int32)
    assert not topology.is_closed(brick().vertices, flat)
    assert topology.is_closed(brick().vertices, np.concatenate([BOX, flat]))


def test_a_mesh_without_faces_has_empty_results() -> None:
    nothing = np.empty((0, 3), np.int32)
    assert topology.edge_statistics(nothing) == (0, 0, 0)
    assert topology.shells(nothing)[0] == 0
    assert not topology.is_closed(np.empty((0, 3)), nothing)


def test_shells_are_numbered_by_their_first_faces() -> None:
    faces = join_faces(BOX, sphere().faces, BOX)
    count, label = topology.shells(faces)
    assert count == 3
    assert label[0] == 0
    assert label[12] == 1
    assert label[-1] == 2
    assert np.bincount(label).tolist() == [12, len(sphere().faces), 12]


def test_large_indices_give_the_same_result_with_another_sort() -> None:
    many = sphere(segments=48).faces  # few are sorted that way in any case
    faces = np.concatenate([many, many[:3]])[::-1]
    far = faces + np.int32(2**31 - 2000)
    near, apart = topology.edges(faces), topology.edges(far)
    assert np.array_equal(near.order, apart.order)
    assert np.array_equal(near.size, apart.size)


def two_boxes_at_a_corner() -> Int32:
    faces = join_faces(BOX, BOX)
    faces[faces == 8] = 7
    return faces


def test_a_vertex_with_two_fans_is_found() -> None:
    faces = two_boxes_at_a_corner()
    mesh_edges = topology.edges(faces)
    assert topology.edge_statistics(faces) == (0, 0, 0)
    assert topology.fans(faces, *mesh_edges.pairs())[0] == 16
    assert not topology.is_vertex_manifold(faces, mesh_edges)
    assert topology.is_vertex_manifold(BOX, topology.edges(BOX))


def test_a_vertex_with_many_faces_has_one_fan() -> None:
    faces = sphere(segments=300).faces  # 300 faces meet at each pole
    assert topology.is_vertex_manifold(faces, topology.edges(faces))


def test_loops_are_ordered_also_where_they_touch() -> None:
    # two opposite quads of a 3 × 3 sheet missing: their holes touch in no edge, but in a point
    grid = np.arange(16).reshape(4, 4)
    corner = np.stack([grid[:-1, :-1], grid[:-1, 1:], grid[1:, 1:], grid[1:, :-1]], axis=2).reshape(-1, 4)
    quads = corner[[0, 1, 2, 3, 5, 6, 7]]
    faces = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    mesh_edges = topology.edges(faces)
    _, fan = topology.fans(faces, *mesh_edges.pairs())
    half, begin = topology.boundary_loops(mesh_edges.border(), fan)
    start, ended = (end[half] for end in topology.half_edges(faces))
    for first, last in itertools.pairwise(begin):
        assert np.array_equal(ended[first:last], np.roll(start[first:last], -1))
    assert sorted(np.unique(half).tolist()) == sorted(mesh_edges.border().tolist())


@settings(max_examples=50)
@given(st.permutations(list(range(24))))
def test_cycles_follow_the_permutation(after: list[int]) -> None:
    members, begin = topology.cycles(np.array(after))
    assert sorted(members.tolist()) == list(range(24))
    for first, last in itertools.pairwise(begin):
        cycle = members[first:last].tolist()
        assert cycle[0] == min(cycle)
        assert [after[member] for member in cycle] == cycle[1:] + cycle[:1]


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60))
def test_statistics_agree_with_counting(seed: int, size: int) -> None:
    faces = np.random.default_rng(seed).permuted(np.tile(np.arange(9), (size, 1)), axis=1)[:, :3]
    counts: dict[tuple[int, int], list[bool]] = {}
    for a, b, c in faces.tolist():
        for begin, end in ((a, b), (b, c), (c, a)):
            counts.setdefault((min(begin, end), max(begin, end)), []).append(begin < end)
    expected = (
        sum(len(runs) == 1 for runs in counts.values()),
        sum(len(runs) > 2 for runs in counts.values()),
        sum(len(runs) == 2 and runs[0] == runs[1] for runs in counts.values()),
    )
    assert topology.edge_statistics(faces) == expected


@pytest.mark.parametrize("distance", [0.0, 100.0])
def test_bodies_that_share_only_vertices_are_separate(distance: float) -> None:
    other = move_mesh(brick(), 10 + distance, 20, 30)
    points = np.concatenate([brick().vertices, other.vertices])
    _, index = np.unique(points, axis=0, return_inverse=True)
    faces = index.ravel()[join_faces(BOX, other.faces)]
    assert topology.shells(faces)[0] == 2


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(1, 40))
def test_small_meshes_give_the_same_result_as_within_a_large_one(seed: int, count: int, points: int) -> None:
    # few and many are sorted and joined in different ways
    faces = np.random.default_rng(seed).integers(0, points, (count, 3)).astype(np.int32)
    many = join_faces(faces, *[BOX] * 300)
    alone, among = topology.edges(faces), topology.edges(many)
    assert among.order[: 3 * count].tolist() == alone.order.tolist()
    assert among.size[: len(alone.size)].tolist() == alone.size.tolist()
    number, label = topology.shells(faces)
    assert topology.shells(many)[0] == number + 300
    assert topology.shells(many)[1][:count].tolist() == label.tolist()
    after = np.random.default_rng(seed).permutation(points)
    members, begin = topology.cycles(after)
    long_members, long_begin = topology.cycles(np.concatenate([after, np.arange(points, 4000)]))
    assert long_members[:points].tolist() == members.tolist()
    assert long_begin[: len(begin)].tolist() == begin.tolist()


@pytest.mark.parametrize("links", [0, 300, 900, 3000])
def test_huge_graphs_are_labeled_like_small_ones(links: int) -> None:
    # the nodes without links make the second graph too large for the method of the first one
    starts, ends = np.random.default_rng(links).integers(0, 1000, (2, links))
    count, label = topology.components(1000, starts, ends)
    huge_count, huge_label = topology.components(1_001_000, starts, ends)
    assert huge_count == count + 1_000_000
    assert np.array_equal(huge_label[:1000], label)
    assert np.array_equal(label[starts], label[ends])
    assert (np.diff(np.unique(label, return_index=True)[1]) > 0).all()


def test_angles_around_an_edge_follow_its_direction_up_to_a_full_turn() -> None:
    degrees = np.array([30.0, 120.0, 30.0 + 1e-9, 300.0, 20.0])
    rim = np.stack([np.cos(np.radians(degrees)), np.sin(np.radians(degrees)), np.full(5, 0.5)], axis=1)
    points = np.concatenate([[[0.0, 0, 0], [0, 0, 1]], rim])
    faces = np.array([[0, 1, 2], [1, 0, 3], [0, 1, 4], [1, 0, 5], [0, 1, 6]], np.int32)
    mesh_edges = topology.edges(faces)
    crowded = np.flatnonzero(mesh_edges.size > 2)
    angles = topology.angles_around_edges(points, faces, mesh_edges, crowded, np.radians(0.001))
    assert (angles.half // 3).tolist() == [0, 1, 2, 3, 4]
    assert angles.group.tolist() == [0, 0, 0, 0, 0]
    assert angles.forward.tolist() == [True, False, True, False, True]
    assert angles.ticks.tolist() == [0, 90_000, 0, 270_000, 350_000]
