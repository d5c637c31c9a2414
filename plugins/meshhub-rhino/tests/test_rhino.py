"""What rhino3dm reads of files written here, and files that rhino3dm makes."""

from __future__ import annotations

import base64
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rhino3dm
from rhino_boxes import make_box

from meshhub import Material, Mesh, MeshhubError, Part, Registry, Scene, Source
from meshhub.testing import sample_scenes

REGISTRY = Registry()
UNITS = rhino3dm.UnitSystem


def write(scene: Scene) -> Any:
    return rhino3dm.File3dm.FromByteArray(REGISTRY.convert_bytes(scene, "3dm"))


def encode(file: Any) -> Source:
    return Source.from_bytes(base64.b64decode(file.Encode()), "a.3dm")


def codes(source: Source) -> list[str]:
    return [note.code for note in REGISTRY.inspect(source).notes]


def test_rhino3dm_reads_names_layers_materials_and_units() -> None:
    mesh = sample_scenes.brick().meshes[0]
    away = np.eye(4)
    away[:3, 3] = 100.123456789, 0, 0
    scene = Scene(
        (mesh,),
        (Part(0, away, "lid", ("box", "inner"), 0),),
        (Material("red", (1.0, 0.0, 0.0, 0.5), alpha_mode="blend"),),
    )
    file = write(scene)
    assert file.Settings.ModelUnitSystem == UNITS.Millimeters
    (item,) = file.Objects
    assert item.Attributes.Name == "lid"
    assert file.Layers[item.Attributes.LayerIndex].FullPath == "box::inner"
    material = file.Materials[item.Attributes.MaterialIndex]
    assert (material.Name, material.DiffuseColor[:3], material.Transparency) == ("red", (255, 0, 0), 0.5)
    assert item.Attributes.ObjectColor[:3] == (255, 0, 0)
    assert item.Geometry.IsValid and item.Geometry.IsClosed and item.Geometry.IsManifold(True)[0]
    assert min(item.Geometry.Vertices.Point3dAt(k).X for k in range(8)) == 100.123456789


def test_rhino3dm_reads_a_shared_mesh_as_a_block() -> None:
    file = write(sample_scenes.twice())
    kinds = [item.Geometry.ObjectType for item in file.Objects if not item.Attributes.IsInstanceDefinitionObject]
    assert kinds == [rhino3dm.ObjectType.InstanceReference] * 2
    assert len(file.InstanceDefinitions) == 1


def test_materials_of_faces_become_vertex_colors_of_a_closed_mesh() -> None:
    mesh = sample_scenes.brick().meshes[0]
    striped = Mesh(mesh.vertices, mesh.faces, face_material=np.arange(len(mesh.faces)) % 2)
    scene = Scene((striped,), (Part(0),), (Material("r", (1, 0, 0, 1)), Material("b", (0, 0, 1, 1))))
    (item,) = write(scene).Objects
    assert item.Geometry.IsClosed
    shades = {item.Geometry.VertexColors[k][:3] for k in range(len(item.Geometry.VertexColors))}
    assert shades == {(255, 0, 0), (0, 0, 255)}
    again = REGISTRY.inspect(Source.from_bytes(REGISTRY.convert_bytes(scene, "3dm"), "a.3dm")).model
    assert again.watertight and again.volume_mm3 == pytest.approx(6000)


@pytest.mark.parametrize(
    ("unit", "size"), [("Millimeters", 30), ("Inches", 762), ("Mils", 0.762), ("Decimeters", 3000), ("None", 30)]
)
def test_quads_and_units_are_read(unit: str, size: float) -> None:
    file = rhino3dm.File3dm()
    file.Settings.ModelUnitSystem = getattr(UNITS, unit)
    file.Objects.AddMesh(make_box())
    inspection = REGISTRY.inspect(encode(file)).model
    assert inspection.faces == 12
    assert inspection.watertight
    assert inspection.size_mm[2] == pytest.approx(size)


