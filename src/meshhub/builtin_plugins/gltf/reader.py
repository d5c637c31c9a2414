"""Read glTF 2.0, binary and JSON, into a scene in the glTF frame: meters, Y up."""

from __future__ import annotations

import numpy as np

from meshhub.builtin_plugins.gltf.reading.accessors import Accessors
from meshhub.builtin_plugins.gltf.reading.appearance import MaterialReader
from meshhub.builtin_plugins.gltf.reading.buffers import Buffers
from meshhub.builtin_plugins.gltf.reading.container import unpack
from meshhub.builtin_plugins.gltf.reading.extensions import check_required_extensions
from meshhub.builtin_plugins.gltf.reading.json_object import JsonObject
from meshhub.builtin_plugins.gltf.reading.meshes import MeshReader
from meshhub.builtin_plugins.gltf.reading.nodes import MeshPlacement, NodeWalk
from meshhub.errors import UnreadableFile
from meshhub.model.capabilities import Frame, NoOptions
from meshhub.model.notes import note
from meshhub.model.progress import track
from meshhub.model.scene import Part, Scene
from meshhub.model.source import Source
from meshhub.toolkit.visibility import report_hidden


def read(source: Source, _options: NoOptions) -> Scene:
    """Read a glTF or GLB file.

    Raises:
        UnreadableFile: The file is damaged, or requires an extension that stores geometry in an unsupported way.
        ExternalReference: A buffer is in a file that was not sent.
        ModelTooComplex: The model has too many parts, or reuses its bytes too often.
    """
    document, binary_chunk = unpack(source.read())
    with np.errstate(all="ignore"):
        buffers = Buffers(document, binary_chunk, source)
        check_required_extensions(document)
        accessors = Accessors(document, buffers)
        materials = MaterialReader(document, buffers)
        meshes = MeshReader(document, buffers, accessors, materials)
        placements, name = _place_meshes(document, accessors)
        parts = []
        for placement in track(placements):
            entry = meshes.read(placement.mesh, placement.referrer)
            if entry is not None:
                mesh, material = entry
                parts.append(Part(mesh, placement.transform, placement.name, placement.path, material))
    return Scene(
        tuple(meshes.meshes),
        tuple(parts),
        tuple(materials.materials),
        tuple(materials.images),
        Frame("m", "y"),
        name,
    )


def _place_meshes(document: JsonObject, accessors: Accessors) -> tuple[list[MeshPlacement], str]:
    """Return where the meshes are placed, and the name of the scene (glTF 2.0 §3.5.1)."""
    nodes, scenes = document.values("nodes"), document.values("scenes")
    meshes = [] if nodes else document.values("meshes")
    if meshes and not any(isinstance(scene, dict) and scene.get("nodes") for scene in scenes):
        note("nothing_placed", "the file has meshes but no node that places them; each mesh was placed once")
        return [MeshPlacement(index, "meshes", np.eye(4), "", ()) for index in range(len(meshes))], ""
    if document.values("animations"):
        note("animations_ignored", "the model is animated; its rest pose was read")
    if not scenes:
        return _place_visible(document, accessors, _find_roots(document), "nodes"), ""
    if len(scenes) > 1:
        note("scenes_ignored", f"the file has {len(scenes)} scenes; only the default scene was read", count=len(scenes))
    scene = document.entry("scenes", document.integer_or_none("scene") or 0, "scene")
    return _place_visible(document, accessors, scene.indices("nodes"), scene.path_of("nodes")), scene.name()


def _place_visible(document: JsonObject, accessors: Accessors, roots: list[int], referrer: str) -> list[MeshPlacement]:
    """Place the meshes below the roots, without hidden nodes unless all are hidden."""
    walk = NodeWalk(document, accessors, reads_hidden=False)
    walk.run(roots, referrer)
    hidden_count = walk.hidden_count
    if hidden_count and not walk.placements:
        walk = NodeWalk(document, accessors, reads_hidden=True)
        walk.run(roots, referrer)
        report_hidden(hidden_count, is_read=True)
    else:
        report_hidden(hidden_count)
    return walk.placements


def _find_roots(document: JsonObject) -> list[int]:
    """Return the nodes without a parent. Raise UnreadableFile if the nodes only form cycles."""
    children: set[int] = set()
    nodes = document.entries("nodes")
    for node in nodes:
        children.update(node.indices("children"))
    roots = [index for index in range(len(nodes)) if index not in children]
    if nodes and not roots:
        raise UnreadableFile(
            "'nodes' has no root: every node is a child of another; the glTF file is damaged, export it again"
        )
    return roots
