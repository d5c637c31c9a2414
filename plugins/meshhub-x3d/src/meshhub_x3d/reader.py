"""Reader of X3D and VRML, in every text encoding, also compressed."""

from __future__ import annotations

import zlib

import numpy as np

from meshhub import EmptyModel, Frame, ModelTooComplex, NoOptions, Scene, Source, UnreadableFile, note
from meshhub.errors import quote
from meshhub.model.capabilities import MILLIMETERS_PER
from meshhub.model.scene import Float64
from meshhub.toolkit.names import single_line
from meshhub_x3d.appearance import Appearance
from meshhub_x3d.classic import parse_classic
from meshhub_x3d.document import Document
from meshhub_x3d.fields import read_texts
from meshhub_x3d.nodes import Node
from meshhub_x3d.traversal import SceneBuilder
from meshhub_x3d.xml_encoding import parse_xml_encoding

_GZIP = b"\x1f\x8b\x08"
_BINARY = b"\xe0\x00\x00\x01"
"""Begin of Fast Infoset, the binary encoding (ISO/IEC 19776-3)."""

_MAX_UNPACKED_BYTES = 1 << 30
"""Maximum bytes of an unpacked file."""

_MAX_INLINES_COUNT = 1_000
"""Maximum files that a scene names."""

_UNIT_TOLERANCE_RATIO = 1e-6
"""Relative difference up to which a unit counts as a known one."""

_METADATA = {
    "title": "Title",
    "author": "Designer",
    "creator": "Designer",
    "description": "Description",
    "license": "LicenseTerms",
    "rights": "Copyright",
    "copyright": "Copyright",
}
"""Names of metadata of a scene by those of X3D."""

_MAX_TEXT_CHARACTERS_COUNT = 10_000
"""Maximum characters of a metadata value."""


# numbers that are not finite, or too large, are rejected after reading
@np.errstate(all="ignore")
def read(source: Source, options: NoOptions) -> Scene:  # noqa: ARG001
    """Read an X3D or VRML file; the content decides on the encoding.

    Returns:
        Scene in the unit of the file, by default meters, Y up.
    Raises:
        UnreadableFile: The file is damaged, or in another encoding.
        EmptyModel: The scene has no triangles.
        ModelTooComplex: The file has too many nodes.
    """
    document = _parse(source.read())
    frame, matrix = _read_frame(document.factor("length"))
    appearance = Appearance(source)
    inlines = _Inlines(source, document)
    builder = SceneBuilder(appearance, inlines.read, document.factor("angle"))
    builder.add_all(document.nodes, matrix)
    if not builder.parts and inlines.missing:
        raise EmptyModel(f"the model is in {quote(inlines.missing[:60])}, another file; send it beside this one")
    if not builder.parts:
        raise EmptyModel("the scene of the file has no triangles; export the model again")
    metadata = _read_metadata(document)
    return Scene(
        tuple(builder.meshes),
        tuple(builder.parts),
        materials=tuple(appearance.materials),
        images=tuple(appearance.images),
        frame=frame,
        name=metadata.get("Title", ""),
        metadata=metadata,
    )


def _read_metadata(document: Document) -> dict[str, str]:
    """Return the descriptions of the model; VRML has only a title."""
    texts = dict(document.texts)
    world = next((node for node in document.nodes if node.kind == "WorldInfo"), None)
    if world is not None:
        texts.setdefault("title", " ".join(read_texts(world, "title")))
    metadata: dict[str, str] = {}
    for name, label in _METADATA.items():
        text = single_line(texts.get(name, "")[:_MAX_TEXT_CHARACTERS_COUNT])
        if text:
            metadata.setdefault(label, text)
    return metadata


def _parse(data: bytes) -> Document:
    """Return the nodes of a file. Raises UnreadableFile or ModelTooComplex."""
    if data.startswith(_GZIP):
        data = _unpack(data)
    if data.startswith(_BINARY):
        raise UnreadableFile("the file is X3D in binary encoding, which is not read; save it as XML (.x3d)")
    begin = data[:400].replace(b"\0", b"").removeprefix(b"\xef\xbb\xbf").lstrip()
    if begin.startswith(b"{"):
        raise UnreadableFile("the file is X3D in JSON encoding, which is not read; save it as XML (.x3d)")
    return parse_classic(data) if begin.startswith(b"#") or b"<" not in begin else parse_xml_encoding(data)


def _unpack(data: bytes) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    try:
        unpacked = unpacker.decompress(data, _MAX_UNPACKED_BYTES)
    except zlib.error:
        raise UnreadableFile("the compressed file is damaged; export it again") from None
    if unpacker.unconsumed_tail:
        raise ModelTooComplex(f"the unpacked file exceeds {_MAX_UNPACKED_BYTES >> 30} GiB; reduce the model")
    if not unpacker.eof:
        raise UnreadableFile("the compressed file is cut off; export it again", values={"defect": "cut_off"})
    return unpacked


def _read_frame(meters: float) -> tuple[Frame, Float64]:
    """Return the frame of the scene, and the matrix from the unit of the file to it."""
    mm = meters * MILLIMETERS_PER["m"]
    for name, millimeters in MILLIMETERS_PER.items():
        if abs(mm / millimeters - 1) < _UNIT_TOLERANCE_RATIO:
            return Frame(name, "y"), np.eye(4)
    return Frame("mm", "y"), np.diag([mm, mm, mm, 1.0])


class _Inlines:
    """Files that Inline nodes name, as far as they are companions; nothing is fetched.

    Attributes:
        missing: Name of the last file that is not a companion.
    """

    def __init__(self, source: Source, document: Document) -> None:
        self.missing = ""
        self._source = source
        self._meters = document.factor("length")
        self._nodes: dict[str, tuple[Node, ...]] = {}

    def read(self, urls: list[str]) -> tuple[Node, ...]:
        """Return the nodes of the first file that is a companion; none, with a note, without one.

        Raises:
            UnreadableFile: The file is damaged.
            ModelTooComplex: There are too many files.
        """
        for url in urls:
            path = url.partition("#")[0]
            if path in self._nodes:
                return self._nodes[path]
            sibling = self._source.sibling(path)
            if sibling is not None:
                if len(self._nodes) >= _MAX_INLINES_COUNT:
                    raise ModelTooComplex(f"the scene has more than {_MAX_INLINES_COUNT} Inline files; merge some")
                self._nodes[path] = self._scale(_parse(sibling.read()))
                return self._nodes[path]
        self.missing = single_line(urls[0]) if urls else ""
        note("inline_missing", f"left out {quote(self.missing[:60])}, an Inline file: send it beside the model")
        return ()

    def _scale(self, document: Document) -> tuple[Node, ...]:
        """Return the nodes of a file in the unit of the scene."""
        ratio = document.factor("length") / self._meters
        return (Node("Transform", "", {"scale": f"{ratio} {ratio} {ratio}", "children": document.nodes}),)