def test_blocks_inside_blocks_share_a_mesh() -> None:
    file = rhino3dm.File3dm()
    names = [rhino3dm.ObjectAttributes(), rhino3dm.ObjectAttributes()]
    names[0].Name, names[1].Name = "bolt", "nut"
    origin = rhino3dm.Point3d(0, 0, 0)
    pair = file.InstanceDefinitions.Add("pair", "", "", "", origin, (make_box(), make_box((1, 1, 1))), tuple(names))
    inner = rhino3dm.InstanceReference(
        file.InstanceDefinitions[pair].Id, rhino3dm.Transform.Translation(rhino3dm.Vector3d(100, 0, 0))
    )
    row = file.InstanceDefinitions.Add("row", "", "", "", origin, (inner,), (rhino3dm.ObjectAttributes(),))
    for distance in (0.0, 1000.0):
        move = rhino3dm.Transform.Translation(rhino3dm.Vector3d(0, distance, 0))
        file.Objects.AddInstanceObject(rhino3dm.InstanceReference(file.InstanceDefinitions[row].Id, move))
    scene = REGISTRY.read(encode(file))
    assert len(scene.meshes) == 2
    assert [(part.name, part.path[-1]) for part in scene.parts] == [("bolt", "pair"), ("nut", "pair")] * 2
    assert [part.transform[:3, 3].tolist() for part in scene.parts[::2]] == [[100, 0, 0], [100, 1000, 0]]


def test_solids_are_read_by_their_render_meshes(tmp_path: Path) -> None:
    file = rhino3dm.File3dm()
    brep = rhino3dm.Brep.CreateFromMesh(make_box(), True)
    file.Objects.AddBrep(brep)
    with pytest.raises(MeshhubError, match="no meshes; show the model shaded") as caught:
        REGISTRY.inspect(encode(file))
    assert caught.value.error_code == "empty_model"
    extrusion = rhino3dm.Extrusion.CreateBoxExtrusion(
        rhino3dm.Box(rhino3dm.BoundingBox(rhino3dm.Point3d(0, 0, 0), rhino3dm.Point3d(1, 2, 3))), True
    )
    file.Objects.AddExtrusion(extrusion)
    file.Objects.AddMesh(make_box())
    (note,) = REGISTRY.inspect(encode(file)).notes
    assert note.code == "render_meshes_missing"
    assert note.message.startswith("2 solids or surfaces")
    incomplete = REGISTRY.inspect(make_solid(tmp_path, "0"))
    assert [note.code for note in incomplete.notes] == ["render_meshes_missing"]
    whole = REGISTRY.inspect(make_solid(tmp_path, "0 1 2 3 4 5"))
    assert whole.notes == ()
    assert whole.model.watertight
    assert whole.model.volume_mm3 == pytest.approx(6000)


def make_solid(folder: Path, faces: str) -> Path:
    """Return a file with a solid that has render meshes of some faces.

    Another process makes it, because rhino3dm frees such meshes twice when a process ends.
    """
    path = folder / "solid.3dm"
    command = [sys.executable, Path(__file__).with_name("rhino_boxes.py"), path, *faces.split()]
    subprocess.run(command, check=True)
    return path


def test_hidden_objects_and_curves_are_left_out_with_a_note() -> None:
    file = rhino3dm.File3dm()
    layer = rhino3dm.Layer()
    layer.Name, layer.Color = "green", (0, 255, 0, 255)
    index = file.Layers.Add(layer)
    on_layer = rhino3dm.ObjectAttributes()
    on_layer.LayerIndex = index
    file.Objects.AddMesh(make_box(), on_layer)
    hidden = rhino3dm.ObjectAttributes()
    hidden.Visible = False
    file.Objects.AddMesh(make_box(), hidden)
    file.Objects.AddLine(rhino3dm.Point3d(0, 0, 0), rhino3dm.Point3d(1, 0, 0))
    source = encode(file)
    assert codes(source) == ["hidden_ignored", "objects_left_out"]
    scene = REGISTRY.read(source)
    assert [(part.path, part.material) for part in scene.parts] == [(("green",), 0)]
    assert scene.materials[0].base_color == (0, 1, 0, 1)


def test_a_file_that_hides_all_meshes_is_read_with_a_note() -> None:
    file = rhino3dm.File3dm()
    hidden = rhino3dm.ObjectAttributes()
    hidden.Visible = False
    file.Objects.AddMesh(make_box(), hidden)
    source = encode(file)
    assert codes(source) == ["hidden_read"]
    assert len(REGISTRY.read(source).parts) == 1


def test_ids_are_valid_and_differ() -> None:
    file = write(sample_scenes.full())
    ids = [uuid.UUID(str(item.Attributes.Id)) for item in file.Objects]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("data", [b"3D Geometry File Format       70", b"3D Geometry File Format " + bytes(99)])
def test_a_damaged_file_is_rejected(data: bytes) -> None:
    with pytest.raises(MeshhubError) as caught:
        REGISTRY.inspect(Source.from_bytes(data, "a.3dm"))
    assert caught.value.error_code in ("unreadable_file", "empty_model")
