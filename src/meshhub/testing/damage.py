"""Files that are damaged: cut off, garbled, random, or made to take long. Always the same ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from meshhub.model.capabilities import Magic
from meshhub.model.source import HEAD_BYTES

_CUTS = 600
"""Cut at every byte up to so many; longer files at every byte of both ends and evenly between."""

_GARBLED = 60


_RUNS = (30, 1000, HEAD_BYTES)
"""Repeats: so few make a nested repeat take for ever, and so many one that is only tried from every place."""

_PLACES = 40
"""Places of a sample at which something is repeated: those at the beginning, where sniffers look."""

_LETTERS = b"aA0 \n\t.,-_#/\"'<({[\0\xff"
_WORDS = (b"a ", b"a\n", b"0 ", b"-1.0 ", b"a.", b"a,", b"a=b ", b"()", b"<a>", b"/*", b"# a\n", b"\r\n")

_MISMATCH = b"\0!"
"""What follows a run, so that a pattern that has taken all of it fails and tries again with less."""


def slow_heads(samples: Sequence[bytes], magic: Sequence[Magic]) -> Iterator[tuple[str, bytes]]:
    """Heads that hold up a bad regular expression: runs and repeats after each beginning, samples that nearly match."""
    begins = [("", b""), *((f" after the magic {one.data!r}", bytes(one.offset) + one.data) for one in magic)]
    for number, sample in enumerate(samples):
        where = f" in sample {number}"
        for place in range(min(len(sample), _PLACES)):
            yield from _repeated(sample[place : place + 1], f"{where} at byte {place}", sample[:place])
            yield from _repeated(b"a", f"{where} at byte {place}", sample[:place])
        for word in list(re.finditer(rb"\S+\s*", sample[:2000]))[:_PLACES]:
            yield from _repeated(word.group(), f"{where} at byte {word.start()}", sample[: word.start()])
        for line in list(re.finditer(rb"[^\n]*\n", sample[:2000]))[:_PLACES]:
            yield from _repeated(line.group(), f"{where} at byte {line.start()}", sample[: line.start()])
        yield f"sample {number} with another last byte", sample[:-1] + _MISMATCH
    for where, begin in begins:
        for repeat in (*(bytes([letter]) for letter in _LETTERS), *_WORDS):
            yield from _repeated(repeat, where, begin)


def _repeated(word: bytes, where: str, begin: bytes) -> Iterator[tuple[str, bytes]]:
    for count in _RUNS:
        head = (begin + word * count)[: HEAD_BYTES - len(_MISMATCH)] + _MISMATCH
        yield f"{word[:40]!r} repeated {count} times{where}", head


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
