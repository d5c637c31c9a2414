"""Write 3MF: core and materials, in millimeters; equal scenes give equal bytes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from meshhub.builtin_plugins.threemf import ThreeMFWriteOptions
from meshhub.builtin_plugins.threemf.printers import DEFAULT_PRINTER, PRINTERS
from meshhub.builtin_plugins.threemf.reading.filament_settings import MAX_FILAMENT, read_filament_types
from meshhub.builtin_plugins.threemf.reading.package import Package
from meshhub.builtin_plugins.threemf.writing.appearance import Chunk, PropertyWriter
from meshhub.builtin_plugins.threemf.writing.object_tree import GroupObject, MeshObject, ObjectTree, build_object_tree
from meshhub.builtin_plugins.threemf.writing.package_parts import (
    CONTENT_TYPES,
    MODEL_PART,
    MODEL_RELATIONSHIP,
    format_relationships,
)
from meshhub.builtin_plugins.threemf.writing.triangles import format_triangles, format_vertices, weld_vertices
from meshhub.builtin_plugins.threemf.writing.xml_text import escape_xml, format_attribute, format_transform
from meshhub.builtin_plugins.threemf.writing.zip_writer import write_zip
from meshhub.errors import format_number
from meshhub.model.notes import collecting, note, repeat
from meshhub.model.progress import track
from meshhub.model.scene import DESCRIPTIONS, Project, Scene
from meshhub.model.source import Target
from meshhub.toolkit.geometry import compacted
from meshhub.toolkit.rendering.options import RenderOptions

if TYPE_CHECKING:
    from meshhub.builtin_plugins.threemf.writing.filaments import FilamentWriter


@dataclass(frozen=True)
class _ObjectWriters:
    """Writers of the appearance of mesh objects; `filaments` only for a slicer."""

    properties: PropertyWriter
    filaments: FilamentWriter | None


_MODEL_START = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<model unit="millimeter" xml:lang="en-US"'
    ' xmlns="http://schemas.microsoft.com/3dmanufacturing/core/2015/02"'
    ' xmlns:m="http://schemas.microsoft.com/3dmanufacturing/material/2015/02"'
)
_TEXTURE_RELATIONSHIP = "http://schemas.microsoft.com/3dmanufacturing/2013/01/3dtexture"
_THUMBNAIL_RELATIONSHIP = "http://schemas.openxmlformats.org/package/2006/relationships/metadata/thumbnail"
_COVER_RELATIONSHIPS = (
    "http://schemas.bambulab.com/package/2021/cover-thumbnail-middle",
    "http://schemas.bambulab.com/package/2021/cover-thumbnail-small",
)
"""Pictures of a project in the lists of BambuStudio and OrcaSlicer."""
_THUMBNAIL = RenderOptions(size="256x256", edges="none", background="transparent")
"""Picture of the plate; slicers draw theirs in about this size. It takes 0.15 s."""
_MAX_COORDINATE_MM = 1e9
"""Maximum coordinate in millimeters; lib3mf, the reference library, rejects a file with a larger one."""


def write(scene: Scene, target: Target, options: ThreeMFWriteOptions) -> None:
    """Write a scene: an object per mesh, which its instances share, and a group per path.

    A project of the slicer that the profile names is written unchanged, or for another printer.

    Raises:
        ConversionFailed: The file would exceed 4 GB.
        InvalidOption: A sliced project cannot get another printer.
    """
    if scene.project is not None and _keep_project(scene, scene.project, target, options):
        return
    ids = itertools.count(1)
    profile = options.threemf_profile
    properties = PropertyWriter(scene, ids, has_color_groups=profile == "standard")
    filaments = None
    if profile != "standard":
        from meshhub.builtin_plugins.threemf.writing.filaments import DIALECTS, FilamentWriter

        types = [] if scene.project is None else _read_filament_types(scene.project)
        filaments = FilamentWriter(scene, DIALECTS[profile], options.threemf_paint_cell_mm, types)
    printer = PRINTERS[options.threemf_printer or DEFAULT_PRINTER]
    tree = build_object_tree(scene)
    if profile in ("bambu", "orca"):
        from meshhub.builtin_plugins.threemf.writing.bambu_project import place_on_plate

        place_on_plate(tree, scene, printer)
    objects = list(_write_objects(scene, tree, _ObjectWriters(properties, filaments), ids))
    links = [("/" + MODEL_PART, MODEL_RELATIONSHIP)]
    if filaments is not None:
        kinds = [_THUMBNAIL_RELATIONSHIP, *(_COVER_RELATIONSHIPS if profile != "prusa" else ())]
        links += [("/" + filaments.dialect.thumbnail, kind) for kind in kinds]
    entries: list[tuple[str, list[Chunk]]] = [
        ("[Content_Types].xml", [CONTENT_TYPES]),
        ("_rels/.rels", [format_relationships(links)]),
        (
            MODEL_PART,
            [
                _format_start(filaments),
                _format_metadata(scene, filaments),
                b"<resources>\n",
                *properties.chunks,
                *objects,
                b"</resources>\n<build>\n",
                *_format_items(tree),
                b"</build>\n</model>\n",
            ],
        ),
    ]
    if filaments is not None:
        from meshhub.builtin_plugins.threemf.writing import bambu_project, prusa_project

        if profile == "prusa":
            entries += prusa_project.format_entries(tree, filaments)
        else:
            entries += bambu_project.format_entries(tree, filaments, printer)
        entries.append((filaments.dialect.thumbnail, [_draw_thumbnail(scene)]))
    if properties.images:
        links = [("/" + name, _TEXTURE_RELATIONSHIP) for name in properties.images]
        entries.append(("3D/_rels/3dmodel.model.rels", [format_relationships(links)]))
        entries += [(name, [data]) for name, data in properties.images.items()]
    with target.open() as file:
        write_zip(file, entries)


def _keep_project(scene: Scene, project: Project, target: Target, options: ThreeMFWriteOptions) -> bool:
    """Write the file of a project if the profile names its slicer; otherwise, note the losses."""
    if options.threemf_profile in project.kinds:
        data = project.source.read()
        if options.threemf_printer is not None:
            from meshhub.builtin_plugins.threemf.writing.retargeting import retarget

            with Package(project.source) as package:
                data = retarget(scene, package, PRINTERS[options.threemf_printer])
        with target.open() as file:
            file.write(data)
        return True
    repeat(project.notes)
    if project.notes:
        note(
            "project_not_kept",
            "the file is a slicer's project; "
            f"{{threemf_profile={project.kinds[0]}}} without operations keeps all of it",
            options=("threemf_profile",),
        )
    return False


def _read_filament_types(project: Project) -> list[str]:
    with Package(project.source) as package:
        return read_filament_types(package, MAX_FILAMENT)


def _draw_thumbnail(scene: Scene) -> bytes:
    from meshhub.toolkit.png import encode_png
    from meshhub.toolkit.rendering.picture import render

    # the losses of a picture are not losses of the file
    with collecting("thumbnail"):
        return encode_png(render(scene, _THUMBNAIL))


def _format_start(filaments: FilamentWriter | None) -> bytes:
    if filaments is None:
        return f"{_MODEL_START}>\n".encode()
    # a project names the slicer as its application, and this comment by which meshhub knows its own results
    return f"{_MODEL_START}{filaments.dialect.declarations}>\n<!-- written by meshhub -->\n".encode()


def _format_metadata(scene: Scene, filaments: FilamentWriter | None) -> bytes:
    values = {name: escape_xml(scene.metadata.get(name, "")) for name in DESCRIPTIONS}
    if scene.name:
        values["Title"] = escape_xml(scene.name)
    values["Application"] = "meshhub" if filaments is None else filaments.dialect.application
    rows = [f'<metadata name="{name}">{text}</metadata>\n' for name, text in values.items() if text]
    return "".join(rows).encode() + (b"" if filaments is None else filaments.dialect.metadata)


def _write_objects(scene: Scene, tree: ObjectTree, writers: _ObjectWriters, ids: Iterator[int]) -> Iterator[Chunk]:
    """Yield the text of all objects, and number them."""
    for item in track(tree.objects()):
        if isinstance(item, MeshObject):
            yield from _write_mesh_object(scene, item, writers, ids)
        else:
            item.id = next(ids)
            yield _format_group(item)


def _format_group(group: GroupObject) -> bytes:
    rows = [f'<component objectid="{member.id}"{format_transform(matrix)}/>\n' for member, matrix in group.members]
    start = f'<object id="{group.id}" type="model"{format_attribute("name", group.name)}>\n<components>\n'
    return "".join([start, *rows, "</components>\n</object>\n"]).encode()


def _write_mesh_object(scene: Scene, item: MeshObject, writers: _ObjectWriters, ids: Iterator[int]) -> Iterator[Chunk]:
    """Yield the property groups of a mesh object, then the object, and number it."""
    mesh = item.transformed_mesh(scene)
    trees = None
    if writers.filaments is not None:
        mesh, trees = writers.filaments.paint(item, mesh)
    mesh = compacted(mesh)
    vertices, faces = weld_vertices(mesh)
    if float(np.abs(vertices).max(initial=0)) > _MAX_COORDINATE_MM:
        note(
            "beyond_readers",
            f"coordinates exceed {format_number(_MAX_COORDINATE_MM)} mm, the limit of 3MF readers; "
            "set {input_unit}, or scale the model with {target_height_mm}",
            options=("input_unit", "target_height_mm"),
            limit=_MAX_COORDINATE_MM,
        )
    assigned = writers.properties.assign(mesh, mesh.faces, item.material)
    yield from assigned.chunks
    item.id = next(ids)
    attributes = format_attribute("name", item.name)
    if assigned.group is not None and assigned.index is not None:
        # slicers give the object this color
        first = int((assigned.group == np.bincount(assigned.group).argmax()).argmax())
        attributes += f' pid="{assigned.group[first]}" pindex="{assigned.index[first, 0]}"'
    yield f'<object id="{item.id}" type="model"{attributes}>\n'.encode()
    yield b"<mesh>\n<vertices>\n"
    yield format_vertices(vertices)
    yield b"</vertices>\n<triangles>\n"
    group, index = assigned.group, assigned.index
    if group is not None and index is not None and (group == group[0]).all() and (index == index[0, 0]).all():
        # all triangles have the property of the object
        group = index = None
    paint = None if writers.filaments is None or trees is None else (writers.filaments.dialect.paint, trees)
    yield from format_triangles(faces, group, index, paint)
    yield b"</triangles>\n</mesh>\n</object>\n"


def _format_items(tree: ObjectTree) -> Iterator[bytes]:
    for item, matrix, _ in tree.items:
        yield f'<item objectid="{item.id}"{format_transform(matrix)}/>\n'.encode()
