"""Reader of all formats: meshio reads the file in a folder of its own, and its cells become a surface."""

from __future__ import annotations

import importlib
import logging
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

from meshhub import Mesh, Part, Scene, Source, UnreadableFile, note
from meshhub.errors import quote
from meshhub.toolkit.names import single_line
from meshhub.toolkit.safe_xml import as_utf8, read_xml_tree
from meshhub_meshio import MeshioOptions
from meshhub_meshio.abaqus import read_model
from meshhub_meshio.adapting import adapt_meshio, bound_gmsh_tables
from meshhub_meshio.cells import CellMesh
from meshhub_meshio.cleaning import CLEANERS, clean_elements
from meshhub_meshio.colors import color_faces, color_points
from meshhub_meshio.legacy_vtk import read_legacy_vtk
from meshhub_meshio.surface import find_surface
from meshhub_meshio.xml_vtk import read_xml_vtk

if TYPE_CHECKING:
    import h5py
    import meshio


_MAX_GROUPS_COUNT = 100_000
"""Maximum groups and data of an HDF5 file; more would only delay the check."""


def read(source: Source, options: MeshioOptions, name: str) -> Scene:
    """Read a file.

    Args:
        source: File; companions are found beside it.
        options: Data that become colors.
        name: Module of meshio.
    Returns:
        Scene with one mesh, in the units of the file.
    Raises:
        UnreadableFile: The file is damaged, or refers to files that it must not read.
    """
    adapt_meshio()
    mesh: meshio.Mesh | CellMesh
    if name in _OWN_READERS:
        mesh = _OWN_READERS[name](source)
    else:
        with tempfile.TemporaryDirectory(prefix="meshio-") as folder:
            mesh = _read_in_folder(source, name, Path(folder))
    coordinates = np.asarray(mesh.points, np.float64)
    if coordinates.ndim != 2 or coordinates.shape[1] not in (2, 3):
        raise UnreadableFile("the file has no points with two or three coordinates; export it again")
    # a plane mesh has two
    points = np.zeros((len(coordinates), 3))
    points[:, : coordinates.shape[1]] = coordinates
    try:
        surface, ignored = find_surface(points, [(block.type, block.data) for block in mesh.cells])
    except (IndexError, ValueError, TypeError) as error:
        raise UnreadableFile(f"a cell refers to a point that does not exist ({single_line(str(error))})") from None
    if len(surface.faces) and not 0 <= surface.faces.min() <= surface.faces.max() < len(points):
        raise UnreadableFile(f"a cell refers to a point outside 0 … {len(points) - 1}; export the file again")
    if ignored:
        note("cells_left_out", f"cells of these types were left out: {', '.join(sorted(ignored))}")
    face_material, materials = color_faces(mesh, surface, options)
    colors = color_points(mesh, options)
    used, faces = np.unique(surface.faces, return_inverse=True)
    result = Mesh(
        points[used],
        faces.reshape(-1, 3).astype(np.int32),
        colors=None if colors is None else colors[used],
        face_material=face_material,
    )
    return Scene((result,), (Part(0),), materials)


def _read_in_folder(source: Source, name: str, folder: Path) -> meshio.Mesh:
    """Read a file with meshio, which sees only the file and the companions that it may have."""
    path = folder / f"model{source.extension}"
    if name in CLEANERS:
        path.write_bytes(CLEANERS[name](source.read()))
    else:
        _place(source, path)
    if name == "tetgen":
        other = ".node" if source.extension == ".ele" else ".ele"
        _place_companion(source, source.stem + other, path.with_suffix(other))
        elements = path.with_suffix(".ele")
        content = elements.read_bytes()
        elements.unlink()
        elements.write_bytes(clean_elements(content))
    elif name == "xdmf":
        _place_data(source, path.read_bytes(), folder)
    elif name == "med":
        _remove_families(_check_hdf5(path))
    elif name == "gmsh":
        bound_gmsh_tables()
    # meshio.read would end the program for a damaged file
    module = importlib.import_module(f"meshio.{name}")
    try:
        result: meshio.Mesh = module.read(str(path))
    except (Exception, SystemExit) as error:
        logging.getLogger("meshhub").debug("meshio rejects the file", exc_info=error)
        reason = single_line(str(error)) or type(error).__name__
        raise UnreadableFile(
            f"the {name} file is damaged or has parts that meshio lacks ({reason[:60]}); export it as VTU or STL"
        ) from None
    return result


