"""Reads glTF 2.0, binary and JSON, in its own frame: metres, Y up."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from meshhub.builtin_plugins.gltf.reading.accessors import Accessors
from meshhub.builtin_plugins.gltf.reading.appearance import Materials
from meshhub.builtin_plugins.gltf.reading.buffers import Buffers
from meshhub.builtin_plugins.gltf.reading.container import unpack
from meshhub.builtin_plugins.gltf.reading.document import Item
from meshhub.builtin_plugins.gltf.reading.extensions import check_required
from meshhub.builtin_plugins.gltf.reading.findings import Findings
from meshhub.builtin_plugins.gltf.reading.meshes import Meshes
from meshhub.builtin_plugins.gltf.reading.nodes import Placement, Walk
from meshhub.errors import UnreadableFile
from meshhub.model.capabilities import Frame
from meshhub.model.scene import Part, Scene
from meshhub.model.source import Source


def read(source: Source, options: Struct) -> Scene:  # noqa: ARG001 - every reader takes options
    """The scene of a glTF or GLB file.

    Raises UnreadableFile, ExternalReference, ModelTooComplex.
    """
    findings = Findings()
    document, chunk = unpack(source.read())
    with np.errstate(all="ignore"):
        buffers = Buffers(document, chunk, source, findings)
        check_required(document)
        accessors = Accessors(document, buffers)
        materials = Materials(document, buffers, findings)
        meshes = Meshes(document, buffers, accessors, materials, findings)
        placements, name = _placements(document, accessors, findings)
        parts = []
        for placement in placements:
            found = meshes.index(placement.mesh, placement.named_by)
            if found is not None:
                index, material = found
                parts.append(Part(index, placement.transform, placement.name, placement.path, material))
    findings.close()
    return Scene(
        tuple(meshes.meshes),
        tuple(parts),
        tuple(materials.materials),
        tuple(materials.images),
        Frame("m", "y"),
        name,
    )


def _placements(document: Item, accessors: Accessors, findings: Findings) -> tuple[list[Placement], str]:
    """What is placed where, and the scene's name (glTF 2.0 §3.5.1)."""
    nodes, scenes = document.values("nodes"), document.values("scenes")
    if (
        not nodes
        and document.values("meshes")
        and not any(isinstance(one, dict) and one.get("nodes") for one in scenes)
    ):
        findings.add("nothing_placed", "no node of the file places its meshes; each of them was placed once")
        count = len(document.values("meshes"))
        return [Placement(index, "meshes", np.eye(4), "", ()) for index in range(count)], ""
    if document.values("animations"):
        findings.add("animations_ignored", "the model is animated; its resting state was taken")
    walk = Walk(document, accessors, findings)
    if not scenes:
        walk.run(_roots(document), "nodes")
        return walk.placements, ""
    chosen = document.optional("scene")
    if chosen is None:
        chosen = 0
    if len(scenes) > 1:
        findings.add("scenes_ignored", f"the file has {len(scenes)} scenes; the one that it shows first was taken")
    scene = document.entry("scenes", chosen, "scene")
    walk.run(scene.indices("nodes"), scene.place("nodes"))
    return walk.placements, scene.name()


def _roots(document: Item) -> list[int]:
    """The nodes that are nobody's children. Raises UnreadableFile when there are only cycles."""
    below: set[int] = set()
    nodes = document.entries("nodes")
    for node in nodes:
        below.update(node.indices("children"))
    roots = [index for index in range(len(nodes)) if index not in below]
    if nodes and not roots:
        raise UnreadableFile("nodes have no root: each is below another; the glTF file is damaged, export it again")
    return roots
