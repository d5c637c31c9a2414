"""Features of written files as other programs find them: those that the writer declares, and no others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from meshhub import Registry
from meshhub.model.capabilities import FEATURES, Feature
from meshhub.testing.sample_scenes import FEATURE_SCENES

pytestmark = pytest.mark.once

lib3mf = pytest.importorskip("lib3mf")
pygltflib = pytest.importorskip("pygltflib")
trimesh = pytest.importorskip("trimesh")

REGISTRY = Registry(entry_points=False)
WRITERS = {entry.capability.format.id: entry.capability for entry in REGISTRY.declarations.writers}


def judge_gltf(folder: Path, name: str) -> set[Feature]:
    """Return the features that pygltflib finds."""
    model = pygltflib.GLTF2().load(str(folder / name))
    attributes = [primitive.attributes for mesh in model.meshes for primitive in mesh.primitives]
    meshes = [node.mesh for node in model.nodes if node.mesh is not None]
    has: dict[Feature, bool] = {
        "names": any(node.name for node in model.nodes),
        "hierarchy": any(node.children and node.mesh is None for node in model.nodes),
        "instances": len(set(meshes)) < len(meshes),
        "normals": any(each.NORMAL is not None for each in attributes),
        "uv": any(each.TEXCOORD_0 is not None for each in attributes),
        "colors": any(each.COLOR_0 is not None for each in attributes),
        "materials": len(model.materials) > 1,
        "textures": len(model.images) > 0,
    }
    return {feature for feature, present in has.items() if present}


def judge_3mf(folder: Path, name: str) -> set[Feature]:
    """Return the features that lib3mf finds in its strict mode."""
    model = lib3mf.get_wrapper().CreateModel()
    reader = model.QueryReader("3mf")
    reader.SetStrictModeActive(True)
    reader.ReadFromFile(str(folder / name))
    objects, groups = _list(model.GetObjects(), "GetCurrentObject"), _list(model.GetComponentsObjects())
    placed = [component for group in groups for component in _components(group)]
    items = [item.GetObjectResourceID() for item in _list(model.GetBuildItems(), "GetCurrent")]
    textures = model.GetTexture2DGroups()
    has: dict[Feature, bool] = {
        "names": any(each.GetName() for each in objects),
        "hierarchy": bool(groups),
        "instances": len(set(items + placed)) < len(items + placed),
        "uv": textures.Count() > 0,
        "colors": model.GetColorGroups().Count() > 0,
        "materials": model.GetBaseMaterialGroups().Count() > 0,
        "textures": model.GetTexture2Ds().Count() > 0,
        "metadata": any(
            model.GetMetaDataGroup().GetMetaData(index).GetName() == "Designer"
            for index in range(model.GetMetaDataGroup().GetMetaDataCount())
        ),
    }
    return {feature for feature, present in has.items() if present}


def _list(iterator: Any, current: str = "GetCurrentComponentsObject") -> list[Any]:
    result = []
    while iterator.MoveNext():
        result.append(getattr(iterator, current)())
    return result


def _components(group: Any) -> list[int]:
    return [group.GetComponent(index).GetObjectResourceID() for index in range(group.GetComponentCount())]


def judge_meshes(folder: Path, name: str) -> set[Feature]:
    """Return the features that trimesh finds."""
    options = {"split_objects": True, "group_material": False} if name.endswith(".obj") else {}
    loaded = trimesh.load(folder / name, process=False, **options)
    meshes = loaded.geometry if isinstance(loaded, trimesh.Scene) else {"": loaded}
    visuals = [mesh.visual for mesh in meshes.values()]
    # trimesh gives every mesh with texture coordinates a material, and PLY files a white image
    materials = [visual.material for visual in visuals if hasattr(visual, "material") and not name.endswith(".ply")]
    has: dict[Feature, bool] = {
        "names": {part.name for part in FEATURE_SCENES["names"].parts} <= set(meshes),
        "normals": any("vertex_normals" in mesh._cache for mesh in meshes.values()),
        "uv": any(getattr(visual, "uv", None) is not None for visual in visuals),
        "colors": any(visual.kind == "vertex" for visual in visuals),
        "materials": bool(materials),
        "textures": any(material.image is not None for material in materials),
    }
    return {feature for feature, present in has.items() if present}


JUDGES: dict[str, Callable[[Path, str], set[Feature]]] = {
    "gltf": judge_gltf,
    "glb": judge_gltf,
    "3mf": judge_3mf,
    "obj": judge_meshes,
    "ply": judge_meshes,
    "stl": judge_meshes,
}


# every file has a unit that its format defines or states, so no scene is without one
@pytest.mark.parametrize("feature", sorted(FEATURES - {"units"}))
@pytest.mark.parametrize("name", JUDGES)
def test_other_programs_find_the_features_that_a_writer_declares(name: str, feature: Feature, tmp_path: Path) -> None:
    scene = FEATURE_SCENES[feature]
    report = REGISTRY.convert(scene, tmp_path / f"model.{name}")
    is_found = feature in JUDGES[name](tmp_path, f"model.{name}")
    # textures become vertex colors, and materials of a format without them become colors, both with a note
    assert is_found == (feature in WRITERS[name].carries)
    assert is_found or report.notes
