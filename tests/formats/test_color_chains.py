"""Colors through chains of formats, and colors of written files as trimesh reads them."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshhub import Registry
from meshhub.model.scene import Scene
from meshhub.model.source import Source, Target
from meshhub.testing.sample_scenes import FEATURE_SCENES
from meshhub.toolkit.colors import decode_srgb
from meshhub.toolkit.images import decode_image
from meshhub.toolkit.surface_colors import Surface, SurfaceColors

pytestmark = pytest.mark.once

trimesh = pytest.importorskip("trimesh")

REGISTRY = Registry(entry_points=False)


def list_colors(scene: Scene) -> set[tuple[int, ...]]:
    """Return the colors of the middles of all faces."""
    surfaces = [Surface(part.mesh, part.material) for part in scene.parts]
    count = sum(len(scene.meshes[surface.mesh].faces) for surface in surfaces)
    samples = SurfaceColors(scene, surfaces).sample(np.arange(count), np.full((count, 3), 1 / 3, np.float32))
    return {tuple(color) for color in samples.tolist()}


PAIRS = st.lists(st.sampled_from(["glb", "gltf", "obj", "ply", "3mf"]), min_size=1, max_size=4)


@settings(max_examples=40)
@given(st.sampled_from(["colors", "materials", "textures"]), PAIRS)
def test_colors_survive_any_chain_of_formats_or_are_named(feature: Any, formats: list[str]) -> None:
    scene = FEATURE_SCENES[feature]
    before, source = list_colors(scene), scene
    codes: set[str] = set()
    for name in formats:
        target = Target(f"model.{name}")
        report = REGISTRY.convert(source, target, target=name)
        codes |= {note.code for note in report.notes}
        companions = {each: target.read(each) for each in target.names if each != target.name}
        source = Source.from_bytes(target.read(), target.name, companions)
    after = list_colors(REGISTRY.read(source))
    near = all(min(np.abs(np.subtract(color, other)).max() for other in after) <= 3 for color in before)
    assert near or codes & {"textures_as_colors", "colors_dropped", "materials_dropped", "textures_dropped"}


def load_outside(feature: Any, name: str, **options: Any) -> Any:
    """Return the meshes that trimesh reads from a file with a feature, by name."""
    data = REGISTRY.convert_bytes(FEATURE_SCENES[feature], name)
    return trimesh.load(io.BytesIO(data), file_type=name, process=False, **options)


@pytest.mark.parametrize("name", ["ply", "obj"])
def test_trimesh_reads_the_vertex_colors(name: str) -> None:
    mesh = load_outside("colors", name, force="mesh")
    colors = FEATURE_SCENES["colors"].meshes[0].colors
    assert colors is not None
    assert {tuple(color) for color in mesh.visual.vertex_colors[:, :3].tolist()} == {
        tuple(color) for color in colors[:, :3].tolist()
    }


@pytest.mark.parametrize("name", ["glb", "gltf"])
def test_trimesh_reads_the_factors_of_materials(name: str) -> None:
    found = {
        part.visual.material.name: part.visual.material.baseColorFactor[:3]
        for part in load_outside("materials", name).geometry.values()
    }
    for material in FEATURE_SCENES["materials"].materials:
        # glTF factors are linear, and trimesh returns them as bytes
        expected = np.rint(decode_srgb(np.array(material.base_color[:3])) * 255)
        assert np.abs(found[material.name].astype(float) - expected).max() <= 1


@pytest.mark.parametrize("name", ["glb", "gltf"])
def test_trimesh_reads_the_texture_and_its_coordinates(name: str) -> None:
    scene = FEATURE_SCENES["textures"]
    visual = load_outside("textures", name, force="mesh").visual
    own = decode_image(scene.images[0].data)
    assert own is not None
    assert np.array_equal(np.asarray(visual.material.baseColorTexture.convert("RGBA")), own)
    assert scene.meshes[0].uv is not None
    assert visual.uv == pytest.approx(scene.meshes[0].uv)
