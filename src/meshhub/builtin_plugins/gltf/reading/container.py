"""From a file's bytes to its JSON document and, in a GLB, its binary chunk."""

from __future__ import annotations

import re
import struct

import msgspec

from meshhub.builtin_plugins.gltf.reading.document import Item
from meshhub.errors import UnreadableFile
from meshhub.model.notes import note

_JSON = 0x4E4F534A
_BIN = 0x004E4942
_BIN_BYTES = _BIN.to_bytes(4, "little")
_HEADER = struct.Struct("<4sII")
_CHUNK = struct.Struct("<II")
_VERSION = re.compile(r"\s*(\d{1,4})(\.\d{1,4})?\s*")


def unpack(data: bytes) -> tuple[Item, memoryview | None]:
    """The document and the binary chunk, if there is one.

    Raises UnreadableFile for what is no glTF 2.
    """
    chunk: memoryview | None = None
    text: bytes | memoryview = data
    if data[:4] == b"glTF":
        text, chunk = _chunks(data)
    document = Item(_decoded(bytes(text)), "")
    _check_version(document)
    return document, chunk


def _chunks(data: bytes) -> tuple[memoryview, memoryview | None]:
    """glTF 2.0 §4.4: a 12-byte header, then chunks; wrong lengths are forgiven where the bytes are there."""
    if len(data) < _HEADER.size:
        raise UnreadableFile("the GLB ends within its header of 12 bytes; the file was cut short, send it again")
    _, version, length = _HEADER.unpack_from(data)
    if version == 1:
        raise UnreadableFile(_OLD.format(version="1.0 (a binary file of version 1, KHR_binary_glTF)"))
    if version != 2:
        raise UnreadableFile(f"the GLB says that it is of version {version}; versions 2 and no other can be read")
    if length != len(data):
        note("length_mismatch", f"the GLB says that it has {length} bytes, and it has {len(data)}")
    view = memoryview(data)
    text: memoryview | None = None
    offset = _HEADER.size
    while offset + _CHUNK.size <= len(data):
        size, kind = _CHUNK.unpack_from(data, offset)
        offset += _CHUNK.size
        content = view[offset : offset + size]
        if text is None:
            if kind != _JSON:
                raise UnreadableFile("the first chunk of the GLB is not JSON; the file is damaged, export it again")
            if len(content) < size:
                raise UnreadableFile("the GLB ends within its JSON; the file was cut short, send it again")
            text = content
        elif kind == _BIN:
            if len(content) < size:
                note("file_cut_short", f"the GLB's binary chunk should have {size} bytes and has {len(content)}")
            return text, content
        # chunks of other kinds are to be passed over, §4.4.3
        offset = _next_chunk(data, offset + size, -size % 4)
    if text is None:
        raise UnreadableFile("the GLB has no JSON chunk; the file was cut short, send it again")
    return text, None


def _next_chunk(data: bytes, end: int, padding: int) -> int:
    """Return where the chunk after one that ends at `end` starts: after its padding, as §4.4.3 has it, or without.

    Exporters that state the unpadded length write either. The binary chunk's type cannot stand at both offsets, since
    no two of its bytes are equal; before a chunk of another type, the padding is blank or not there.
    """
    padded = end + padding
    kinds = [data[start + 4 : start + _CHUNK.size] for start in (end, padded)]
    is_blank = not data[end:padded].strip(b" \0")
    return padded if kinds[1] == _BIN_BYTES or (is_blank and kinds[0] != _BIN_BYTES) else end


def _decoded(text: bytes) -> dict[str, object]:
    text = text.removeprefix(b"\xef\xbb\xbf").rstrip(b"\0 \t\r\n")
    try:
        value = _json(text)
    except UnicodeDecodeError:
        # names in another encoding hurt nothing
        value = _json(text.decode("utf-8", "replace").encode())
    if not isinstance(value, dict):
        raise UnreadableFile("the glTF document is not a JSON object; this is no glTF file")
    return value


def _json(text: bytes) -> object:
    try:
        return msgspec.json.decode(text)
    except UnicodeDecodeError:
        raise
    except RecursionError:
        raise UnreadableFile("the glTF file's JSON is nested too deeply") from None
    except (msgspec.DecodeError, ValueError) as error:
        if b"utf-8" in str(error).lower().encode():
            raise UnicodeDecodeError("utf-8", b"", 0, 1, "invalid") from None
        raise UnreadableFile(f"the glTF file's JSON cannot be read ({error}); the file is damaged") from None


_OLD = (
    "the file is glTF {version}, which is another format than glTF 2.0 and cannot be read; "
    "convert it with `gltf-pipeline -i old.gltf -o new.glb`, or export it again as glTF 2.0"
)


def _check_version(document: Item) -> None:
    asset = document.item("asset")
    version = None if asset is None else asset.data.get("version")
    said = _VERSION.match(str(version)) if isinstance(version, str | int | float) else None
    if said and int(said[1]) < 2:
        raise UnreadableFile(_OLD.format(version=f"1.0 (asset.version is {str(version)[:20]})"))
    if asset is None and any(isinstance(document.data.get(key), dict) for key in ("meshes", "accessors", "nodes")):
        raise UnreadableFile(_OLD.format(version="1.0 (meshes, accessors or nodes are objects)"))
    if said and int(said[1]) > 2:
        raise UnreadableFile(f"the file is glTF {str(version)[:20]}; versions 2.x and no other can be read")
    least = None if asset is None else asset.data.get("minVersion")
    if isinstance(least, str) and least not in ("2.0", "2", ""):
        note("newer_version", f"the file asks for glTF {least[:20]}, and is read as 2.0")
