"""Where the bytes of a glTF file are: the binary chunk, data URIs, files that came along."""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

import pybase64

from meshhub.builtin_plugins.gltf.reading import meshopt
from meshhub.builtin_plugins.gltf.reading.document import Item
from meshhub.builtin_plugins.gltf.reading.findings import Findings
from meshhub.errors import ExternalReference, ModelTooComplex, UnreadableFile
from meshhub.model.source import Source

ROWS_PER_BYTE = 16
ROWS_FREE = 4_000_000
"""How many vertices and triangles a file may unfold into; sharing the same bytes again and again must end somewhere."""

_NAMED = 5
_BYTES_A_ROW = 8

_DATA = re.compile(r"data:([^,]{0,200}),", re.IGNORECASE)
_BLANKS = re.compile(r"\s+")


class Buffers:
    """The buffers and buffer views of a document."""

    def __init__(self, document: Item, chunk: memoryview | None, source: Source, findings: Findings) -> None:
        """Finds every buffer. Raises ExternalReference, naming those that did not come with the file."""
        self._document = document
        self._findings = findings
        self._views: dict[int, memoryview] = {}
        self._held: list[memoryview | None] = []
        self._siblings: dict[str, bytes] = {}
        self._source = source
        missing: list[str] = []
        for index, buffer in enumerate(document.entries("buffers")):
            uri = buffer.data.get("uri")
            if uri is None:
                self._held.append(chunk if index == 0 else None)
                continue
            content = self.content(buffer.text("uri"), buffer.place("uri"))
            if content is None:
                missing.append(buffer.text("uri")[:120])
                if len(missing) > _NAMED:
                    break
            else:
                self._held.append(memoryview(content))
        if missing:
            raise ExternalReference(
                f"the glTF file needs {', '.join(map(repr, missing[:_NAMED]))}"
                + (" and more files" if len(missing) > _NAMED else "")
                + ", which did not come with it; send them together in a ZIP archive, or save the model as .glb"
            )
        self.size = sum(len(content) for content in self._held if content is not None)
        self._rows = self.size * ROWS_PER_BYTE + ROWS_FREE

    def content(self, uri: str, where: str) -> bytes | None:
        """What a URI stands for: the data it holds, or a file that came along; None for anything else.

        Raises UnreadableFile for broken data.
        """
        if uri[:5].lower() == "data:":
            return _decoded(uri, where)
        found = self._source.sibling(uri)
        if found is None:
            return None
        # one file has many spellings, and is held once
        key = str(found.path or found.name)
        if key not in self._siblings:
            self._siblings[key] = found.read()
        return self._siblings[key]

    def spend(self, rows: int) -> None:
        """Count vertices, triangles or instances that are made. Raises ModelTooComplex."""
        self._rows -= rows
        if self._rows < 0:
            raise ModelTooComplex(
                "the glTF file unfolds into far more triangles than its bytes can hold; "
                "reduce the model before it is exported (optimize_target_faces comes too late for it)"
            )

    def view(self, index: int, named_by: str) -> tuple[memoryview, int | None]:
        """The bytes of a buffer view, decompressed, and its stride if it states one."""
        item = self._document.entry("bufferViews", index, named_by)
        stride = item.optional("byteStride") or None
        if index not in self._views:
            self._views[index] = self._view(item)
        return self._views[index], stride

    def _view(self, item: Item) -> memoryview:
        for name in meshopt.EXTENSIONS:
            compressed = item.extension(name)
            if compressed is None:
                continue
            if meshopt.available():
                content = meshopt.decoded(compressed, self._slice(compressed))
                self.spend(len(content) // _BYTES_A_ROW)
                return content
            fallback = self._fallback(item)
            if fallback is None:
                raise UnreadableFile(
                    f"the model is compressed by {name}, and the library that reads it is not installed; "
                    "`pip install 'meshhub[meshopt]'`, or export the model uncompressed"
                )
            return fallback
        return self._slice(item)

    def _fallback(self, item: Item) -> memoryview | None:
        """The uncompressed bytes of a compressed view, where the file has them too."""
        index = item.integer("buffer")
        held = self._held[index] if index < len(self._held) else None
        return None if held is None else self._slice(item)

    def _slice(self, item: Item) -> memoryview:
        index = item.integer("buffer")
        buffer = self._document.entry("buffers", index, item.place("buffer"))
        held = self._held[index]
        if held is None:
            buffer.refuse("uri", "is missing, and there is no binary chunk for it")
        offset = item.integer("byteOffset", 0)
        length = item.integer("byteLength")
        if offset + length > len(held):
            self._findings.add(
                "buffer_cut_short", f"{item.where} ends at byte {offset + length} of a buffer that has {len(held)}"
            )
        return held[offset : offset + length]


def media_type(uri: str) -> str:
    """The media type that a data URI states, or ""."""
    said = _DATA.match(uri)
    return said[1].split(";")[0].strip().lower() if said else ""


def _decoded(uri: str, where: str) -> bytes:
    said = _DATA.match(uri)
    if said is None:
        raise UnreadableFile(f"{where} is a data URI without data; the glTF file is damaged, export it again")
    if not said[1].lower().rstrip().endswith(";base64"):
        return unquote_to_bytes(uri[said.end() :])
    text = uri[said.end() :]
    try:
        return pybase64.b64decode(text, validate=True)
    except ValueError:
        pass
    # blanks, percent-encoding, the URL alphabet and missing padding are all met
    text = _BLANKS.sub("", unquote_to_bytes(text).decode("ascii", "replace"))
    text = text.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return pybase64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:
        raise UnreadableFile(f"{where} is no valid base64; the glTF file is damaged, export it again") from None