def _place(source: Source, path: Path) -> None:
    """Make the content of a file available at a path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if source.path is not None:
        path.symlink_to(source.path.resolve())
    else:
        path.write_bytes(source.read())


def _place_companion(source: Source, reference: str, path: Path) -> Path:
    """Make a companion available at a path, and return it. Raises UnreadableFile if it is missing."""
    companion = source.sibling(reference)
    if companion is None:
        raise UnreadableFile(f"the file needs {quote(reference)} beside it; send both in one archive")
    if not path.exists():
        _place(companion, path)
    return path


def _check_reference(reference: str, folder: Path) -> tuple[str, Path]:
    """Return a relative reference, and where it leads in the folder. Raises UnreadableFile for any other."""
    text = reference.strip()
    relative = PurePosixPath(text.replace("\\", "/"))
    if not relative.name or relative.is_absolute() or ".." in relative.parts:
        raise UnreadableFile(f"the file refers to {quote(text)}, which is outside of its folder")
    return text, folder / relative


def _place_data(source: Source, document: bytes, folder: Path) -> None:
    """Make the HDF5 files of an XDMF file available. Raises UnreadableFile for references to any other file."""
    data, _ = as_utf8(document)
    for item in read_xml_tree(data, "the XDMF file").iter("DataItem"):
        kind = item.get("Format")
        if kind == "HDF":
            reference, path = _check_reference((item.text or "").partition(":")[0], folder)
            _check_hdf5(_place_companion(source, reference, path))
        elif kind != "XML":
            raise UnreadableFile("XDMF with raw binary files is not supported; save it with XML or HDF5")


def _remove_families(path: Path) -> None:
    """Replace a MED file by a copy without names of groups, because meshio rejects families without groups."""
    import h5py

    copy = path.with_suffix(".copy")
    shutil.copyfile(path, copy)
    copy.replace(path)
    with h5py.File(path, "r+") as file:
        for mesh in file["FAS"].values() if "FAS" in file else ():
            for kind in ("ELEME", "NOEUD"):
                if kind in mesh:
                    del mesh[kind]


def _check_hdf5(path: Path) -> Path:
    """Return the path of an HDF5 file; reject one whose data are in other files. Raises UnreadableFile."""
    import h5py

    try:
        with h5py.File(path, "r") as file:
            groups: list[h5py.Group] = [file]
            for count, group in enumerate(groups):
                if count > _MAX_GROUPS_COUNT:
                    raise UnreadableFile("the HDF5 file has too many groups")
                for key in group:
                    if not isinstance(group.get(key, getlink=True), h5py.HardLink):
                        raise UnreadableFile("the HDF5 file has links to other places, which are not read")
                    item = group[key]
                    if isinstance(item, h5py.Group):
                        groups.append(item)
                    elif isinstance(item, h5py.Dataset) and (item.external or item.is_virtual):
                        raise UnreadableFile("the HDF5 file keeps its data in other files, which are not read")
    except (OSError, KeyError, RuntimeError, ValueError) as error:
        raise UnreadableFile(f"the HDF5 file is damaged: {quote(single_line(str(error))[:90])}") from None
    return path


_OWN_READERS: dict[str, Callable[[Source], meshio.Mesh | CellMesh]] = {
    "abaqus": read_model,
    "vtk": read_legacy_vtk,
    "vtu": read_xml_vtk,
}
"""Readers of formats that meshio reads in part."""

read_vtk = partial(read, name="vtk")
read_vtu = partial(read, name="vtu")
read_gmsh = partial(read, name="gmsh")
read_abaqus = partial(read, name="abaqus")
read_nastran = partial(read, name="nastran")
read_med = partial(read, name="med")
read_xdmf = partial(read, name="xdmf")
read_tetgen = partial(read, name="tetgen")
read_su2 = partial(read, name="su2")
read_medit = partial(read, name="medit")
read_netgen = partial(read, name="netgen")
read_avsucd = partial(read, name="avsucd")
read_flac3d = partial(read, name="flac3d")
