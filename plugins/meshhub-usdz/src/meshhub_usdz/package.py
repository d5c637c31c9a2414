"""USD packages: unpack them to a folder in which no layer refers to a file outside, and pack new ones."""

from __future__ import annotations

import posixpath
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from meshhub import ExternalReference, Source, UnreadableFile
from meshhub.toolkit.archive import Archive
from meshhub_usdz.sniff import LAYER_EXTENSIONS

_ALIGNMENT_BYTES = 64
"""Position of the data of each file is a multiple of this (USDZ specification, "Layout")."""

_MAX_LAYERS_COUNT = 1000
"""Maximum layers of a package; each is opened."""

_LOCAL = struct.Struct("<4s5H3L2H")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_MARK = b"meshhub"
"""Content of the padding, by which meshhub recognizes its results; readers skip it."""

_VERSION, _DOS_DATE, _PADDING_ID = 20, 33, 0x1986
"""ZIP 2.0; 1980-01-01, so that the same scene gives the same bytes; id of the field that OpenUSD uses for padding."""


def unpack(source: Source, folder: Path) -> Path:
    """Write the files of a package, or a single layer, to a folder.

    Returns:
        Root layer.
    Raises:
        UnreadableFile: The archive is damaged, or has no layer.
        UnsafeArchive: The archive exceeds a limit.
        ExternalReference: A layer refers to a layer outside.
    """
    if not source.head(4).startswith(b"PK\3\4"):
        # the extension selects the parser; ".usd" detects text and binary
        root = folder / "model.usd"
        root.write_bytes(source.read())
        _check_layers([root], folder)
        return root
    layers: list[Path] = []
    with Archive(source.read()) as archive:
        for entry in archive.entries:
            path = folder / entry.name
            path.parent.mkdir(parents=True, exist_ok=True)
            archive.extract(entry.name, path)
            if path.suffix.lower() in LAYER_EXTENSIONS:
                layers.append(path)
    if not layers:
        raise UnreadableFile("the package has no USD layer; check the format of the file")
    _check_layers(layers, folder)
    return layers[0]


def _check_layers(layers: list[Path], folder: Path) -> None:
    """Raise ExternalReference if a layer refers to a layer outside of the folder, before a stage opens it."""
    from pxr import Sdf, Tf

    if len(layers) > _MAX_LAYERS_COUNT:
        raise UnreadableFile(f"the package has {len(layers)} layers, more than {_MAX_LAYERS_COUNT}; flatten it")
    for path in layers:
        try:
            layer = Sdf.Layer.OpenAsAnonymous(str(path))
        except Tf.ErrorException:
            layer = None
        if layer is None:
            raise UnreadableFile(f"layer {path.name[:40]!r} is damaged or not USD; export the model again")
        inside = posixpath.dirname(path.relative_to(folder).as_posix())
        for reference in filter(None, layer.GetCompositionAssetDependencies()):  # "" is the layer itself
            _check_reference(reference, inside, folder)
        _check_clips(layer)


def _check_reference(reference: str, inside: str, folder: Path) -> None:
    path = posixpath.normpath(posixpath.join(inside, reference.replace("\\", "/")))
    is_outside = path.startswith(("/", "..")) or any(mark in reference for mark in ":[`")
    if is_outside or not (folder / path).is_file():
        raise ExternalReference(
            f"the file refers to the layer {reference[:60]!r}, which is not in it; flatten the model to one USDZ file"
        )


def _check_clips(layer: Any) -> None:
    """Raise ExternalReference for value clips, which name layers that are opened later."""
    has_clips = False

    def visit(path: Any) -> None:
        nonlocal has_clips
        spec = layer.GetPrimAtPath(path) if path.IsPrimPath() or path.IsPrimVariantSelectionPath() else None
        has_clips = has_clips or (spec is not None and spec.HasInfo("clips"))

    layer.Traverse("/", visit)
    if has_clips:
        raise ExternalReference("the file has value clips, which are separate layers; flatten the model")


def pack(files: Mapping[str, bytes]) -> bytes:
    """Return a package: stored files whose data is aligned (USDZ specification, "Layout").

    Args:
        files: Contents by name; the first is the root layer.
    """
    body = bytearray()
    directory = bytearray()
    for name, data in files.items():
        encoded = name.encode()
        offset = len(body)
        # an extra field of at least four bytes moves the data to an aligned position
        padding = -(offset + _LOCAL.size + len(encoded) + 4) % _ALIGNMENT_BYTES
        extra = struct.pack("<HH", _PADDING_ID, padding) + _MARK.ljust(padding, b"\0")[:padding]
        common = (_VERSION, 0, 0, 0, _DOS_DATE, zlib.crc32(data), len(data), len(data), len(encoded))
        body += _LOCAL.pack(b"PK\3\4", *common, len(extra)) + encoded + extra + data
        directory += _CENTRAL.pack(b"PK\1\2", _VERSION, *common, 0, 0, 0, 0, 0, offset) + encoded
    count = len(files)
    end = _END.pack(b"PK\5\6", 0, 0, count, count, len(directory), len(body), 0)
    return bytes(body + directory + end)
