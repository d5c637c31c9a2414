"""Files of every format, cells of every type, colors of data, and files that must not be read."""

from __future__ import annotations

from pathlib import Path

import h5py
import meshio
import numpy as np
import pytest
from cell_bricks import CORNERS, SIZE, TETRAHEDRA, hexahedra, tetrahedra, write
from meshhub_meshio import FORMATS

from meshhub import Registry, Scene, Source, UnreadableFile
from meshhub.model.translations import OptionTexts

REGISTRY = Registry()


def read(mesh: meshio.Mesh, **options: object) -> Scene:
    return REGISTRY.read(write(mesh, "vtk"), **options)


@pytest.mark.parametrize("format_id", [row.id for row in FORMATS])
def test_the_outer_surface_of_a_file_of_every_format_is_closed(format_id: str) -> None:
    inspection = REGISTRY.inspect(write(tetrahedra(2), format_id))
    assert inspection.source.format == format_id
    assert inspection.model.watertight
    assert inspection.model.volume_mm3 == pytest.approx(6000)
    assert inspection.model.faces == 48
    assert inspection.model.vertices == 26
    assert not [note for note in inspection.notes if note.code != "content_beats_name"]


@pytest.mark.parametrize(
    ("kind", "cells", "faces", "volume"),
    [
        ("tetra", [[0, 1, 3, 4]], 4, 1000),
        ("tetra", [[0, 3, 1, 4]], 4, 1000),
        ("pyramid", [[0, 1, 2, 3, 4]], 6, 2000),
        ("wedge", [[0, 1, 3, 4, 5, 7]], 8, 3000),
        ("hexahedron", [[0, 1, 2, 3, 4, 5, 6, 7]], 12, 6000),
        ("hexahedron", [[4, 5, 6, 7, 0, 1, 2, 3]], 12, 6000),
        ("tetra", TETRAHEDRA.tolist(), 12, 6000),
    ],
)
def test_cells_of_each_shape_become_closed_surfaces(
    kind: str, cells: list[list[int]], faces: int, volume: float
) -> None:
    inspection = REGISTRY.inspect(write(meshio.Mesh(CORNERS * SIZE, [(kind, cells)]), "vtk"))
    assert inspection.model.watertight
    assert inspection.model.faces == faces
    assert inspection.model.volume_mm3 == pytest.approx(volume)


EDGES = {
    "tetra": ([0, 1, 3, 4], "01 12 20 03 13 23"),
    "pyramid": ([0, 1, 2, 3, 4], "01 12 23 30 04 14 24 34"),
    "wedge": ([0, 1, 3, 4, 5, 7], "01 12 20 34 45 53 03 14 25"),
    "hexahedron": ([*range(8)], "01 12 23 30 45 56 67 74 04 15 26 37"),
}


@pytest.mark.parametrize("kind", EDGES)
def test_middle_points_of_edges_are_kept(kind: str) -> None:
    corners, edges = EDGES[kind]
    points = CORNERS[corners] * SIZE
    middles = np.array([(points[int(a)] + points[int(b)]) / 2 for a, b in edges.split()])
    center = points.mean(axis=0)
    bulging = np.concatenate([points, center + 1.2 * (middles - center)])
    flat, bulged = (
        REGISTRY.inspect(write(meshio.Mesh(each, [(f"{kind}{len(each)}", [[*range(len(each))]])]), "vtk")).model
        for each in (np.concatenate([points, middles]), bulging)
    )
    assert flat.watertight
    assert bulged.watertight
    assert flat.vertices == bulged.vertices == len(bulging)
    plain = REGISTRY.inspect(write(meshio.Mesh(points, [(kind, [[*range(len(points))]])]), "vtk")).model
    assert flat.volume_mm3 == pytest.approx(plain.volume_mm3)
    assert bulged.volume_mm3 is not None
    assert plain.volume_mm3 is not None
    assert bulged.volume_mm3 > 1.1 * plain.volume_mm3


def test_different_cells_share_their_sides() -> None:
    points = np.array([*CORNERS, [0.5, 0.5, 1.5]]) * SIZE
    mesh = meshio.Mesh(points, [("hexahedron", [[*range(8)]]), ("pyramid", [[4, 5, 6, 7, 8]])])
    inspection = REGISTRY.inspect(write(mesh, "vtk"))
    assert inspection.model.watertight
    assert inspection.model.faces == 14
    assert inspection.model.volume_mm3 == pytest.approx(7000)


