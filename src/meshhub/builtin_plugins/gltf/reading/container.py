"""Split the bytes of a file into its JSON document and, in a GLB, its binary chunk."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

import msgspec

from meshhub.builtin_plugins.gltf.reading.json_object import JsonObject
from meshhub.errors import CUT_OFF, OTHER_KIND, OTHER_VERSION, UnreadableFile, quote
from meshhub.model.notes import note

_JSON_CHUNK = 0x4E4F534A
_BIN_CHUNK = 0x004E4942
_BIN_CHUNK_TYPE = _BIN_CHUNK.to_bytes(4, "little")
_HEADER = struct.Struct("<4sII")
_CHUNK_HEADER = struct.Struct("<II")
_VERSION = re.compile(r"\s*(\d{1,4})(\.\d{1,4})?\s*")


def unpack(data: bytes) -> tuple[JsonObject, memoryview | None]:
    """Return the JSON document, and the binary chunk if the file has one.

    Raises:
        UnreadableFile: The file is not glTF 2, or it is damaged.
    """
    binary_chunk: memoryview | None = None
    text: bytes | memoryview = data
    if data[:4] == b"glTF":
        text, binary_chunk = _split_chunks(data)
    document = JsonObject(_decode_document(bytes(text)), "")
    _check_version(document)
    return document, binary_chunk


def _split_chunks(data: bytes) -> tuple[memoryview, memoryview | None]:
    """Return the JSON chunk and the binary chunk of a GLB (glTF 2.0 §4.4).

    Wrong lengths only cause a note if the bytes exist.
    """
    _check_header(data)
    chunks = _iterate_chunks(data)
    kind, text, size = next(chunks, (_JSON_CHUNK, None, 0))
    if text is None:
        raise UnreadableFile("the GLB has no JSON chunk; the file was cut short, use a complete copy", values=CUT_OFF)
    if kind != _JSON_CHUNK:
        raise UnreadableFile("the first chunk of the GLB is not JSON; the file is damaged, export it again")
    if len(text) < size:
        raise UnreadableFile(
            "the GLB ends within its JSON chunk; the file was cut short, use a complete copy", values=CUT_OFF
        )
    # §4.4.3: chunks of unknown types are to be ignored
    for kind, content, size in chunks:
        if kind == _BIN_CHUNK:
            if len(content) < size:
                note(
                    "file_cut_short",
                    f"the binary chunk of the GLB has {len(content)} of its {size} bytes",
                    declared=size,
                    size=len(content),
                )
            return text, content
    return text, None


def _check_header(data: bytes) -> None:
    if len(data) < _HEADER.size:
        raise UnreadableFile(
            "the GLB ends within its header of 12 bytes; the file was cut short, use a complete copy", values=CUT_OFF
        )
    _, version, length = _HEADER.unpack_from(data)
    if version == 1:
        raise UnreadableFile(
            _GLTF_1.format(evidence="a binary file of version 1, KHR_binary_glTF"), values=OTHER_VERSION
        )
    if version != 2:
        raise UnreadableFile(
            f"the GLB has version {version}, but only version 2 is supported; export it as glTF 2.0",
            values=OTHER_VERSION,
        )
    if length != len(data):
        note(
            "length_mismatch",
            f"the header of the GLB states {length} bytes, but the file has {len(data)}",
            declared=length,
            size=len(data),
        )


def _iterate_chunks(data: bytes) -> Iterator[tuple[int, memoryview, int]]:
    """Yield the type, the bytes and the stated length of each chunk; the last one may be cut short."""
    view = memoryview(data)
    offset = _HEADER.size
    while offset + _CHUNK_HEADER.size <= len(data):
        size, kind = _CHUNK_HEADER.unpack_from(data, offset)
        offset += _CHUNK_HEADER.size
        yield kind, view[offset : offset + size], size
        offset = _find_next_chunk(data, offset + size, -size % 4)


def _find_next_chunk(data: bytes, end: int, padding: int) -> int:
    """Return where the chunk after the one that ends at `end` starts: after the padding of §4.4.3, or without padding.

    Both occur among exporters that state the unpadded length. The type of the binary chunk cannot match at both
    offsets, since no two of its bytes are equal. Before a chunk of another type, the padding is blank or missing.
    """
    padded = end + padding
    types = [data[start + 4 : start + _CHUNK_HEADER.size] for start in (end, padded)]
    is_blank = not data[end:padded].strip(b" \0")
    return padded if types[1] == _BIN_CHUNK_TYPE or (is_blank and types[0] != _BIN_CHUNK_TYPE) else end


def _decode_document(text: bytes) -> dict[str, object]:
    text = text.removeprefix(b"\xef\xbb\xbf").rstrip(b"\0 \t\r\n")
    try:
        value = _decode_json(text)
    except UnicodeDecodeError:
        # only names can have other characters than ASCII, and a wrong name does not affect geometry
        value = _decode_json(text.decode("utf-8", "replace").encode())
    if not isinstance(value, dict):
        raise UnreadableFile(
            "the document is not a JSON object; this is not a glTF file, export it as glTF 2.0", values=OTHER_KIND
        )
    return value


def _decode_json(text: bytes) -> object:
    """Decode JSON. Raise UnicodeDecodeError for text that is not UTF-8, UnreadableFile for malformed JSON."""
    try:
        return msgspec.json.decode(text)
    except UnicodeDecodeError:
        raise
    except RecursionError:
        raise UnreadableFile("the JSON of the glTF file is nested too deeply; export it again") from None
    except (msgspec.DecodeError, ValueError) as error:
        if "utf-8" in str(error).lower():
            raise UnicodeDecodeError("utf-8", b"", 0, 1, "invalid") from None
        # as msgspec says it
        values = CUT_OFF if "truncated" in str(error) else None
        raise UnreadableFile(
            f"the JSON of the glTF file is malformed ({error}); export it again", values=values
        ) from None


_GLTF_1 = (
    "the file is glTF 1.0 ({evidence}), which is not supported; "
    "convert it with `gltf-pipeline -i old.gltf -o new.glb`, or export it again as glTF 2.0"
)


def _check_version(document: JsonObject) -> None:
    asset = document.child("asset")
    version = None if asset is None else asset.data.get("version")
    match = _VERSION.match(str(version)) if isinstance(version, str | int | float) else None
    if match and int(match[1]) < 2:
        raise UnreadableFile(_GLTF_1.format(evidence=f"asset.version is {quote(str(version))}"), values=OTHER_VERSION)
    if asset is None and any(isinstance(document.data.get(key), dict) for key in ("meshes", "accessors", "nodes")):
        raise UnreadableFile(_GLTF_1.format(evidence="meshes, accessors or nodes are objects"), values=OTHER_VERSION)
    if match and int(match[1]) > 2:
        raise UnreadableFile(
            f"asset.version is {quote(str(version))}, but only glTF 2 is supported; export it as 2.0",
            values=OTHER_VERSION,
        )
    min_version = None if asset is None else asset.data.get("minVersion")
    if isinstance(min_version, str) and min_version not in ("2.0", "2", ""):
        note(
            "newer_version",
            f"the file requires glTF {quote(min_version)}; it was read as glTF 2.0",
            version=quote(min_version),
        )
