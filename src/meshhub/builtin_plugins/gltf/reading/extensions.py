"""Check the extensions that a file requires."""

from __future__ import annotations

import re

from meshhub.builtin_plugins.gltf.reading.json_object import JsonObject
from meshhub.errors import UnreadableFile, quote
from meshhub.model.notes import note

_SUPPORTED = frozenset(
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

_ANNOTATIONS = frozenset(
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
"""Extensions with a geometry term in their name that only annotate triangles, which are complete without the extension.
"""

_GEOMETRY_TERM = re.compile(
    r"mesh|geometr|primitive|vert(ex|ices)|accessor|buffer|compress|draco|quanti[sz]|splat|point_?cloud|nurbs|brep"
    r"|curve|spline|subdiv|instanc|voxel|displacement|implicit_shape",
    re.IGNORECASE,
)


def check_required_extensions(document: JsonObject) -> None:
    """Add a note for each unsupported extension that only changes the appearance.

    Raises:
        UnreadableFile: The file requires an unsupported extension that may store geometry.
    """
    for name in dict.fromkeys(document.texts("extensionsRequired")):
        if name in _SUPPORTED:
            continue
        if name not in _ANNOTATIONS and _GEOMETRY_TERM.search(name):
            raise UnreadableFile(
                f"the file requires the glTF extension {quote(name)}, which may store geometry and is not supported; "
                "export it without that extension",
                values={"extension": name},
            )
        note("extension_ignored", f"the file requires the unsupported glTF extension {quote(name)}; it was ignored")