def test_surface_cells_are_left_out_where_a_volume_has_the_same_side() -> None:
    points = np.array([*CORNERS, [3, 0, 0], [3, 1, 0]]) * SIZE
    quads = [[0, 1, 2, 3], [4, 5, 6, 7], [1, 8, 9, 2]]
    mesh = meshio.Mesh(points, [("hexahedron", [[*range(8)]]), ("quad", quads), ("line", [[0, 1]])])
    assert REGISTRY.inspect(write(mesh, "vtk")).model.faces == 14
    assert REGISTRY.inspect(write(meshio.Mesh(points, [("quad", quads)]), "vtk")).model.faces == 6


def test_plane_meshes_and_polygons_are_read() -> None:
    flat = meshio.Mesh(CORNERS[:4, :2], [("triangle", [[0, 1, 2]]), ("quad", [[0, 1, 2, 3]])])
    assert REGISTRY.inspect(write(flat, "vtu")).model.area_mm2 == pytest.approx(1.5)
    polygon = meshio.Mesh(CORNERS, [("polygon", [[0, 1, 2, 3], [4, 5, 6, 7]])])
    assert REGISTRY.inspect(write(polygon, "vtu")).model.area_mm2 == pytest.approx(2)


def test_data_at_points_become_vertex_colors() -> None:
    scene = read(hexahedra(2), meshio_color_by="height")
    mesh = scene.meshes[0]
    assert mesh.colors is not None
    height = np.rint(mesh.vertices[:, 2]).astype(int)
    for level, color in ((0, (0x44, 0x01, 0x54, 255)), (15, (0x23, 0x90, 0x8C, 255)), (30, (0xFD, 0xE7, 0x25, 255))):
        assert np.abs(mesh.colors[height == level].astype(int) - color).max() <= 12, level
    limited = read(hexahedra(2), meshio_color_by="height", meshio_color_min=0.5, meshio_color_map="gray").meshes[0]
    assert limited.colors is not None
    assert set(map(tuple, limited.colors[height <= 15].tolist())) == {(0, 0, 0, 255)}


def test_data_in_cells_become_materials_of_faces() -> None:
    scene = read(hexahedra(2), meshio_color_by="layer", meshio_color_map="gray")
    mesh = scene.meshes[0]
    assert [material.name for material in scene.materials] == ["layer 0", "layer 1"]
    assert [material.base_color for material in scene.materials] == [(0, 0, 0, 1), (1, 1, 1, 1)]
    assert mesh.face_material is not None
    middle = mesh.vertices[mesh.faces].mean(axis=1)[:, 2]
    assert set(mesh.face_material[middle < 14]) == {0}
    assert set(mesh.face_material[middle > 16]) == {1}


def test_many_values_share_materials_and_missing_ones_are_gray() -> None:
    mesh = hexahedra(6)
    values = np.arange(216, dtype=np.float64)
    values[0] = np.nan
    mesh.cell_data["stress"] = [np.stack([values, 0 * values, 0 * values], axis=1)]
    scene = read(mesh, meshio_color_by="stress")
    assert len(scene.materials) == 65
    assert scene.materials[-1].name == "stress missing"
    mesh.point_data["nothing"] = np.full(len(mesh.points), np.nan)
    colors = read(mesh, meshio_color_by="nothing").meshes[0].colors
    assert colors is not None
    assert set(map(tuple, colors.tolist())) == {(128, 128, 128, 255)}


def test_a_note_lists_the_data_of_a_file_without_the_requested_ones() -> None:
    inspection = REGISTRY.inspect(write(hexahedra(1), "vtk"), meshio_color_by="temperature")
    (note,) = inspection.notes
    assert note.code == "data_missing"
    assert "no data 'temperature' for 'meshio_color_by'; it has: height, layer" in note.message
    assert inspection.model.features == ()


def test_warnings_of_meshio_are_notes(capfd: pytest.CaptureFixture[str]) -> None:
    data = write(hexahedra(1), "gmsh").read().replace(b"$EndElements\n", b"$EndElements\n$Other\n1\n")
    inspection = REGISTRY.inspect(Source.from_bytes(data, "a.msh"))
    assert [note.code for note in inspection.notes] == ["meshio_warning"]
    assert capfd.readouterr() == ("", "")


def test_options_are_german() -> None:
    texts = REGISTRY.texts("de").options
    for name, field in REGISTRY.options.items():
        if name.startswith("meshio"):
            assert texts.get(name, OptionTexts()).description
            assert set(texts[name].choices) == set(field.choices)
    assert not [fault for fault in REGISTRY.faults if fault.plugin == "meshio"]


def test_cards_of_nastran_alone_are_read() -> None:
    source = write(hexahedra(1), "nastran")
    cards = source.read().partition(b"BEGIN BULK\n")[2]
    assert REGISTRY.inspect(Source.from_bytes(cards, "a.bdf")).model.volume_mm3 == pytest.approx(6000)


