"""Weights of jobs: the memory and the processor cores that a job needs, by format and size of its files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import NamedTuple

from meshhub.service.jobs.job import JobFile

DEFAULT_MEMORY_BYTES = 512 << 20
"""Bytes of memory of a job of unknown size."""

DEFAULT_CORES = 1
"""Processor cores of a job: a conversion uses one thread, and a batch converts one file after the other."""

MAX_MEMORY_BYTES = 6 << 30
"""Bytes of memory that a conversion may take by default; a job cannot use more."""


class Weight(NamedTuple):
    """Memory and processor cores of a class of jobs.

    Attributes:
        base_bytes: Memory of a tiny file, with the libraries.
        ratio: Bytes of memory for each byte of a file.
        cores: Cores, each of which takes a slot.
    """

    base_bytes: int
    ratio: float
    cores: int = DEFAULT_CORES


_WEIGHTS = {
    "stl": Weight(256 << 20, 12),
    "obj": Weight(256 << 20, 12),
    "ply": Weight(256 << 20, 16),
    "glb": Weight(256 << 20, 20),
    "gltf": Weight(256 << 20, 20),
    "3mf": Weight(256 << 20, 60),
    "zip": Weight(256 << 20, 60),
    "step": Weight(512 << 20, 25),
    "stp": Weight(512 << 20, 25),
}
"""Weights by extension: estimates that leave room for repair and reduction, above the peaks of plain conversions."""

_OTHER = Weight(512 << 20, 25)
"""Weight of other formats."""


def estimate_memory(files: Iterable[JobFile]) -> int:
    """Return the bytes of memory that a job needs: those of its largest file, because files run one after the other."""
    return max(map(_estimate, files), default=DEFAULT_MEMORY_BYTES)


def estimate_cores(files: Iterable[JobFile]) -> int:
    """Return the processor cores that a job needs: those of its most demanding file."""
    return max((_find_weight(file).cores for file in files), default=DEFAULT_CORES)


def _estimate(file: JobFile) -> int:
    weight = _find_weight(file)
    return min(MAX_MEMORY_BYTES, weight.base_bytes + int(weight.ratio * file.bytes))


def _find_weight(file: JobFile) -> Weight:
    return _WEIGHTS.get(PurePosixPath(file.name).suffix.lower().removeprefix("."), _OTHER)
