"""Projects as slicers save them: one object of several volumes, with settings and paint."""

from __future__ import annotations

import re
from collections.abc import Mapping

from meshhub.model.scene import Mesh
from meshhub.model.source import Source
from threemf_models import CORE, PRODUCTION, mesh_xml, package

DIALECTS = ("prusa", "bambu", "orca")
APPLICATIONS = {"prusa": "PrusaSlicer-2.9.0", "bambu": "BambuStudio-02.00.01.50", "orca": "OrcaSlicer-2.3.1"}


def project(
    dialect: str,
    meshes: Mapping[str, str],
    *,
    kinds: Mapping[str, str] | None = None,
    filaments: Mapping[str, int] | None = None,
    object_filament: int = 1,
    files: Mapping[str, str] | None = None,
    plates: int = 1,
) -> Source:
    """Build a project with one object of several named volumes, as each slicer saves it.

    meshes: `<mesh>` of each volume; for PrusaSlicer, one alone
    """
    if dialect == "prusa":
        return _prusa(meshes, kinds or {}, filaments or {}, object_filament, files or {})
    parts, components, sub_models = "", "", {}
    for number, (name, mesh) in enumerate(meshes.items(), 1):
        path = f"3D/Objects/object_{number}.model"
        sub_models[path] = (
            f'<model unit="millimeter" xmlns="{CORE}" requiredextensions=""><resources>'
            f'<object id="{number}" type="model">{mesh}</object></resources><build/></model>'
        )
        components += f'<component p:path="/{path}" objectid="{number}" transform="1 0 0 0 1 0 0 0 1 0 0 0"/>'
        parts += (
            f'<part id="{number}" subtype="{(kinds or {}).get(name, "normal_part")}">'
            f'<metadata key="name" value="{name}"/>{_extruder((filaments or {}).get(name))}</part>'
        )
    root = (
        f'<model unit="millimeter" xmlns="{CORE}" xmlns:p="{PRODUCTION}" requiredextensions="p">'
        f'<metadata name="Application">{APPLICATIONS[dialect]}</metadata>'
        f'<resources><object id="100" type="model"><components>{components}</components></object></resources>'
        '<build><item objectid="100"/></build></model>'
    )
    instance = '<model_instance><metadata key="object_id" value="100"/></model_instance>'
    settings = (
        f'<config><object id="100">{_extruder(object_filament)}{parts}</object>'
        + f'<plate><metadata key="plater_id" value="1"/>{instance * 2}</plate>' * plates
        + '<plate><metadata key="plater_id" value="9"/></plate></config>'
    )
    return package(root, {**sub_models, "Metadata/model_settings.config": settings, **(files or {})})


def _extruder(number: int | None) -> str:
    return "" if number is None else f'<metadata key="extruder" value="{number}"/>'


def _prusa(
    meshes: Mapping[str, str],
    kinds: Mapping[str, str],
    filaments: Mapping[str, int],
    object_filament: int,
    files: Mapping[str, str],
) -> Source:
    """Build one mesh of all volumes, which are ranges of its triangles."""
    vertices, triangles, volumes = "", "", ""
    first_vertex = first = 0
    for name, mesh in meshes.items():
        own_vertices = re.findall(r"<vertex [^>]*/>\n?", mesh)
        own = re.findall(r"<triangle [^>]*/>\n?", mesh)
        vertices += "".join(own_vertices)
        triangles += "".join(
            re.sub(r'(v[123])="(\d+)"', lambda m: f'{m[1]}="{int(m[2]) + first_vertex}"', row)  # noqa: B023
            for row in own
        )
        volumes += (
            f'<volume firstid="{first}" lastid="{first + len(own) - 1}">'
            f'<metadata type="volume" key="volume_type" value="{kinds.get(name, "ModelPart")}"/>'
            f"{_extruder(filaments.get(name))}</volume>"
        )
        first_vertex += len(own_vertices)
        first += len(own)
    root = (
        f'<model unit="millimeter" xmlns="{CORE}" xmlns:slic3rpe="http://schemas.slic3r.org/3mf/2017/06">'
        f'<metadata name="Application">{APPLICATIONS["prusa"]}</metadata><resources><object id="1" type="model">'
        f"<mesh><vertices>\n{vertices}</vertices><triangles>\n{triangles}</triangles></mesh></object></resources>"
        '<build><item objectid="1"/></build></model>'
    )
    settings = f'<config><object id="1" instances_count="1">{_extruder(object_filament)}{volumes}</object></config>'
    return package(root, {"Metadata/Slic3r_PE_model.config": settings, **files})


def paint_triangles(mesh: Mesh, attributes: Mapping[int, str]) -> str:
    """Return the XML of a mesh with attributes on some of its triangles."""
    rows = mesh_xml(mesh).split("<triangle ")
    return "<triangle ".join(
        [rows[0], *(row.replace("/>", f"{attributes.get(k, '')}/>", 1) for k, row in enumerate(rows[1:]))]
    )
