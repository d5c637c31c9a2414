"""Meshes of simulations for meshhub, read by meshio: one table of formats."""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

from msgspec import Meta, Struct

from meshhub import Feature, Format, Frame, Reader, hookimpl

MESHHUB_API = "1.0"


class _Row(NamedTuple):
    """Format of meshio, which names its module `id`."""

    id: str
    label: str
    extensions: tuple[str, ...]
    specification: str
    has_sniffer: bool = True
    has_data: bool = False


FORMATS = (
    _Row("vtk", "VTK", (".vtk",), "https://docs.vtk.org/en/latest/vtk_file_formats", has_data=True),
    _Row(
        "vtu",
        "VTK unstructured grid (experimental)",
        (".vtu",),
        "https://docs.vtk.org/en/latest/vtk_file_formats",
        has_data=True,
    ),
    _Row("gmsh", "Gmsh", (".msh",), "https://gmsh.info/doc/texinfo/gmsh.html#MSH-file-format", has_data=True),
    _Row("abaqus", "Abaqus input", (".inp",), "Abaqus keywords reference"),
    _Row("nastran", "Nastran bulk data (experimental)", (".bdf", ".nas", ".fem"), "MSC Nastran quick reference guide"),
    _Row("med", "MED of Salome", (".med",), "https://docs.salome-platform.org", has_sniffer=False, has_data=True),
    _Row("xdmf", "XDMF", (".xdmf", ".xmf"), "https://www.xdmf.org/index.php/XDMF_Model_and_Format", has_data=True),
    _Row("tetgen", "TetGen", (".ele", ".node"), "https://wias-berlin.de/software/tetgen", has_sniffer=False),
    _Row("su2", "SU2 mesh", (".su2",), "https://su2code.github.io/docs_v7/Mesh-File/"),
    _Row("medit", "Medit", (".mesh", ".meshb"), "INRIA technical report 0253"),
    _Row("netgen", "Netgen (experimental)", (".vol",), "https://ngsolve.org"),
    _Row("avsucd", "AVS UCD", (".avs",), "AVS developer's guide", has_data=True),
    _Row("flac3d", "FLAC3D grid", (".f3grid",), "FLAC3D user's guide"),
)  # fmt: skip
"""Formats that are read. The outer surface of volume cells, and surface cells, become the model."""

ColorMap = Literal["viridis", "coolwarm", "turbo", "gray"]
"""Names of color maps."""

_DATA: frozenset[Feature] = frozenset({"colors", "materials"})


class MeshioOptions(Struct, frozen=True, kw_only=True):
    """Data of a simulation that become colors."""

    meshio_color_by: (
        Annotated[
            str,
            Meta(
                title="Data to show as colors",
                description="Name of data at points, which become vertex colors, or in cells, which become face "
                "colors; of vectors, the length counts. For an unknown name, a note lists all.",
                examples=["temperature"],
            ),
        ]
        | None
    ) = None
    meshio_color_map: Annotated[
        ColorMap, Meta(title="Color map", description="viridis and gray rise in brightness; coolwarm has two ends.")
    ] = "viridis"
    meshio_color_min: (
        Annotated[float, Meta(title="Value of the first color", description="Default: the least value.")] | None
    ) = None
    meshio_color_max: (
        Annotated[float, Meta(title="Value of the last color", description="Default: the greatest value.")] | None
    ) = None


@hookimpl
def meshhub_readers() -> list[Reader]:
    """Declare a reader for each row of the table; the formats state no unit."""
    return [
        Reader(
            format=Format(
                id=row.id,
                label=row.label,
                extensions=row.extensions,
                specification=row.specification,
                # numbers as text become arrays, and the sorted sides of all cells
                memory_ratio=60.0,
            ),
            run=f"meshhub_meshio.reader:read_{row.id}",
            sniff=f"meshhub_meshio.sniff:sniff_{row.id}" if row.has_sniffer else None,
            needs=("meshio", "h5py") if row.id in ("med", "xdmf") else ("meshio",),
            install="meshhub-meshio",
            options=MeshioOptions,
            carries=_DATA if row.has_data else frozenset(),
            frame=Frame("mm", "z"),
        )
        for row in FORMATS
    ]
