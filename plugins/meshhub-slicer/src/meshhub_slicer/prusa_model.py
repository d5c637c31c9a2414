"""Model for PrusaSlicer: one object with a volume for each part, so that parts stay where they are.

Separate objects would each be lowered to the bed, and groups of 3MF become separate objects.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshhub import Scene
from meshhub.builtin_plugins.threemf import ThreeMFWriteOptions
from meshhub.builtin_plugins.threemf.writing.filaments import DIALECTS, FilamentWriter
from meshhub.builtin_plugins.threemf.writing.object_tree import build_object_tree
from meshhub.builtin_plugins.threemf.writing.zip_writer import write_zip
from meshhub.toolkit.columns import TextColumn, shortest, write_rows
from meshhub.toolkit.geometry import baked, compacted, weld

Chunk = bytes | memoryview

_START = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n'
    b'<model unit="millimeter" xmlns="http://schemas.microsoft.com/3dmanufacturing/core/2015/02"'
    b' xmlns:slic3rpe="http://schemas.slic3r.org/3mf/2017/06">\n'
    b'<metadata name="slic3rpe:Version3mf">1</metadata>\n<metadata name="slic3rpe:MmPaintingVersion">1</metadata>\n'
    b'<resources>\n<object id="1" type="model">\n<mesh>\n'
)
_END = b'</mesh>\n</object>\n</resources>\n<build>\n<item objectid="1"/>\n</build>\n</model>\n'
_TYPES = b"""<?xml version="1.0" encoding="UTF-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
<Default Extension="model" ContentType="application/vnd.ms-package.3dmanufacturing-3dmodel+xml"/>
</Types>
"""
_LINKS = b"""<?xml version="1.0" encoding="UTF-8"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
<Relationship Target="/3D/3dmodel.model" Id="rel1" Type="http://schemas.microsoft.com/3dmanufacturing/2013/01/3dmodel"/>
</Relationships>
"""


@dataclass(frozen=True)
class _Volume:
    """Vertices and faces of a part, its filament, and the rows and the codes of its painted triangles."""

    vertices: NDArray[np.float64]
    faces: NDArray[Any]
    filament: int
    is_painted: NDArray[np.bool_]
    codes: TextColumn


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
    volumes = []
    for item in build_object_tree(scene).meshes:
        mesh, trees = filaments.paint(item, item.transformed_mesh(scene))
        painted = trees.is_painted()
        codes = replace(trees, roots=trees.roots[painted]).format_codes()
        mesh = compacted(mesh)
        first, index = weld(mesh.vertices)
        volumes.append(
            _Volume(mesh.vertices[first], index[mesh.faces], filaments.objects[item].filament, painted, codes)
        )
    vertices = [write_rows(['<vertex x="', '" y="', '" z="', '"/>\n'], list(shortest(v.vertices).T)) for v in volumes]
    triangles: list[Chunk] = []
    rows: list[str] = []
    vertex_count = face_count = 0
    for volume in volumes:
        triangles += _format_triangles(volume, vertex_count, is_painted=is_painted)
        extruder = f'<metadata type="volume" key="extruder" value="{volume.filament}"/>' if is_painted else ""
        end = face_count + len(volume.faces)
        rows.append(
            f'<volume firstid="{face_count}" lastid="{end - 1}">'
            f'<metadata type="volume" key="volume_type" value="ModelPart"/>{extruder}</volume>\n'
        )
        vertex_count, face_count = vertex_count + len(volume.vertices), end
    model = [_START, b"<vertices>\n", *vertices, b"</vertices>\n<triangles>\n", *triangles, b"</triangles>\n", _END]
    config = f'<?xml version="1.0" encoding="UTF-8"?>\n<config>\n<object id="1">\n{"".join(rows)}</object>\n</config>\n'
    with file.open("wb") as stream:
        write_zip(
            stream,
            [
                ("[Content_Types].xml", [_TYPES]),
                ("_rels/.rels", [_LINKS]),
                ("3D/3dmodel.model", model),
                ("Metadata/Slic3r_PE_model.config", [config.encode()]),
            ],
        )
    return filaments.colors()


def _format_triangles(volume: _Volume, first: int, *, is_painted: bool) -> list[Chunk]:
    """Return the triangles of a volume, with those that are painted at the end."""
    faces = volume.faces.astype(np.int64) + first
    literals = ['<triangle v1="', '" v2="', '" v3="']
    if not is_painted or not volume.is_painted.any():
        return [write_rows([*literals, '"/>\n'], list(faces.T))]
    plain, painted = faces[~volume.is_painted], faces[volume.is_painted]
    attribute = f'" {DIALECTS["prusa"].paint}="'
    return [
        write_rows([*literals, '"/>\n'], list(plain.T)),
        write_rows([*literals, attribute, '"/>\n'], [*painted.T, volume.codes]),
    ]
