"""Weights of jobs: the memory and the processor cores that a job needs, by format and size of its files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import NamedTuple

from meshhub.model.capabilities import Format
from meshhub.pipeline.declarations import Declarations
from meshhub.service.jobs.job import JobFile

DEFAULT_MEMORY_BYTES = 512 << 20
"""Bytes of memory of a job of unknown size."""

DEFAULT_CORES = 1
"""Processor cores of a job, because a conversion uses one thread, and a batch converts one file after the other."""

MAX_MEMORY_BYTES = 6 << 30
"""Maximum bytes of memory of a conversion by default; a job cannot use more."""

_ARCHIVE = Format(id="zip", label="ZIP", extensions=(".zip",), memory_base_bytes=256 << 20, memory_ratio=60)
"""Archive of models, which counts as the heaviest format, because its names are not read yet."""

_UNKNOWN = Format(id="unknown", label="Unknown", extensions=(".unknown",))
"""File whose extension no format has."""


class Demand(NamedTuple):
    """What a job needs.

    Attributes:
        memory_bytes: Bytes of memory.
        cores: Processor cores; each takes a slot.
    """

    memory_bytes: int
    cores: int


def estimate_demand(files: Iterable[JobFile], declarations: Declarations) -> Demand:
    """Return what a job needs for its most demanding file, because files run one after the other."""
    formats = [(_find_format(file, declarations), file.bytes) for file in files]
    return Demand(
        max((_estimate_memory(format_, size) for format_, size in formats), default=DEFAULT_MEMORY_BYTES),
        max((format_.cores for format_, _ in formats), default=DEFAULT_CORES),
    )


def _estimate_memory(format_: Format, size_bytes: int) -> int:
    return min(MAX_MEMORY_BYTES, format_.memory_base_bytes + int(format_.memory_ratio * size_bytes))


def _find_format(file: JobFile, declarations: Declarations) -> Format:
    extension = PurePosixPath(file.name).suffix.lower()
    if extension in _ARCHIVE.extensions:
        return _ARCHIVE
    return declarations.format_of(extension) or _UNKNOWN
