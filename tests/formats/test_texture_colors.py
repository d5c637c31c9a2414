"""The option `texture_colors`: textures as vertex colors, for every format that has them."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Picture

from meshhub import Registry, Request, Source
from meshhub.model.scene import Image, Material, Mesh, Part, Scene
from meshhub.toolkit.geometry import soup
from meshhub.toolkit.topology import is_closed
from models import brick, sphere

pytestmark = pytest.mark.once

COLORS = np.array([[(255, 0, 0), (0, 255, 0)], [(0, 0, 255), (255, 255, 0)]], np.uint8)
"""Pixels of the texture, the upper row first."""


def textured(mesh: Mesh, **material: object) -> Scene:
    """Return a scene with a texture of four colors, projected along Z."""
    data = io.BytesIO()
    Picture.fromarray(COLORS).save(data, "PNG")
    low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
    uv = (mesh.vertices[:, :2] - low[:2]) / (high - low)[:2]
    description = Material("paint", base_color_image=0, filter="nearest", wrap=("clamp", "clamp"))
    return Scene(
        (replace(mesh, uv=uv),),
        (Part(0, material=0),),
        (replace(description, **material),),  # type: ignore[arg-type]
        (Image(data.getvalue(), "image/png"),),
    )


def expected_colors(points: np.ndarray, middle: np.ndarray) -> np.ndarray:
    column, row = points[:, 0] >= middle[0], points[:, 1] < middle[1]
    return COLORS[row.astype(int), column.astype(int)]


def placed_mesh(scene: Scene) -> Mesh:
    assert len(scene.parts) == 1
    return scene.meshes[scene.parts[0].mesh]


def test_ply_gets_the_colors_of_the_texture(tmp_path: Path) -> None:
    with Registry() as registry:
        report = registry.convert(textured(brick(10, 20, 30)), tmp_path / "a.ply")
        mesh = placed_mesh(registry.read(tmp_path / "a.ply"))
    assert mesh.colors is not None
    assert np.array_equal(mesh.colors[:, :3], expected_colors(mesh.vertices, np.array([5, 10])))
    codes = [note.code for note in report.notes]
    assert "textures_as_colors" in codes
    assert "textures_dropped" not in codes


def draw_charts() -> Scene:
    """Return two squares of 3 × 3 cells side by side, red and blue, whose charts have white around them."""
    pixels = np.full((64, 64, 3), 255, np.uint8)
    pixels[4:28, 4:28], pixels[36:60, 36:60] = (255, 0, 0), (0, 0, 255)
    steps = np.linspace(0, 1, 4)
    grid = np.stack(np.meshgrid(steps, steps, indexing="ij"), axis=-1).reshape(-1, 2)
    low = np.arange(16).reshape(4, 4)[:-1, :-1].ravel()
    quads = np.concatenate([low[:, None] + [0, 4, 5], low[:, None] + [0, 5, 1]])
    place = np.concatenate([np.column_stack([grid + [number, 0], np.zeros(16)]) for number in (0, 1)])
    # the second row of charts is below the first one
    uv = np.concatenate([(4 + 24 * grid) / 64 + [0, 0.5], (36 + 24 * grid) / 64 - [0, 0.5]])
    data = io.BytesIO()
    Picture.fromarray(pixels).save(data, "PNG")
    mesh = Mesh(10 * place, np.concatenate([quads, quads + 16]).astype(np.int32), uv=uv.astype(np.float32))
    material = Material("atlas", base_color_image=0)
    return Scene((mesh,), (Part(0, material=0),), (material,), (Image(data.getvalue(), "image/png"),))


def test_vertices_at_the_border_of_a_chart_have_the_color_inside(tmp_path: Path) -> None:
    """The filter of the texture mixes the white around the charts into the colors there."""
    with Registry() as registry:
        registry.convert(draw_charts(), tmp_path / "a.ply")
        mesh = placed_mesh(registry.read(tmp_path / "a.ply"))
    assert mesh.colors is not None and len(mesh.vertices) == 32
    is_first = mesh.vertices[mesh.faces].mean(axis=1)[:, 0] < 10
    assert (mesh.colors[mesh.faces[is_first], :3] == (255, 0, 0)).all()
    assert (mesh.colors[mesh.faces[~is_first], :3] == (0, 0, 255)).all()


@pytest.mark.parametrize("wrap", ["clamp", "repeat"])
def test_inset_samples_of_faces_without_size_in_the_texture_read_a_pixel(tmp_path: Path, wrap: str) -> None:
    scene = textured(brick(10, 20, 30), filter="linear", wrap=(wrap, wrap))
    flat = replace(scene.meshes[0], uv=np.zeros_like(scene.meshes[0].uv))
    with Registry() as registry:
        registry.convert(replace(scene, meshes=(flat,)), tmp_path / "a.ply")
        mesh = placed_mesh(registry.read(tmp_path / "a.ply"))
    assert mesh.colors is not None and len(np.unique(mesh.colors, axis=0)) == 1


@pytest.mark.parametrize("extension", ["ply", "obj", "glb", "gltf", "3mf"])
def test_formats_with_vertex_colors_get_them_on_request(tmp_path: Path, extension: str) -> None:
    with Registry() as registry:
        registry.convert(textured(sphere(10)), tmp_path / f"a.{extension}", texture_colors="vertex")
        scene = registry.read(tmp_path / f"a.{extension}")
    assert "textures" not in scene.features()
    mesh = placed_mesh(scene)
    assert mesh.colors is not None
    # vertices on the border belong to either color
    is_inner = np.abs(mesh.vertices[:, :2]).min(axis=1) > 0.01
    assert np.array_equal(mesh.colors[is_inner, :3], expected_colors(mesh.vertices[is_inner], np.zeros(2)))
    assert is_closed(*soup(scene))


@pytest.mark.parametrize("extension", ["ply", "glb", "3mf"])
def test_faces_get_one_color_each(tmp_path: Path, extension: str) -> None:
    with Registry() as registry:
        registry.convert(textured(sphere(10)), tmp_path / f"a.{extension}", texture_colors="face")
        scene = registry.read(tmp_path / f"a.{extension}")
    mesh = placed_mesh(scene)
    assert mesh.colors is not None
    corners = mesh.colors[mesh.faces]
    assert (corners == corners[:, :1]).all()
    assert len(np.unique(corners[:, 0], axis=0)) >= 4
    assert is_closed(*soup(scene))


def test_textures_stay_where_the_format_keeps_them(tmp_path: Path) -> None:
    with Registry() as registry:
        for extension, options in (("glb", {}), ("3mf", {}), ("obj", {"texture_colors": "texture"})):
            registry.convert(textured(brick()), tmp_path / f"a.{extension}", **options)  # type: ignore[arg-type]
            assert "textures" in registry.read(tmp_path / f"a.{extension}").features()


def test_textures_are_dropped_from_ply_on_request(tmp_path: Path) -> None:
    with Registry() as registry:
        report = registry.convert(textured(brick()), tmp_path / "a.ply", texture_colors="texture")
        assert placed_mesh(registry.read(tmp_path / "a.ply")).colors is None
    assert "textures_dropped" in [note.code for note in report.notes]


def test_colors_are_products_with_the_factor_and_the_vertex_color(tmp_path: Path) -> None:
    scene = textured(brick(), base_color=(1.0, 128 / 255, 1.0, 1.0))
    mesh = scene.meshes[0]
    tint = np.tile(np.array([128, 255, 255, 255], np.uint8), (len(mesh.vertices), 1))
    with Registry() as registry:
        registry.convert(replace(scene, meshes=(replace(mesh, colors=tint),)), tmp_path / "a.ply")
        colors = placed_mesh(registry.read(tmp_path / "a.ply")).colors
    assert colors is not None
    assert {tuple(color[:3]) for color in colors.tolist()} == {(128, 0, 0), (0, 128, 0), (0, 0, 255), (128, 128, 0)}


@pytest.mark.parametrize("coordinate", [np.nan, np.inf, -1e30])
@pytest.mark.parametrize("wrap", ["repeat", "mirror", "clamp"])
def test_impossible_coordinates_read_a_pixel(tmp_path: Path, coordinate: float, wrap: str) -> None:
    scene = textured(brick(), wrap=(wrap, wrap))
    uv = np.full((len(scene.meshes[0].vertices), 2), coordinate, np.float32)
    with Registry() as registry:
        registry.convert(replace(scene, meshes=(replace(scene.meshes[0], uv=uv),)), tmp_path / "a.ply")
        colors = placed_mesh(registry.read(tmp_path / "a.ply")).colors
    assert colors is not None
    # the lower left corner, where repeated textures border on their upper edge
    assert (colors[:, :3] == COLORS[0 if wrap == "repeat" else 1, 0]).all()


def test_parts_without_a_texture_keep_their_colors(tmp_path: Path) -> None:
    scene = textured(brick())
    move = np.eye(4)
    move[2, 3] = 100
    scene = replace(
        scene,
        meshes=(*scene.meshes, sphere(5)),
        parts=(*scene.parts, Part(1, move, material=1)),
        materials=(*scene.materials, Material("pink", (1.0, 0.0, 1.0, 1.0))),
    )
    with Registry() as registry:
        registry.convert(scene, tmp_path / "a.ply")
        mesh = placed_mesh(registry.read(tmp_path / "a.ply"))
    assert mesh.colors is not None
    is_sphere = mesh.vertices[:, 2] > 50
    assert (mesh.colors[is_sphere, :3] == (255, 0, 255)).all()
    assert len(np.unique(mesh.colors[~is_sphere], axis=0)) == 4


@pytest.mark.parametrize(
    ("target", "texture_colors", "is_lost"),
    [("ply", None, False), ("ply", "texture", True), ("glb", None, False), ("stl", "vertex", True)],
)
def test_chains_state_whether_textures_can_be_lost(target: str, texture_colors: str | None, is_lost: bool) -> None:
    with Registry() as registry:
        source = Source.from_bytes(registry.convert_bytes(textured(brick()), "glb"), "a.glb")
        chain = registry.resolve(Request(target=target, options={"texture_colors": texture_colors}), source)
    assert ("textures" in [loss.feature for loss in chain.losses]) is is_lost