def test_families_of_med_without_groups_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.med"
    path.write_bytes(write(hexahedra(1), "med").read())
    with h5py.File(path, "r+") as file:
        (mesh,) = file["FAS"]
        file[f"FAS/{mesh}"].require_group("ELEME/FAM_-1")
    before = path.read_bytes()
    assert REGISTRY.inspect(path).model.volume_mm3 == pytest.approx(6000)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.inp", b"*NODE\n1, 0, 0, 0\n*INCLUDE, INPUT=/etc/hostname\n", "which is missing"),
        ("a.inp", b"*NODE\n1, 0, 0, 0\n * include,input=b.inp\n", "which is missing"),
        ("a.vtu", b'<!DOCTYPE a [<!ENTITY b "c">]><VTKFile type="UnstructuredGrid"/>', "entities"),
        ("a.ele", b"1 4 0\n1 1 2 3 4\n", "needs 'a.node' beside it"),
        ("a.msh", b"$MeshFormat\n2.2 0 8\n$EndMeshFormat\n", "no points"),
        ("a.msh", b"$MeshFormat\n9.9 0 8\n$EndMeshFormat\n", "the gmsh file is damaged or has parts that meshio lacks"),
        ("a.med", b"\x89HDF\r\n\x1a\n", "damaged"),
    ],
)
def test_files_that_refer_to_others_or_are_damaged_are_rejected(name: str, data: bytes, message: str) -> None:
    with pytest.raises(UnreadableFile, match=message):
        REGISTRY.inspect(Source.from_bytes(data, name))


@pytest.mark.parametrize("version", [b"2.2", b"4.1"])
def test_numbers_of_nodes_that_would_fill_memory_are_rejected(version: bytes) -> None:
    block = b"1\n2000000000 0 0 0\n" if version == b"2.2" else b"1 1 1 2000000000\n0 1 0 1\n2000000000\n0 0 0\n"
    data = b"$MeshFormat\n" + version + b" 0 8\n$EndMeshFormat\n$Nodes\n" + block + b"$EndNodes\n"
    with pytest.raises(UnreadableFile, match="a node has the number"):
        REGISTRY.inspect(Source.from_bytes(data, "a.msh"))


XDMF = (
    '<Xdmf Version="3.0"><Domain><Grid><Geometry GeometryType="XYZ"><DataItem DataType="Float" Dimensions="3 3" '
    'Format="{kind}">{text}</DataItem></Geometry><Topology TopologyType="Triangle" NumberOfElements="1"><DataItem '
    'DataType="Int" Dimensions="1 3" Format="XML">0 1 2</DataItem></Topology></Grid></Domain></Xdmf>'
)


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("HDF", "/etc/a.h5:/x", "outside of its folder"),
        ("HDF", "../a.h5:/x", "outside of its folder"),
        ("HDF", "<![CDATA[../a.h5:/x]]>", "outside of its folder"),
        ("HDF", "a.h5:/x", "needs 'a.h5' beside it"),
        ("Binary", "a.bin", "raw binary"),
        ("&#66;inary", "/etc/passwd", "raw binary"),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_xdmf_reads_no_other_place(kind: str, text: str, message: str, encoding: str) -> None:
    data = XDMF.format(kind=kind, text=text).encode(encoding)
    with pytest.raises(UnreadableFile, match=message):
        REGISTRY.inspect(Source.from_bytes(data, "a.xdmf"), input_format="xdmf")
    plain = XDMF.format(kind="XML", text="0 0 0 1 0 0 0 1 0").encode()
    assert REGISTRY.inspect(Source.from_bytes(plain, "a.xdmf")).model.area_mm2 == pytest.approx(0.5)


@pytest.mark.parametrize("trick", ["external link", "soft link", "external data", "virtual data"])
def test_hdf5_files_that_keep_data_elsewhere_are_rejected(tmp_path: Path, trick: str) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(np.arange(9, dtype=np.float64).tobytes())
    folder = tmp_path / "in"
    folder.mkdir()
    with h5py.File(folder / "a.h5", "w") as file:
        if trick == "external link":
            file["x"] = h5py.ExternalLink(str(secret), "/x")
        elif trick == "soft link":
            file["x"] = h5py.SoftLink("/y")
        elif trick == "external data":
            file.create_dataset("x", (3, 3), "f8", external=[(str(secret), 0, 72)])
        else:
            layout = h5py.VirtualLayout((3, 3), "f8")
            layout[:] = h5py.VirtualSource(str(secret), "x", (3, 3))
            file.create_virtual_dataset("x", layout)
    (folder / "a.xdmf").write_text(XDMF.format(kind="HDF", text="a.h5:/x"), encoding="utf-8")
    with pytest.raises(UnreadableFile, match="HDF5 file"):
        REGISTRY.inspect(folder / "a.xdmf")
