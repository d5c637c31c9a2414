"""What a format declares to keep survives, and what it does not keep is named, for all pairs of formats."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from meshhub import Registry
from meshhub.model.capabilities import FEATURES, Feature
from meshhub.model.report import Loss
from meshhub.model.scene import Material, Part, Scene
from meshhub.model.source import Source, Target
from meshhub.testing.sample_scenes import FEATURE_SCENES, brick, full, textures

pytestmark = [pytest.mark.once, pytest.mark.process]

REGISTRY = Registry(entry_points=False)
FORMATS = ("stl", "obj", "ply", "gltf", "glb", "3mf", "step")
WRITERS = {entry.capability.format.id: entry.capability for entry in REGISTRY.declarations.writers}


def is_named(feature: Feature, to: str, codes: set[str]) -> bool:
    """Return whether a note names the loss of a feature; one note covers textures that became vertex colors."""
    has_colors = feature in ("materials", "textures") and "textures_as_colors" in codes
    return Loss(feature, to).code in codes or has_colors


def convert(source: Scene | Source, to: str) -> tuple[Source, set[str]]:
    """Convert to a format, and return the file and the codes of the notes."""
    target = Target(f"model.{to}")
    report = REGISTRY.convert(source, target, target=to)
    companions = {name: target.read(name) for name in target.names if name != target.name}
    return Source.from_bytes(target.read(), target.name, companions), {note.code for note in report.notes}


def find_unnamed_losses(before: Scene, source: Scene | Source, to: str) -> set[Feature]:
    """Return the features of a scene that are lost in a conversion without a note."""
    file, codes = convert(source, to)
    lost = before.features() - REGISTRY.read(file).features()
    # STEP has colors of faces, which its reader returns as materials
    kept = {"colors"} if to == "step" else set()
    return {feature for feature in lost - kept if not is_named(feature, to, codes)}


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("feature", sorted(FEATURES - {"units"}))
def test_a_feature_survives_as_declared_or_is_named(feature: Feature, to: str) -> None:
    scene = FEATURE_SCENES[feature]
    _, codes = convert(scene, to)
    assert is_named(feature, to, codes) == (feature not in WRITERS[to].carries)
    assert find_unnamed_losses(scene, scene, to) == set()


@functools.cache
def write_full(origin: str) -> tuple[Source, Scene]:
    """Return a file with all features, and the scene that is read from it."""
    source, _ = convert(full(), origin)
    return source, REGISTRY.read(source)


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("origin", FORMATS)
def test_no_pair_of_formats_loses_a_feature_unnamed(origin: str, to: str) -> None:
    source, scene = write_full(origin)
    assert find_unnamed_losses(scene, source, to) == set()


FINISHES: dict[str, Callable[[Material], Any]] = {
    "material_names": lambda material: material.name,
    "metal": lambda material: np.round([material.metallic, material.roughness], 2).tolist(),
    "emission": lambda material: np.round(material.emissive, 2).tolist(),
    "sides": lambda material: material.double_sided,
    "unlit": lambda material: material.unlit,
    "alpha cutoff": lambda material: (material.alpha_mode, round(material.alpha_cutoff, 2)),
    "sampling": lambda material: (material.wrap, material.filter),
    "maps": lambda material: len(material.images()),
}
"""Properties of a material beside its color."""

FINISHED: dict[str, dict[str, Any]] = {
    "material_names": {"name": "oak"},
    "metal": {"metallic": 0.5, "roughness": 0.25},
    "emission": {"emissive": (0.0, 1.0, 0.0)},
    "sides": {"double_sided": True},
    "unlit": {"unlit": True},
    "alpha cutoff": {"alpha_mode": "mask", "alpha_cutoff": 0.25},
    "sampling": {"wrap": ("clamp", "mirror"), "filter": "nearest"},
    "maps": {"normal_image": 1, "occlusion_image": 1, "metallic_roughness_image": 1},
}
"""Fields of a material with each of them."""

FINISH_CODES = {
    "material_properties_dropped",
    "alpha_cutoff_dropped",
    "texture_sampling_dropped",
    "materials_dropped",
    "textures_dropped",
    "textures_as_colors",
}


@pytest.mark.parametrize("is_textured", [False, True])
@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("finish", FINISHED)
def test_each_property_of_a_material_survives_or_is_named(finish: str, to: str, is_textured: bool) -> None:
    if not is_textured and finish in ("sampling", "maps"):
        pytest.skip("a property of images")
    material = Material(base_color=(1.0, 0.0, 0.0, 1.0))
    scene = replace(brick(), parts=(Part(0, material=0),), materials=(material,))
    if is_textured:
        scene = textures()
        material = replace(scene.materials[0], name="")
    material = replace(material, **FINISHED[finish])
    file, codes = convert(replace(scene, materials=(material,), images=scene.images * 2), to)
    result = REGISTRY.read(file)
    used = [result.materials[index] for index in result.used_materials()]
    measure = FINISHES[finish]
    if not used or any(measure(each) != measure(material) for each in used):
        assert codes & FINISH_CODES
