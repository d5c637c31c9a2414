"""Memory that a job needs, by format and size of its files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from meshhub.model.capabilities import Format, Memory
from meshhub.pipeline.declarations import Declarations
from meshhub.service.jobs.job import JobFile

DEFAULT_MEMORY_BYTES = 512 << 20
"""Bytes of memory of a job of unknown size."""

MAX_MEMORY_BYTES = 6 << 30
"""Maximum bytes of memory of a conversion by default."""

_ARCHIVE_EXTENSION = ".zip"
"""Archive of models. The names inside are not read yet, so it needs the memory of the heaviest format."""

_UNKNOWN = Format(id="unknown", label="Unknown", extensions=(".unknown",))
"""File whose extension no format has."""


CONVERSION = Memory()
"""Memory of a conversion without operations."""


def estimate_memory(
    files: Sequence[JobFile],
    declarations: Declarations,
    *,
    are_combined: bool = False,
    memory: Memory = CONVERSION,
    max_memory_bytes: int = MAX_MEMORY_BYTES,
) -> int:
    """Return the bytes of memory for the most demanding file of a job, because files run one after the other.

    Args:
        files: Files of the job.
        declarations: Formats of the files.
        are_combined: Whether all are in memory together; the most demanding file then counts with the bytes of all.
        memory: Memory of what runs beyond that of a conversion.
        max_memory_bytes: Maximum memory of a conversion.
    """
    total = sum(file.bytes for file in files)
    estimates = (
        _estimate_file(file.name, total if are_combined else file.bytes, declarations, memory) for file in files
    )
    return min(max_memory_bytes, max(estimates, default=DEFAULT_MEMORY_BYTES))


def _estimate_file(name: str, size_bytes: int, declarations: Declarations, memory: Memory) -> int:
    extension = PurePosixPath(name).suffix.lower()
    if extension == _ARCHIVE_EXTENSION:
        formats = [_UNKNOWN, *(reader.capability.format for reader in declarations.readers)]
    else:
        formats = [declarations.format_of(extension) or _UNKNOWN]
    return memory.base_bytes + max(
        format_.memory_base_bytes + int(memory.factor * format_.memory_ratio * size_bytes) for format_ in formats
    )
