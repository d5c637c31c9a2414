"""Weights of jobs: the memory and the processor cores that a job needs, by format and size of its files."""

from __future__ import annotations

from collections.abc import Sequence
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
"""Maximum bytes of memory of a conversion by default."""

_ARCHIVE_EXTENSION = ".zip"
"""Archive of models. The names inside are not read yet, so it needs the memory of the heaviest format."""

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


def estimate_demand(
    files: Sequence[JobFile],
    declarations: Declarations,
    *,
    are_combined: bool = False,
    memory_factor: float = 1.0,
    max_memory_bytes: int = MAX_MEMORY_BYTES,
) -> Demand:
    """Return what a job needs for its most demanding file, because files run one after the other.

    Args:
        files: Files of the job.
        declarations: Formats of the files.
        are_combined: Whether all are in memory together; the most demanding file then counts with the bytes of all.
        memory_factor: Memory of what runs, in multiples of that of a conversion.
        max_memory_bytes: Maximum memory of a conversion.
    """
    if are_combined:
        size_bytes = sum(file.bytes for file in files)
        files = [JobFile(file.name, size_bytes) for file in files]
    demands = [_estimate_file(file, declarations, memory_factor) for file in files]
    return Demand(
        min(max_memory_bytes, max((demand.memory_bytes for demand in demands), default=DEFAULT_MEMORY_BYTES)),
        max((demand.cores for demand in demands), default=DEFAULT_CORES),
    )


def _estimate_file(file: JobFile, declarations: Declarations, factor: float) -> Demand:
    extension = PurePosixPath(file.name).suffix.lower()
    if extension == _ARCHIVE_EXTENSION:
        formats = (_UNKNOWN, *(reader.capability.format for reader in declarations.readers))
        # one core: a job with too few is slow, while a job with too little memory fails
        return Demand(max(_estimate_memory(format_, file.bytes, factor) for format_ in formats), DEFAULT_CORES)
    format_ = declarations.format_of(extension) or _UNKNOWN
    return Demand(_estimate_memory(format_, file.bytes, factor), format_.cores)


def _estimate_memory(format_: Format, size_bytes: int, factor: float) -> int:
    return format_.memory_base_bytes + int(factor * format_.memory_ratio * size_bytes)
