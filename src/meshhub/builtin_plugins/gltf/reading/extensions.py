"""What to do about the extensions that a file requires."""

from __future__ import annotations

import re

from meshhub.builtin_plugins.gltf.reading.document import Item
from meshhub.errors import UnreadableFile
from meshhub.model.notes import note

_UNDERSTOOD = frozenset(
    (
        "KHR_draco_mesh_compression",
        "KHR_meshopt_compression",
        "EXT_meshopt_compression",
        "KHR_mesh_quantization",
        "KHR_texture_transform",
        "KHR_materials_unlit",
        "KHR_materials_pbrSpecularGlossiness",
        "KHR_materials_emissive_strength",
        "KHR_node_visibility",
        "EXT_mesh_gpu_instancing",
        "EXT_texture_webp",
    )
)

_BESIDE_GEOMETRY = frozenset(
    (
        "CESIUM_primitive_outline",
        "EXT_instance_features",
        "EXT_mesh_features",
        "EXT_mesh_manifold",
        "EXT_mesh_primitive_edge_visibility",
        "EXT_structural_metadata",
        "FB_ngon_encoding",
    )
)
"""They have words of geometry in their names, and only say more about triangles that are complete without them."""

_GEOMETRY = re.compile(
    r"mesh|geometr|primitive|vert(ex|ices)|accessor|buffer|compress|draco|quanti[sz]|splat|point_?cloud|nurbs|brep"
    r"|curve|spline|subdiv|instanc|voxel|displacement|implicit_shape",
    re.IGNORECASE,
)


def check_required(document: Item) -> None:
    """Pass over what only changes the looks, with a note; refuse what the geometry may hang on.

    Raises UnreadableFile.
    """
    for name in dict.fromkeys(document.texts("extensionsRequired")):
        if name in _UNDERSTOOD:
            continue
        if name not in _BESIDE_GEOMETRY and _GEOMETRY.search(name):
            raise UnreadableFile(
                f"the file requires the glTF extension {name[:80]}, by which its geometry may be stored and which "
                "cannot be read; export it without that extension"
            )
        note("extension_ignored", f"the file requires the glTF extension {name[:80]}; it was read without it")
