"""Inputs of a conversion: a path, an address, bytes, a binary file, a scene, or a source."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, BinaryIO, TypeAlias, TypeGuard, Union

from meshhub.model.source import Source
from meshhub.pipeline.program_scenes import SceneSource
from meshhub.pipeline.storages import Storages, fetched, is_address

if TYPE_CHECKING:
    from meshhub.model.scene import Scene

Input: TypeAlias = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, BinaryIO, "Scene", Source]
"""Path, address of a storage (text), content of a file, binary file, scene, or source."""

Inputs: TypeAlias = Input | Sequence[Input]
"""An input, or several that become one scene; text and bytes are one input."""


@contextlib.contextmanager
def open_input(value: Input, storages: Storages) -> Iterator[Source]:
    """Yield the source for an input; text such as s3://bucket/key is fetched from its storage.

    Raises:
        TypeError, OSError, UnreadableFile: See `as_source`.
        RequestError, MeshhubError: See `pipeline.storages.fetched`.
    """
    if is_address(value):
        with fetched(value, storages) as source:
            yield source
    else:
        yield as_source(value)


def as_source(value: Input) -> Source:
    """Return the source for an input.

    Bytes have no name, so their content alone determines the format. A binary file is read from its current position;
    the extension of its name, if it has one, is considered. To pass companions, use `Source.from_bytes`.

    Raises:
        TypeError: The value has another type.
        OSError, UnreadableFile: See `Source.from_path`.
    """
    if isinstance(value, Source):
        return value
    if isinstance(value, str | os.PathLike):
        return Source.from_path(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return Source.from_bytes(bytes(value), "model")
    if is_scene(value):
        return SceneSource(value)
    if hasattr(value, "read"):
        content = value.read()
        if isinstance(content, bytes):
            name = getattr(value, "name", None)
            return Source.from_bytes(content, PurePath(name).name if isinstance(name, str) else "model")
        raise TypeError("the file is open in text mode; open it with mode 'rb'")
    raise TypeError(f"a model must be a path, bytes, a binary file, a Scene or a Source, not {type(value).__name__}")


def is_several(value: Inputs) -> TypeGuard[Sequence[Input]]:
    """Return whether a program passes several inputs."""
    return isinstance(value, list | tuple)


def is_scene(value: object) -> TypeGuard[Scene]:
    """Return whether a value is a scene, without importing numpy for programs that have none."""
    module = sys.modules.get("meshhub.model.scene")
    return module is not None and isinstance(value, module.Scene)
