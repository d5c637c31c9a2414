"""Colors through operations: what is added takes the colors around it, and atlases do not bleed."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
from PIL import Image as Picture

from meshhub import Registry
from meshhub.builtin_plugins.flatten_base import FlattenBaseOptions
from meshhub.builtin_plugins.flatten_base.operation import run as flatten
from meshhub.builtin_plugins.optimize import OptimizeOptions
from meshhub.builtin_plugins.optimize.operation import run as optimize
from meshhub.builtin_plugins.repair import RepairOptions, meshlab
from meshhub.builtin_plugins.repair.operation import run as repair
from meshhub.model.scene import Image, Material, Mesh, Part, Scene
from meshhub.model.source import Source, Target
from meshhub.toolkit.geometry import compacted, face_normals, soup
from meshhub.toolkit.surface_colors import Surface, SurfaceColors
from meshhub.toolkit.topology import is_closed
from models import assert_valid, sphere

pytestmark = pytest.mark.once

RED, GREEN, BLUE = (255, 0, 0), (0, 255, 0), (0, 0, 255)

Operate = Callable[[Scene], Scene]


def paint_atlas(mesh: Mesh, *, with_normals: bool = False) -> Scene:
    """Return a scene whose left half is red and whose right half is blue, from an atlas with green between both."""
    pixels = np.empty((4, 12, 3), np.uint8)
    pixels[:, :4], pixels[:, 4:8], pixels[:, 8:] = RED, GREEN, BLUE
    data = io.BytesIO()
    Picture.fromarray(pixels).save(data, "PNG")
    is_right = mesh.vertices[mesh.faces].mean(axis=1)[:, 0] > 0
    # every vertex once for each half
    count = len(mesh.vertices)
    v = np.tile(0.25 + 0.5 * (mesh.vertices[:, 1] - mesh.vertices[:, 1].min()) / np.ptp(mesh.vertices[:, 1]), 2)
    uv = np.stack([np.repeat([0.15, 0.85], count), v], axis=1)
    length = np.linalg.norm(mesh.vertices, axis=1, keepdims=True)
    split = Mesh(
        np.tile(mesh.vertices, (2, 1)),
        mesh.faces + count * is_right[:, None].astype(np.int32),
        uv=uv,
        normals=np.tile(mesh.vertices / length, (2, 1)) if with_normals else None,
    )
    return Scene(
        (compacted(split),),
        (Part(0, material=0),),
        (Material(base_color_image=0),),
        (Image(data.getvalue(), "image/png"),),
    )


def use_two_materials(scene: Scene) -> Scene:
    """Return the scene with a plain material on the left half, whose coordinates are those of green."""
    mesh = scene.meshes[0]
    assert mesh.uv is not None
    is_right = mesh.vertices[mesh.faces].mean(axis=1)[:, 0] > 0
    uv = mesh.uv.copy()
    uv[uv[:, 0] < 0.5, 0] = 0.5
    materials = (Material("blue", base_color_image=0), Material("red", (1.0, 0.0, 0.0, 1.0)))
    mesh = replace(mesh, uv=uv, face_material=np.where(is_right, 0, 1).astype(np.int32))
    return replace(scene, meshes=(mesh,), materials=materials)


def measure_colors(scene: Scene) -> dict[tuple[int, ...], float]:
    """Return the share of the area of each color."""
    (part,) = scene.parts
    mesh = scene.meshes[part.mesh]
    a, b, c = mesh.vertices[mesh.faces].transpose(1, 0, 2)
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    weights = np.random.default_rng(0).dirichlet((1, 1, 1), 20).astype(np.float32)
    face = np.repeat(np.arange(len(area)), len(weights))
    samples = SurfaceColors(scene, [Surface(part.mesh, part.material)]).sample(face, np.tile(weights, (len(area), 1)))
    colors, index = np.unique(samples, axis=0, return_inverse=True)
    shares = np.bincount(index, area[face]) / area.sum() / len(weights)
    return {tuple(color.tolist()): float(share) for color, share in zip(colors, shares, strict=True)}


def open_top(mesh: Mesh) -> Mesh:
    is_top = mesh.vertices[mesh.faces].mean(axis=1)[:, 2] > 7
    return compacted(replace(mesh, faces=mesh.faces[~is_top]))


SCENES = {
    "atlas": paint_atlas,
    "atlas and normals": lambda mesh: paint_atlas(mesh, with_normals=True),
    "two materials": lambda mesh: use_two_materials(paint_atlas(mesh)),
}


@pytest.mark.parametrize("kind", SCENES)
def test_filled_holes_take_the_colors_around_them(kind: str) -> None:
    result = repair(SCENES[kind](open_top(sphere(10, 32))), RepairOptions(repair=True))
    assert_valid(result)
    assert measure_colors(result) == pytest.approx({RED: 0.5, BLUE: 0.5}, abs=0.05)


@pytest.mark.parametrize("kind", SCENES)
def test_caps_take_the_colors_around_them(kind: str) -> None:
    result = flatten(SCENES[kind](sphere(10, 32)), FlattenBaseOptions(flatten_base_mm=8))
    assert_valid(result)
    assert measure_colors(result) == pytest.approx({RED: 0.5, BLUE: 0.5}, abs=0.12)


@pytest.mark.parametrize("kind", SCENES)
def test_reduced_surfaces_keep_the_colors_of_their_place(kind: str) -> None:
    result = optimize(SCENES[kind](sphere(10, 64)), OptimizeOptions(optimize_target_faces=600))
    assert measure_colors(result) == pytest.approx({RED: 0.5, BLUE: 0.5}, abs=0.05)


@pytest.mark.skipif(find_spec("pymeshlab") is None, reason="needs the extra meshlab")
@pytest.mark.parametrize("kind", SCENES)
def test_surfaces_of_the_second_stage_keep_the_colors_of_their_place(kind: str) -> None:
    scene = SCENES[kind](open_top(sphere(10, 32)))
    (mesh,) = scene.meshes
    second = meshlab.repair_with_meshlab(mesh, mesh)
    assert second is not None
    colors = measure_colors(replace(scene, meshes=(second[0],)))
    assert colors == pytest.approx({RED: 0.5, BLUE: 0.5}, abs=0.05)


@pytest.mark.parametrize(
    "operate",
    [
        lambda scene: repair(scene, RepairOptions(repair=True)),
        lambda scene: flatten(scene, FlattenBaseOptions(flatten_base_mm=8)),
        lambda scene: optimize(scene, OptimizeOptions(optimize_target_faces=600)),
    ],
    ids=["repair", "flatten", "optimize"],
)
def test_vertex_colors_stay_smooth(operate: Operate) -> None:
    mesh = sphere(10, 48)
    shade = np.rint((mesh.vertices[:, 0] + 10) / 20 * 255)
    colors = np.stack([shade, shade, shade, np.full(len(shade), 255)], axis=1).astype(np.uint8)
    result = operate(Scene((open_top(replace(mesh, colors=colors)),), (Part(0),)))
    mesh = result.meshes[result.parts[0].mesh]
    assert mesh.colors is not None
    assert mesh.colors[:, 0] == pytest.approx((mesh.vertices[:, 0] + 10) / 20 * 255, abs=12)


REGISTRY = Registry(entry_points=False)


def color_vertices(mesh: Mesh) -> Scene:
    """Return a scene whose left half is red and whose right half is blue, by vertices."""
    split = paint_atlas(mesh).meshes[0]
    assert split.uv is not None
    colors = np.where(split.uv[:, :1] < 0.5, (*RED, 255), (*BLUE, 255)).astype(np.uint8)
    return Scene((replace(split, uv=None, colors=colors),), (Part(0),))


def color_faces(mesh: Mesh) -> Scene:
    """Return a scene whose left half is red and whose right half is blue, by the materials of faces."""
    is_right = mesh.vertices[mesh.faces].mean(axis=1)[:, 0] > 0
    materials = (Material("red", (1.0, 0.0, 0.0, 1.0)), Material("blue", (0.0, 0.0, 1.0, 1.0)))
    return Scene((replace(mesh, face_material=is_right.astype(np.int32)),), (Part(0),), materials)


def color_parts(mesh: Mesh) -> Scene:
    """Return a scene with a red part on the left and a blue one on the right, which share a mesh."""
    scene = color_faces(mesh)
    places = np.tile(np.eye(4), (2, 1, 1))
    places[:, 0, 3] = -11, 11
    parts = tuple(Part(0, place, material=number) for number, place in enumerate(places))
    return replace(scene, meshes=(mesh,), parts=parts)


def paint_inside(mesh: Mesh) -> Source:
    """Return a project with paint of red and blue inside the triangles."""
    target = Target("model.3mf")
    options = {"reduce_colors": 2, "threemf_profile": "prusa"}
    REGISTRY.convert(paint_atlas(mesh), target, target="3mf", options=options)
    return Source.from_bytes(target.read(), "model.3mf")


KINDS: dict[str, Callable[[Mesh], Scene | Source]] = {
    "texture": paint_atlas,
    "vertex colors": color_vertices,
    "face colors": color_faces,
    "materials of parts": color_parts,
    "paint": paint_inside,
}

OPERATIONS: dict[str, dict[str, object]] = {
    "repair": {"repair": True},
    "repair solid": {"repair": True, "repair_solid": True},
    "reduction": {"optimize_target_faces": 400},
    "cut": {"flatten_base_mm": 2},
    "scale": {"target_height_mm": 40},
    "place": {"place_on_bed": True},
    "all": {
        "repair": True,
        "optimize_target_faces": 400,
        "target_height_mm": 30,
        "flatten_base_mm": 2,
        "place_on_bed": True,
    },
}


@pytest.mark.parametrize(
    ("mesh", "options", "direction"),
    [(sphere(10, 32), {"flatten_base_mm": 8}, -1), (open_top(sphere(10, 32)), {"repair": True}, 1)],
    ids=["cap", "hole"],
)
@pytest.mark.parametrize("kind", KINDS)
def test_each_half_of_a_closed_opening_has_the_color_of_its_side(
    kind: str, mesh: Mesh, options: dict[str, object], direction: int
) -> None:
    target = Target("model.glb")
    paint: dict[str, object] = {"threemf_paint": "split"} if kind == "paint" else {}
    REGISTRY.convert(KINDS[kind](mesh), target, target="glb", options=paint | options)
    scene = REGISTRY.read(Source.from_bytes(target.read(), "model.glb"))
    vertices, faces = soup(scene)
    assert is_closed(vertices, faces)
    normals = face_normals(vertices, faces)
    heights = direction * normals[:, 2]
    area = np.where(heights > 0.99 * np.linalg.norm(normals, axis=1), heights, 0)
    random = np.random.default_rng(0)
    face = random.choice(len(faces), 4000, p=area / area.sum())
    weights = random.dirichlet((1, 1, 1), len(face)).astype(np.float32)
    points = np.einsum("kc,kcd->kd", weights, vertices[faces[face]])
    colors = SurfaceColors(scene, [Surface(part.mesh, part.material) for part in scene.parts]).sample(face, weights)
    is_blue = np.abs(colors.astype(int) - BLUE).max(axis=1) <= 3
    assert (is_blue == (points[:, 0] > 0)).mean() > 0.88


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_color_stays_in_its_place(kind: str, operation: str) -> None:
    target = Target("model.glb")
    options = {"threemf_paint": "split"} if kind == "paint" else {}
    REGISTRY.convert(
        KINDS[kind](open_top(sphere(10, 32))), target, target="glb", options=options | OPERATIONS[operation]
    )
    scene = REGISTRY.read(Source.from_bytes(target.read(), "model.glb"))
    vertices, faces = soup(scene)
    normals = face_normals(vertices, faces)
    area = np.linalg.norm(normals, axis=1)
    random = np.random.default_rng(0)
    face = random.choice(len(faces), 4000, p=area / area.sum())
    weights = random.dirichlet((1, 1, 1), len(face)).astype(np.float32)
    points = np.einsum("kc,kcd->kd", weights, vertices[faces[face]])
    colors = SurfaceColors(scene, [Surface(part.mesh, part.material) for part in scene.parts]).sample(face, weights)
    difference = np.abs(colors[:, None].astype(int) - [RED, BLUE]).max(axis=2)
    # filled holes and caps have one of the colors around them: no white, no blend, and no green of the atlas
    assert (difference.min(axis=1) <= 3).mean() >= 0.99
    is_right = difference.argmin(axis=1) == (points[:, 0] > 0)
    # triangles across the border between the halves belong to one of them, and those of caps are long
    is_clear = np.abs(points[:, 0]) > 0.05 * np.ptp(points[:, 2])
    is_cap = np.abs(normals[face, 2]) > 0.97 * area[face]
    assert is_right[is_clear & ~is_cap].mean() >= 0.99
