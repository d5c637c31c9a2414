"""AMF reader: parse the structure as a tree, vertices and triangles as arrays."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from meshhub import EmptyModel, Frame, NoOptions, Scene, Source, UnreadableFile, note
from meshhub.model.capabilities import Unit
from meshhub.toolkit.archive import Archive, ArchiveLimits, is_system_file
from meshhub.toolkit.safe_xml import read_xml_tree
from meshhub_amf.colors import Palette
from meshhub_amf.markup import normalize
from meshhub_amf.objects import ObjectReader, metadata_of
from meshhub_amf.placement import index_by_id, place_objects
from meshhub_amf.tags import extract_bodies

_UNITS: dict[str, Unit] = {
    "millimeter": "mm", "inch": "in", "feet": "ft", "meter": "m", "micron": "um", "micrometer": "um",
}  # fmt: skip

_MAX_ELEMENTS_COUNT = 2_000_000
"""Maximum elements outside the extracted bodies; each takes about 500 bytes of memory."""

_SLICERS = ("Slic3r", "PrusaSlicer", "SuperSlicer", "BambuStudio", "OrcaSlicer")
"""Start of the names of programs that turn instances by radians."""

_SETTINGS = ("slic3r.", "slic3rpe_")
"""Start of the names of metadata that Slic3r and PrusaSlicer write for themselves."""

_LIMITS = ArchiveLimits(ratio_after=64 << 20)
"""Bytes before the compression ratio is limited, because the XML of a large grid exceeds 100:1."""


def read(source: Source, options: NoOptions) -> Scene:  # noqa: ARG001
    """Read an AMF file, plain or in a ZIP archive.

    Returns:
        Scene with a mesh per volume, in the unit of the file.
    Raises:
        UnreadableFile: The file is damaged, or not AMF.
        UnsafeArchive: The archive exceeds a limit.
        EmptyModel: The file contains only objects that are not printed.
        ModelTooComplex: The file has too many elements or instances.
    """
    document, bodies = extract_bodies(normalize(_unpack(source)))
    root = read_xml_tree(document, "the XML", max_elements=_MAX_ELEMENTS_COUNT, namespaces=False, offsets=True)
    if root.tag != "amf":
        raise UnreadableFile(f"the root element is {root.tag[:40]!r}, not 'amf'; check the format of the file")
    metadata = metadata_of(root)
    settings = [key for key in metadata if key.startswith(_SETTINGS)]
    for key in settings:
        del metadata[key]
    if settings:
        note("slicer_settings_dropped", "dropped the print settings of the slicer project")
    for element, what in (("texture", "textures"), ("material/composite", "mixed materials")):
        if root.find(element) is not None:
            note("amf_features_left_out", f"dropped {what}: only plain colors are read")
    palette = Palette(root)
    reader = ObjectReader(bodies, palette)
    objects = {name: reader.read(each) for name, each in index_by_id(root.findall("object")).items()}
    reader.note_losses()
    parts = place_objects(root, objects, is_radians=metadata.get("cad", "").startswith(_SLICERS))
    if not any(len(reader.meshes[part.mesh].faces) for part in parts):
        raise EmptyModel("the file has no triangles that are printed; export the model again")
    return Scene(
        tuple(reader.meshes),
        parts,
        materials=tuple(palette.materials),
        frame=Frame(_read_unit(root), "z"),
        name=metadata.pop("name", ""),
        metadata=metadata,
    )


def _read_unit(root: Element) -> Unit:
    """Return the unit of the coordinates. Raises UnreadableFile."""
    unit = (root.get("unit") or root.get("units") or "millimeter").strip().lower()
    if unit not in _UNITS:
        raise UnreadableFile(f"unit {unit[:40]!r} must be one of {', '.join(_UNITS)}; correct it in the file")
    return _UNITS[unit]


def _unpack(source: Source) -> bytes:
    """Return the XML. Raises UnreadableFile or UnsafeArchive."""
    if not source.head(4).startswith(b"PK\3\4"):
        return source.read()
    with Archive(source.read(), _LIMITS) as archive:
        names = [entry.name for entry in archive.entries if not is_system_file(entry.name)]
        # the standard states no name for the file in the archive
        models = [name for name in names if name.lower().endswith(".amf")] or [
            name for name in names if name.lower().endswith(".xml") or len(names) == 1
        ]
        if not models:
            raise UnreadableFile("the ZIP archive has no .amf file; check the format of the file")
        if len(models) > 1:
            note("amf_files_left_out", f"read {models[0]!r}, the first of {len(models)} models in the archive")
        return archive.read(models[0])
