"""Model for PrusaSlicer: one object with a volume for each part, so that parts stay where they are.

Separate objects would each be lowered to the bed, and groups of 3MF become separate objects.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from meshhub import Scene
from meshhub.builtin_plugins.threemf import ThreeMFWriteOptions
from meshhub.builtin_plugins.threemf.writing.appearance import Chunk
from meshhub.builtin_plugins.threemf.writing.filaments import DIALECTS, FilamentWriter
from meshhub.builtin_plugins.threemf.writing.object_tree import build_object_tree
from meshhub.builtin_plugins.threemf.writing.package_parts import (
    CONTENT_TYPES,
    MODEL_PART,
    MODEL_RELATIONSHIP,
    format_relationships,
)
from meshhub.builtin_plugins.threemf.writing.triangles import format_triangles, format_vertices, weld_vertices
from meshhub.builtin_plugins.threemf.writing.zip_writer import write_zip
from meshhub.toolkit.geometry import baked, compacted

_START = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n'
    b'<model unit="millimeter" xmlns="http://schemas.microsoft.com/3dmanufacturing/core/2015/02"'
    b' xmlns:slic3rpe="http://schemas.slic3r.org/3mf/2017/06">\n'
    b'<metadata name="slic3rpe:Version3mf">1</metadata>\n<metadata name="slic3rpe:MmPaintingVersion">1</metadata>\n'
    b'<resources>\n<object id="1" type="model">\n<mesh>\n'
)
_END = b'</mesh>\n</object>\n</resources>\n<build>\n<item objectid="1"/>\n</build>\n</model>\n'


def write_prusa_model(scene: Scene, file: Path, *, is_painted: bool) -> list[str]:
    """Write the model, and return the colors of its filaments.

    Args:
        scene: Millimeters, Z up.
        file: File to write.
        is_painted: Whether the filaments of the parts and the paint of their triangles are written.
    """
    # `replace` drops the project: only shape and colors of an upload get into the file
    scene = baked(replace(scene))
    filaments = FilamentWriter(scene, DIALECTS["prusa"], ThreeMFWriteOptions().threemf_paint_cell_mm)
    vertices: list[Chunk] = []
    triangles: list[Chunk] = []
    rows: list[str] = []
    vertex_count = face_count = 0
    for item in build_object_tree(scene).meshes:
        mesh, trees = filaments.paint(item, item.transformed_mesh(scene))
        own, faces = weld_vertices(compacted(mesh))
        vertices.append(format_vertices(own))
        paint = (filaments.dialect.paint, trees) if is_painted else None
        triangles += format_triangles(faces + np.int32(vertex_count), paint=paint)
        filament = filaments.objects[item].filament
        extruder = f'<metadata type="volume" key="extruder" value="{filament}"/>' if is_painted else ""
        end = face_count + len(faces)
        rows.append(
            f'<volume firstid="{face_count}" lastid="{end - 1}">'
            f'<metadata type="volume" key="volume_type" value="ModelPart"/>{extruder}</volume>\n'
        )
        vertex_count, face_count = vertex_count + len(own), end
    model = [_START, b"<vertices>\n", *vertices, b"</vertices>\n<triangles>\n", *triangles, b"</triangles>\n", _END]
    config = f'<?xml version="1.0" encoding="UTF-8"?>\n<config>\n<object id="1">\n{"".join(rows)}</object>\n</config>\n'
    with file.open("wb") as stream:
        write_zip(
            stream,
            [
                ("[Content_Types].xml", [CONTENT_TYPES]),
                ("_rels/.rels", [format_relationships([(f"/{MODEL_PART}", MODEL_RELATIONSHIP)])]),
                (MODEL_PART, model),
                ("Metadata/Slic3r_PE_model.config", [config.encode()]),
            ],
        )
    return filaments.colors()
