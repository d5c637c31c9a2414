"""Bytes of a glTF file: the binary chunk, data URIs and companion files."""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

import pybase64

from meshhub.builtin_plugins.gltf.reading import meshopt
from meshhub.builtin_plugins.gltf.reading.json_object import JsonObject
from meshhub.errors import ExternalReference, ModelTooComplex, UnreadableFile
from meshhub.model.installing import describe_install
from meshhub.model.notes import note
from meshhub.model.source import Source

_MAX_ROWS_PER_BYTE_RATIO = 16
_MAX_FREE_ROWS_COUNT = 4_000_000
"""Maximum vertices and triangles beyond the ratio to the bytes of a file; bounds files that reuse their bytes."""

_BYTES_PER_ROW_RATIO = 8
"""Bytes of a decompressed view that count as one row."""

_MAX_LISTED_FILES_COUNT = 5
"""Missing files that the error message lists."""

MAX_URI_CHARACTERS_COUNT = 120
"""Characters of a URI in a message; file names are longer than other quoted values, and the caller needs the full name.
"""

_DATA_URI = re.compile(r"data:([^,]{0,200}),", re.IGNORECASE)
_WHITESPACE = re.compile(r"\s+")


class Buffers:
    """Buffers and buffer views of a document."""

    def __init__(self, document: JsonObject, binary_chunk: memoryview | None, source: Source) -> None:
        """Find every buffer.

        Raises:
            ExternalReference: A buffer is in a file that was not sent; the message names the file.
        """
        self._document = document
        self._source = source
        self._views: dict[int, memoryview] = {}
        self._companions: dict[str, bytes] = {}
        self._buffers = self._find_buffers(binary_chunk)
        self.size = sum(len(content) for content in self._buffers if content is not None)
        self._remaining_rows = self.size * _MAX_ROWS_PER_BYTE_RATIO + _MAX_FREE_ROWS_COUNT

    def load_uri(self, uri: str, path: str) -> bytes | None:
        """Return the bytes of a data URI or of a companion file; None if there is no such file.

        Args:
            path: JSON path of the URI, for the error message.
        Raises:
            UnreadableFile: The data URI is malformed.
        """
        if uri[:5].lower() == "data:":
            return _decode_data_uri(uri, path)
        companion = self._source.sibling(uri)
        if companion is None:
            return None
        # many spellings can name one file, which is kept only once
        key = str(companion.path or companion.name)
        if key not in self._companions:
            self._companions[key] = companion.read_binary()
        return self._companions[key]

    def spend(self, rows: int) -> None:
        """Count vertices, triangles or instances that are created.

        Raises:
            ModelTooComplex: The file produces too many items for its size.
        """
        self._remaining_rows -= rows
        if self._remaining_rows < 0:
            raise ModelTooComplex(
                "the glTF file reuses its bytes for far more triangles than they can hold; "
                "reduce the model before the export"
            )

    def view(self, index: int, referrer: str) -> tuple[memoryview, int | None]:
        """Return the decompressed bytes of a buffer view, and its stride in bytes if it states one."""
        view = self._document.entry("bufferViews", index, referrer)
        stride = view.integer_or_none("byteStride") or None
        if index not in self._views:
            self._views[index] = self._load_view(view)
        return self._views[index], stride

    def is_cut_short(self, index: int) -> bool:
        """Return whether a buffer view has fewer bytes than it states."""
        return len(self._views[index]) < self._document.entry("bufferViews", index, "").integer("byteLength")

    def _find_buffers(self, binary_chunk: memoryview | None) -> list[memoryview | None]:
        buffers: list[memoryview | None] = []
        missing: list[str] = []
        for index, buffer in enumerate(self._document.entries("buffers")):
            if buffer.data.get("uri") is None:
                buffers.append(binary_chunk if index == 0 else None)
                continue
            uri = buffer.text("uri")
            content = self.load_uri(uri, buffer.path_of("uri"))
            if content is not None:
                buffers.append(memoryview(content))
                continue
            missing.append(uri[:MAX_URI_CHARACTERS_COUNT])
            if len(missing) > _MAX_LISTED_FILES_COUNT:
                break
        if missing:
            more = " and more files" if len(missing) > _MAX_LISTED_FILES_COUNT else ""
            raise ExternalReference(
                f"the glTF file needs {', '.join(map(repr, missing[:_MAX_LISTED_FILES_COUNT]))}{more}; "
                "keep the files together or pack them in a ZIP archive, or save the model as .glb",
                values={"files": ", ".join(missing[:_MAX_LISTED_FILES_COUNT])},
            )
        return buffers

    def _load_view(self, view: JsonObject) -> memoryview:
        for name in meshopt.EXTENSIONS:
            compressed = view.extension(name)
            if compressed is None:
                continue
            if meshopt.is_available():
                content = meshopt.decode(compressed, self._slice(compressed))
                self.spend(len(content) // _BYTES_PER_ROW_RATIO)
                return content
            fallback = self._load_fallback(view)
            if fallback is None:
                raise UnreadableFile(
                    f"the model is compressed with {name}, whose decoder is not installed; "
                    f"run `{describe_install('meshhub[meshopt]')}`, or export the model uncompressed",
                    values={"extension": name},
                )
            return fallback
        return self._slice(view)

    def _load_fallback(self, view: JsonObject) -> memoryview | None:
        """Return the uncompressed bytes of a compressed view, if the file has them too."""
        index = view.integer("buffer")
        buffer = self._buffers[index] if index < len(self._buffers) else None
        return None if buffer is None else self._slice(view)

    def _slice(self, view: JsonObject) -> memoryview:
        index = view.integer("buffer")
        declaration = self._document.entry("buffers", index, view.path_of("buffer"))
        buffer = self._buffers[index]
        if buffer is None:
            declaration.reject("uri", "is missing, and the file has no binary chunk for it")
        offset = view.integer("byteOffset", 0)
        length = view.integer("byteLength")
        if offset + length > len(buffer):
            note("buffer_cut_short", f"{view.path} ends at byte {offset + length}, but its buffer has {len(buffer)}")
        return buffer[offset : offset + length]


def parse_media_type(uri: str) -> str:
    """Return the media type that a data URI states, or ""."""
    match = _DATA_URI.match(uri)
    return match[1].split(";")[0].strip().lower() if match else ""


def _decode_data_uri(uri: str, path: str) -> bytes:
    match = _DATA_URI.match(uri)
    if match is None:
        raise UnreadableFile(f"{path} is a data URI without data; the glTF file is damaged, export it again")
    if not match[1].lower().rstrip().endswith(";base64"):
        return unquote_to_bytes(uri[match.end() :])
    text = uri[match.end() :]
    try:
        return pybase64.b64decode(text, validate=True)
    except ValueError:
        pass
    # exporters write white space, percent-encoding, the URL-safe alphabet, and no padding
    text = _WHITESPACE.sub("", unquote_to_bytes(text).decode("ascii", "replace"))
    text = text.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return pybase64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:
        raise UnreadableFile(f"{path} is not valid base64; the glTF file is damaged, export it again") from None
