"""Writing 3MF: core and materials, in millimetres, the same bytes for the same scene."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from meshhub.builtin_plugins.threemf.writing.appearance import Palette, Piece
from meshhub.builtin_plugins.threemf.writing.objects import Plan, Shape, planned
from meshhub.builtin_plugins.threemf.writing.text import attribute, escaped, matrix
from meshhub.builtin_plugins.threemf.writing.zip_writer import write_zip
from meshhub.errors import format_number
from meshhub.model.capabilities import NoOptions
from meshhub.model.notes import note
from meshhub.model.scene import Float64, Int32, Mesh, Scene
from meshhub.model.source import Target
from meshhub.toolkit.columns import shortest, write_rows
from meshhub.toolkit.geometry import compacted, weld

_MODEL = "3D/3dmodel.model"
_OPENING = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<model unit="millimeter" xml:lang="en-US"'
    ' xmlns="http://schemas.microsoft.com/3dmanufacturing/core/2015/02"'
    ' xmlns:m="http://schemas.microsoft.com/3dmanufacturing/material/2015/02">\n'
)
_CONTENT_TYPES = b"""<?xml version="1.0" encoding="UTF-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
<Default Extension="model" ContentType="application/vnd.ms-package.3dmanufacturing-3dmodel+xml"/>
<Default Extension="png" ContentType="image/png"/>
<Default Extension="jpg" ContentType="image/jpeg"/>
</Types>
"""
_START = "http://schemas.microsoft.com/3dmanufacturing/2013/01/3dmodel"
_TEXTURE = "http://schemas.microsoft.com/3dmanufacturing/2013/01/3dtexture"
_FARTHEST = 1e9
"""Millimetres; the reference library refuses whole files for one coordinate beyond."""

_METADATA = ("Title", "Designer", "Description", "Copyright", "LicenseTerms", "Rating")
"""What core §3.4.1 knows and what is the model's own; dates and programs are not."""


def write(scene: Scene, target: Target, _options: NoOptions) -> None:
    """Write a scene: an object for each mesh, shared by its instances, and a group for each path.

    Raises ConversionFailed beyond 4 GB.
    """
    ids = itertools.count(1)
    palette = Palette(scene, ids)
    plan = planned(scene)
    objects = list(_objects(scene, plan, palette, ids))
    entries: list[tuple[str, list[Piece]]] = [
        ("[Content_Types].xml", [_CONTENT_TYPES]),
        ("_rels/.rels", [_relationships([("/" + _MODEL, _START)])]),
        (
            _MODEL,
            [
                _OPENING.encode(),
                _metadata(scene),
                b"<resources>\n",
                *palette.pieces,
                *objects,
                b"</resources>\n<build>\n",
                *_items(plan),
                b"</build>\n</model>\n",
            ],
        ),
    ]
    if palette.pictures:
        links = _relationships([("/" + name, _TEXTURE) for name in palette.pictures])
        entries.append(("3D/_rels/3dmodel.model.rels", [links]))
        entries += [(name, [data]) for name, data in palette.pictures.items()]
    with target.open() as file:
        write_zip(file, entries)


def _relationships(links: list[tuple[str, str]]) -> bytes:
    rows = [f'<Relationship Target="{to}" Id="rel{k + 1}" Type="{kind}"/>\n' for k, (to, kind) in enumerate(links)]
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">\n'
        + "".join(rows)
        + "</Relationships>\n"
    ).encode()


def _metadata(scene: Scene) -> bytes:
    told = {name: scene.metadata.get(name, "") for name in _METADATA}
    told["Title"] = scene.name or told["Title"]
    return "".join(
        f'<metadata name="{name}">{escaped(text)}</metadata>\n' for name, text in told.items() if escaped(text)
    ).encode()


def _objects(scene: Scene, plan: Plan, palette: Palette, ids: Iterator[int]) -> Iterator[Piece]:
    for one in plan.objects():
        if isinstance(one, Shape):
            yield from _shape(scene, one, palette, ids)
        else:
            one.id = next(ids)
            rows = [f'<component objectid="{inner.id}"{matrix(at)}/>\n' for inner, at in one.members]
            yield f'<object id="{one.id}" type="model"{attribute("name", one.name)}>\n<components>\n'.encode()
            yield "".join([*rows, "</components>\n</object>\n"]).encode()


def _shape(scene: Scene, shape: Shape, palette: Palette, ids: Iterator[int]) -> Iterator[Piece]:
    mesh = compacted(shape.mesh(scene))
    vertices, faces = _merged(mesh)
    if float(np.abs(vertices).max(initial=0)) > _FARTHEST:
        note(
            "beyond_readers",
            f"readers of 3MF take coordinates up to {format_number(_FARTHEST)} mm, and the model has some beyond; "
            "say its unit with input_unit, or scale it with target_height_mm",
        )
    painted = palette.paint(mesh, mesh.faces, shape.material)
    yield from painted.pieces
    shape.id = next(ids)
    properties = ""
    if painted.group is not None and painted.index is not None:
        properties = f' pid="{painted.group[0]}" pindex="{painted.index[0, 0]}"'
    yield f'<object id="{shape.id}" type="model"{attribute("name", shape.name)}{properties}>\n'.encode()
    yield b"<mesh>\n<vertices>\n"
    yield write_rows(['<vertex x="', '" y="', '" z="', '"/>\n'], list(shortest(vertices).T))
    yield b"</vertices>\n<triangles>\n"
    yield from _triangles(faces, painted.group, painted.index)
    yield b"</triangles>\n</mesh>\n</object>\n"


def _items(plan: Plan) -> Iterator[bytes]:
    for one, at in plan.items:
        yield f'<item objectid="{one.id}"{matrix(at)}/>\n'.encode()


def _merged(mesh: Mesh) -> tuple[Float64, Int32]:
    """Vertices and faces with each position once, for a shape's edges are told by indices here.

    Core §4.1.4 wants three different indices: a face that has two equal positions keeps vertices of its own.
    """
    first, index = weld(mesh.vertices)
    faces = index[mesh.faces]
    vertices = mesh.vertices[first]
    a, b, c = faces.T
    flat = np.flatnonzero((a == b) | (b == c) | (c == a))
    if len(flat):
        faces = faces.copy()
        own = np.arange(2 * len(flat), dtype=np.int32).reshape(-1, 2) + np.int32(len(vertices))
        vertices = np.concatenate([vertices, mesh.vertices[mesh.faces[flat, 1:]].reshape(-1, 3)])
        faces[flat, 1:] = own
    return vertices, faces


def _triangles(faces: Int32, group: Int32 | None, index: Int32 | None) -> Iterator[Piece]:
    corners = ['<triangle v1="', '" v2="', '" v3="']
    columns = list(faces.T)
    if group is None or index is None or bool((group == group[0]).all() and (index == index[0, 0]).all()):
        yield write_rows([*corners, '"/>\n'], columns)
        return
    if bool((index[:, 1:] == index[:, :1]).all()):
        yield write_rows([*corners, '" pid="', '" p1="', '"/>\n'], [*columns, group, index[:, 0]])
        return
    literals = [*corners, '" pid="', '" p1="', '" p2="', '" p3="', '"/>\n']
    yield write_rows(literals, [*columns, group, *index.T])
