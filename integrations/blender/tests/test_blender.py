"""The extension in Blender as a Python module: `tox -e blender-extension`."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from meshhub import Registry

bpy = pytest.importorskip("bpy", reason="Blender is installed in `tox -e blender-extension`")

FOLDER = Path(__file__).parents[1] / "meshhub_blender"
EXAMPLES = Path(__file__).parents[3] / "examples"
MODULE = FOLDER.name


@pytest.fixture(scope="module")
def extension(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Enable the extension as an add-on, with the meshhub of this environment."""
    # Blender finds add-ons in the path of Python
    parent = tmp_path_factory.mktemp("addons")
    shutil.copytree(FOLDER, parent / MODULE)
    sys.path.insert(0, str(parent))
    bpy.ops.preferences.addon_enable(module=MODULE)
    preferences = bpy.context.preferences.addons[MODULE].preferences
    preferences.command = f"'{sys.executable}' -m meshhub"
    yield preferences
    bpy.ops.preferences.addon_disable(module=MODULE)
    assert not hasattr(bpy.types, "IMPORT_SCENE_OT_meshhub")


@pytest.fixture(autouse=True)
def scene(extension: Any) -> Any:
    """Begin with an empty scene."""
    for item in list(bpy.data.objects):
        bpy.data.objects.remove(item)
    for group in (bpy.data.meshes, bpy.data.materials):
        for item in list(group):
            group.remove(item)
    return extension


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry(entry_points=False)


def list_meshes() -> list[Any]:
    return [item for item in bpy.data.objects if item.type == "MESH"]


def open_cube(name: str = "cube") -> Any:
    """Return an object without its top, turned, moved and with two materials."""
    corners = [(x, y, z) for z in (0, 0.02) for y in (0, 0.02) for x in (0, 0.02)]
    quads = [(0, 2, 3, 1), (0, 1, 5, 4), (1, 3, 7, 5), (3, 2, 6, 7), (2, 0, 4, 6)]
    mesh = bpy.data.meshes.new(name)
    mesh.from_pydata(corners, [], quads)
    for color, rgba in (("red", (1, 0, 0, 1)), ("blue", (0, 0, 1, 1))):
        material = bpy.data.materials.new(color)
        material.use_nodes = True
        material.node_tree.nodes["Principled BSDF"].inputs["Base Color"].default_value = rgba
        mesh.materials.append(material)
    mesh.polygons[0].material_index = 1
    item = bpy.data.objects.new(name, mesh)
    item.location, item.rotation_euler, item.scale = (0.1, 0.2, 0.3), (0.1, 0.2, 0.3), (1, 2, 1)
    bpy.context.collection.objects.link(item)
    bpy.context.view_layer.update()
    return item


def test_a_model_is_imported_in_meters() -> None:
    assert bpy.ops.import_scene.meshhub(filepath=str(EXAMPLES / "bracket.stl"), repair=True) == {"FINISHED"}
    (item,) = list_meshes()
    assert tuple(item.dimensions) == pytest.approx((0.06, 0.04, 0.05), rel=1e-4)


def test_a_scene_is_exported_with_names_and_colors(tmp_path: Path, registry: Registry) -> None:
    item = open_cube()
    path = tmp_path / "a b.3mf"
    assert bpy.ops.export_scene.meshhub(filepath=str(path), repair=True) == {"FINISHED"}
    inspection = registry.inspect(path)
    assert inspection.model.watertight
    assert inspection.model.size_mm == pytest.approx([1000 * side for side in size_of(item)], rel=1e-3)
    colors = {material.name for material in registry.read(path).materials}
    assert {"red", "blue"} <= colors


def size_of(item: Any) -> list[float]:
    """Return the extents of an object in the world."""
    corners = [item.matrix_world @ vertex.co for vertex in item.data.vertices]
    return [max(corner[axis] for corner in corners) - min(corner[axis] for corner in corners) for axis in range(3)]


def test_only_what_is_selected_is_exported_with_fewer_colors(tmp_path: Path, registry: Registry) -> None:
    item, other = open_cube(), open_cube("other")
    item.select_set(True)
    other.select_set(False)
    path = tmp_path / "one.3mf"
    assert bpy.ops.export_scene.meshhub(filepath=str(path), selected=True, colors=1) == {"FINISHED"}
    assert registry.inspect(path).model.parts == 1
    assert len({material.base_color for material in registry.read(path).materials}) == 1


def test_objects_are_repaired_in_place_and_keep_their_materials(tmp_path: Path, registry: Registry) -> None:
    item, other = open_cube(), open_cube("other")
    other.location.x += 1
    for each in (item, other):
        each.select_set(True)
    before, matrix = size_of(item), item.matrix_world.copy()
    names = {material.name for material in bpy.data.materials}
    assert bpy.ops.object.meshhub_repair() == {"FINISHED"}
    assert (item.matrix_world, size_of(item)) == (matrix, pytest.approx(before, rel=1e-3))
    assert {material.name for material in bpy.data.materials} == names
    assert {material.name for material in item.data.materials} == {"red", "blue"}
    assert sorted(each.name for each in list_meshes()) == ["cube", "other"]
    assert sorted(each.name for each in bpy.data.meshes) == ["cube", "other"]
    assert {each.name for each in bpy.context.selected_objects} == {"cube", "other"}
    bpy.ops.wm.stl_export(filepath=str(tmp_path / "a.stl"), export_selected_objects=True, global_scale=1000)
    assert registry.inspect(tmp_path / "a.stl").model.watertight


def test_errors_are_shown_and_change_nothing(tmp_path: Path, scene: Any) -> None:
    (tmp_path / "text.stl").write_text("no model")
    with pytest.raises(RuntimeError, match="neither STL text nor binary STL"):
        bpy.ops.import_scene.meshhub(filepath=str(tmp_path / "text.stl"))
    open_cube()
    with pytest.raises(RuntimeError, match="nothing"):
        bpy.ops.export_scene.meshhub(filepath=str(tmp_path / "a.nothing"))
    with pytest.raises(RuntimeError, match="No such option"):
        bpy.ops.export_scene.meshhub(filepath=str(tmp_path / "a.3mf"), options="--no-option")
    command, scene.command = scene.command, "no-such-program"
    try:
        with pytest.raises(RuntimeError, match="set its path in the preferences"):
            bpy.ops.import_scene.meshhub(filepath=str(EXAMPLES / "bracket.stl"))
    finally:
        scene.command = command
    assert len(list_meshes()) == 1
