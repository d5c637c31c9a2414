"""Files that are damaged: cut off, garbled, random. Always the same ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

_CUTS = 600
"""Cut at every byte up to so many; longer files at every byte of both ends and evenly between."""

_GARBLED = 60


def cut_off(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The file cut at every boundary, from nothing to all but one byte."""
    length = len(data)
    if length <= _CUTS:
        places = list(range(length))
    else:
        third = _CUTS // 3
        between = np.linspace(third, length - third, third, endpoint=False).astype(int).tolist()
        places = [*range(third), *between, *range(length - third, length)]
    for place in places:
        yield f"cut off after {place} of {length} bytes", data[:place]


def random_bytes() -> Iterator[tuple[str, bytes]]:
    """Random bytes, random letters, random digits, of several lengths."""
    random = np.random.default_rng(1)
    for alphabet, letters in (
        ("bytes", np.arange(256)),
        ("letters", np.frombuffer(b" \n\tabcxyzABCXYZ<>/{}\"'", np.uint8)),
        ("digits", np.frombuffer(b" \n0123456789.-e#", np.uint8)),
    ):
        for length in (1, 7, 83, 84, 1000, 20_000):
            yield f"{length} random {alphabet}", random.choice(letters, length).astype(np.uint8).tobytes()


def garbled(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The file with some of its bytes changed, and with its beginning only."""
    random = np.random.default_rng(2)
    letters = np.frombuffer(data, np.uint8)
    for number in range(_GARBLED):
        changed = letters.copy()
        places = random.integers(0, len(letters), 1 + number % 8)
        changed[places] = random.integers(0, 256, len(places))
        yield f"with other bytes at {sorted(places.tolist())}", changed.tobytes()
    for length in (4, 8, 20, 84):
        noise = random.integers(0, 256, 2000).astype(np.uint8).tobytes()
        yield f"random after the first {length} bytes", data[:length] + noise
