"""Scenes from and for other libraries keep shape, placement, names and colors."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from meshhub import Frame, Image, Material, Mesh, Part, Registry, Scene
from meshhub.interop import (
    from_arrays,
    from_meshio,
    from_open3d,
    from_pyvista,
    from_trimesh,
    to_arrays,
    to_meshio,
    to_open3d,
    to_pyvista,
    to_trimesh,
)
from meshhub.toolkit.geometry import soup
from models import brick, scene_of, volume

REGISTRY = Registry(entry_points=False)

TURNED = np.array([[0, -1, 0, 5], [1, 0, 0, 6], [0, 0, 1, 7], [0, 0, 0, 1]], np.float64)


def red_png() -> bytes:
    """A PNG of one red pixel."""
    pillow = pytest.importorskip("PIL.Image", reason="Pillow is in the group `test`")
    content = io.BytesIO()
    pillow.new("RGB", (1, 1), (255, 0, 0)).save(content, "PNG")
    return content.getvalue()


def two_bricks() -> Scene:
    """A brick with vertex colors that stands twice, once turned."""
    colors = np.arange(32, dtype=np.uint8).reshape(8, 4) | 128
    return Scene((replace(brick(), colors=colors),), (Part(0, name="left"), Part(0, name="right", transform=TURNED)))


def textured() -> Scene:
    """A brick with texture coordinates, of which half has a red texture and half is plain blue."""
    uv = np.linspace(0, 1, 16, dtype=np.float32).reshape(8, 2)
    materials = (Material(name="image", base_color_image=0), Material(name="blue", base_color=(0, 0, 0.5, 1)))
    mesh = replace(brick(), uv=uv, face_material=np.int32([0] * 6 + [1] * 6))
    return Scene((mesh,), (Part(0, name="crate"),), materials, (Image(red_png(), "image/png"),))


def solid_volume(scene: Scene) -> float:
    return volume(*soup(scene))


def test_arrays() -> None:
    vertices, faces = to_arrays(two_bricks())
    scene = from_arrays(vertices, faces, colors=np.full((16, 3), 0.5), frame=Frame("in", "z"), name="both")
    assert scene.frame.unit == "in" and scene.meshes[0].name == "both"
    assert solid_volume(scene) == pytest.approx(12000)
    assert scene.meshes[0].colors is not None and scene.meshes[0].colors[3].tolist() == [128, 128, 128, 255]
    with pytest.raises(ValueError, match="colors must be an array of shape 16×3"):
        from_arrays(vertices, faces, colors=np.zeros((3, 3)))


# trimesh


def test_trimesh_gets_shape_placement_names_colors_and_unit() -> None:
    trimesh = pytest.importorskip("trimesh", reason="trimesh is in the group `test`")
    model = to_trimesh(replace(two_bricks(), frame=Frame("in", "z")))
    assert isinstance(model, trimesh.Scene)
    assert model.units == "inches"
    assert set(model.graph.nodes_geometry) == {"left", "right"} or len(model.graph.nodes_geometry) == 2
    assert len(model.geometry) == 1, "an instance shares its mesh"
    assert model.to_mesh().is_watertight and model.to_mesh().volume == pytest.approx(12000)
    (mesh,) = model.geometry.values()
    np.testing.assert_array_equal(mesh.visual.vertex_colors, two_bricks().meshes[0].colors)


def test_trimesh_comes_back() -> None:
    pytest.importorskip("trimesh", reason="trimesh is in the group `test`")
    scene = from_trimesh(to_trimesh(two_bricks()))
    assert len(scene.meshes) == 1 and len(scene.parts) == 2
    assert solid_volume(scene) == pytest.approx(12000)
    np.testing.assert_array_equal(scene.parts[1].transform, TURNED)
    np.testing.assert_array_equal(scene.meshes[0].colors, two_bricks().meshes[0].colors)


def test_trimesh_keeps_textures_and_materials() -> None:
    pytest.importorskip("trimesh", reason="trimesh is in the group `test`")
    scene = from_trimesh(to_trimesh(textured()))
    assert [material.name for material in scene.materials] == ["image", "blue"]
    assert scene.materials[1].base_color == pytest.approx((0, 0, 0.5, 1), abs=0.01)
    assert scene.materials[0].base_color_image is not None
    assert solid_volume(scene) == pytest.approx(6000)
    assert scene.meshes[0].uv is not None


def test_colors_of_faces_in_trimesh_become_materials() -> None:
    trimesh = pytest.importorskip("trimesh", reason="trimesh is in the group `test`")
    box = trimesh.creation.box((1, 2, 3))
    box.visual.face_colors = [[255, 0, 0, 255]] * 6 + [[0, 255, 0, 255]] * 6
    scene = from_trimesh(box)
    assert {material.base_color for material in scene.materials} == {(1, 0, 0, 1), (0, 1, 0, 1)}
    assert solid_volume(scene) == pytest.approx(6)


def test_ten_lines_repair_a_mesh_of_trimesh() -> None:
    trimesh = pytest.importorskip("trimesh", reason="trimesh is in the group `test`")
    broken = trimesh.creation.icosphere()
    broken.update_faces(np.arange(len(broken.faces)) > 4)
    assert not broken.is_watertight
    repaired = to_trimesh(REGISTRY.read(from_trimesh(broken), repair=True)).to_mesh()
    assert repaired.is_watertight
    assert repaired.volume == pytest.approx(trimesh.creation.icosphere().volume, rel=0.01)


# meshio


def test_meshio_gets_triangles_and_colors_and_comes_back() -> None:
    pytest.importorskip("meshio", reason="meshio is in the group `test`")
    mesh = to_meshio(two_bricks())
    assert len(mesh.points) == 16 and len(mesh.cells_dict["triangle"]) == 24
    scene = from_meshio(mesh)
    assert solid_volume(scene) == pytest.approx(12000)
    expected = two_bricks().meshes[0].colors
    assert expected is not None and scene.meshes[0].colors is not None
    np.testing.assert_array_equal(scene.meshes[0].colors, np.concatenate([expected, expected]))


def test_polygons_of_meshio_are_triangulated() -> None:
    meshio = pytest.importorskip("meshio", reason="meshio is in the group `test`")
    points = [[0, 0], [2, 0], [2, 1], [0, 1]]
    scene = from_meshio(meshio.Mesh(points, [("quad", [[0, 1, 2, 3]]), ("line", [[0, 1]])]))
    vertices, faces = soup(scene)
    assert len(faces) == 2 and np.ptp(vertices, axis=0).tolist() == [2, 1, 0]


# PyVista


def test_pyvista_gets_named_blocks_and_comes_back() -> None:
    pyvista = pytest.importorskip("pyvista", reason="PyVista is in the group `interop`")
    blocks = to_pyvista(two_bricks())
    assert blocks.keys() == ["left", "right"]
    assert blocks.combine().extract_surface(algorithm=None).volume == pytest.approx(12000, rel=1e-5)
    scene = from_pyvista(blocks)
    assert [part.name for part in scene.parts] == ["left", "right"]
    np.testing.assert_array_equal(scene.meshes[0].colors, two_bricks().meshes[0].colors)
    assert solid_volume(scene) == pytest.approx(12000, rel=1e-5)
    assert solid_volume(from_pyvista(pyvista.Cube(x_length=1, y_length=2, z_length=3))) == pytest.approx(6)


def test_pyvista_gets_texture_coordinates() -> None:
    pytest.importorskip("pyvista", reason="PyVista is in the group `interop`")
    blocks = to_pyvista(textured())
    assert blocks[0].active_texture_coordinates.shape == (8, 2)
    assert np.asarray(blocks[0].field_data["texture"]).ravel().tolist() == [255, 0, 0]
    assert from_pyvista(blocks).meshes[0].uv is not None


# Open3D


def test_open3d_gets_meshes_and_comes_back() -> None:
    pytest.importorskip("open3d", reason="Open3D is in the group `open3d`")
    meshes: list[Any] = to_open3d(two_bricks())
    assert [mesh.get_volume() for mesh in meshes] == pytest.approx([6000, 6000])
    scene = from_open3d(meshes)
    assert solid_volume(scene) == pytest.approx(12000)
    expected = two_bricks().meshes[0].colors
    assert expected is not None and scene.meshes[0].colors is not None
    np.testing.assert_array_equal(scene.meshes[0].colors[:, :3], expected[:, :3])


def test_open3d_keeps_textures() -> None:
    pytest.importorskip("open3d", reason="Open3D is in the group `open3d`")
    scene = from_open3d(to_open3d(textured()))
    assert scene.meshes[0].uv is not None and len(scene.images) == 1
    assert solid_volume(scene) == pytest.approx(6000)


def test_a_repaired_scene_is_still_a_scene() -> None:
    mesh = brick()
    open_box = scene_of(Mesh(mesh.vertices, mesh.faces[1:]))
    assert solid_volume(REGISTRY.read(open_box, repair=True)) == pytest.approx(6000)
