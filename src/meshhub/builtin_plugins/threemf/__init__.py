"""3MF: core, materials, production and beam lattices, with the filaments and the paint of slicers; written also as
projects of PrusaSlicer, BambuStudio and OrcaSlicer.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from meshhub.builtin_plugins.threemf.printers import ALIASES, PRINTERS, TITLES
from meshhub.errors import InvalidOption
from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import HOST_FRAME, Feature, Format, Reader, Writer
from meshhub.toolkit.printers import MAX_FILAMENTS

THREEMF = Format(
    id="3mf",
    label="3MF",
    extensions=(".3mf",),
    media_types=("model/3mf", "application/vnd.ms-package.3dmanufacturing-3dmodel+xml"),
    specification="https://github.com/3MFConsortium/spec_core",
    generator_entry="3D/3dmodel.model",
    is_compressed=True,
    memory_base_bytes=256 << 20,
    memory_ratio=60.0,
)

_CARRIES: frozenset[Feature] = frozenset(
    {"names", "hierarchy", "instances", "uv", "colors", "materials", "textures", "metadata", "units"}
)


class ThreeMFReadOptions(Struct, frozen=True, kw_only=True):
    """Paint and filaments of slicers."""

    threemf_paint: (
        Annotated[
            Literal["dominant", "split", "auto"],
            Meta(
                title="Painted triangles when reading 3MF",
                description="Triangles that are painted with several filaments in a slicer: dominant gives each the "
                "filament that covers most of it; split cuts them along the paint; auto does so unless it makes more "
                "than 500,000 triangles. Default: auto for inspections, pictures, previews and projects of slicers, "
                "which get the paint; dominant for other conversions.",
            ),
        ]
        | None
    ) = None
    threemf_remap_filaments: (
        Annotated[
            str,
            Meta(
                title="New numbers of filaments when reading 3MF",
                description="Filaments of a slicer's project to replace, as old=new, separated by commas: paint, parts "
                "and supports of filament 1 get filament 4. Colors and settings of the filaments stay at their "
                "numbers, and everything else in the project is kept.",
                examples=["1=4,2=1"],
            ),
        ]
        | None
    ) = None

    def check(self) -> None:
        """Raise InvalidOption for malformed numbers of filaments."""
        if self.threemf_remap_filaments:
            from meshhub.builtin_plugins.threemf.reading.remapping import parse_mapping

            parse_mapping(self.threemf_remap_filaments)


class ThreeMFWriteOptions(Struct, frozen=True, kw_only=True):
    """Dialect of the file."""

    threemf_profile: Annotated[
        Literal["standard", "prusa", "bambu", "orca"],
        Meta(
            title="Dialect when writing 3MF",
            description=(
                "standard writes materials and colors, which slicers show or ignore; prusa, bambu and orca also assign "
                "a filament to each color of a material, as a project of PrusaSlicer, BambuStudio or OrcaSlicer."
            ),
        ),
    ] = "standard"
    threemf_printer: (
        Annotated[
            str,
            Meta(
                title="Printer of the project when writing 3MF",
                description="Printer for which a project of BambuStudio or OrcaSlicer opens, with its standard "
                "settings for PLA; default: bambu-p1s. A project of the same slicer keeps everything except "
                "settings that belong to its old printer; notes name them.",
                extra={"titles": TITLES, "aliases": ALIASES},
            ),
        ]
        | None
    ) = None
    threemf_paint_cell_mm: Annotated[
        float,
        Meta(
            title="Smallest painted detail in mm",
            description="Size of the details that paint inside triangles follows, for prusa, bambu and orca; default: "
            "the width of a nozzle.",
            ge=0.05,
            le=100,
        ),
    ] = 0.4

    def check(self) -> None:
        """Raise InvalidOption for a printer that the slicer does not know."""
        if self.threemf_printer is None:
            return
        slicers: tuple[str, ...] = PRINTERS[self.threemf_printer].presets.slicers
        if self.threemf_profile in slicers:
            return
        if self.threemf_profile == "prusa":
            problem = "PrusaSlicer takes no printer from a project without all of its settings"
        else:
            problem = f"printer {self.threemf_printer} needs a project of its slicer"
        raise InvalidOption(
            f"option '{{threemf_printer}}': {problem}; set {' or '.join(f'{{threemf_profile={p}}}' for p in slicers)}",
            options=("threemf_printer", "threemf_profile"),
        )


@hookimpl
def meshhub_readers() -> list[Reader]:
    """Return the reader. It has no fixed frame: Z is up, but each file states its own unit."""
    return [
        Reader(
            format=THREEMF,
            run="meshhub.builtin_plugins.threemf.reader:read",
            sniff="meshhub.builtin_plugins.threemf.sniff:sniff",
            carries=_CARRIES,
            frame=None,
            options=ThreeMFReadOptions,
            options_for={"display": {"threemf_paint": "auto"}},
        )
    ]


@hookimpl
def meshhub_writers() -> list[Writer]:
    """Return the writer, which writes millimeters."""
    return [
        Writer(
            format=THREEMF,
            run="meshhub.builtin_plugins.threemf.writer:write",
            carries=_CARRIES,
            frame=HOST_FRAME,
            options=ThreeMFWriteOptions,
            max_colors={"threemf_profile": MAX_FILAMENTS},
            preload=(
                "meshhub.builtin_plugins.threemf.writing.bambu_project",
                "meshhub.builtin_plugins.threemf.writing.project_settings",
                "meshhub.builtin_plugins.threemf.writing.prusa_project",
                "meshhub.builtin_plugins.threemf.writing.retargeting",
                "meshhub.toolkit.rendering.picture",
            ),
        )
    ]
