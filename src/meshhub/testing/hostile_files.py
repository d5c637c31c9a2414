"""Hostile files for readers and sniffers: truncated, corrupted, random, or slow to match. Deterministic."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from meshhub.model.capabilities import Magic
from meshhub.model.source import HEAD_BYTES

_MAX_CUTS_COUNT = 600
"""Lengths to which a file is truncated; a longer file is cut near both ends and evenly in between. """

_CORRUPTED_COUNT = 60
"""Corrupted copies per file: enough to hit headers and bodies, few enough for slow readers."""

_REPEAT_COUNTS = (30, 1000, HEAD_BYTES)
"""Repetitions: 30 expose nested repeats, which take exponential time; more expose searches that take quadratic time.
"""

_MAX_POSITIONS_COUNT = 40
"""Maximum positions in a sample at which something is repeated; sniffers read only the first bytes."""

_LETTERS = b"aA0 \n\t.,-_#/\"'<({[\0\xff"
_WORDS = (b"a ", b"a\n", b"0 ", b"-1.0 ", b"a.", b"a,", b"a=b ", b"()", b"<a>", b"/*", b"# a\n", b"\r\n")

_MISMATCH = b"\0!"
"""Ending of each head: a pattern that has matched all repetitions fails here and backtracks."""


def slow_heads(samples: Sequence[bytes], magic: Sequence[Magic]) -> Iterator[tuple[str, bytes]]:
    """Yield heads of files that slow down a bad regular expression.

    Args:
        samples: Heads of valid files.
        magic: Magic bytes of the format.
    Yields:
        Description and head: runs and repeats after each beginning, and samples that nearly match.
    """
    for number, sample in enumerate(samples):
        where = f" in sample {number}"
        for position in range(min(len(sample), _MAX_POSITIONS_COUNT)):
            yield from _repeat(sample[position : position + 1], f"{where} at byte {position}", sample[:position])
            yield from _repeat(b"a", f"{where} at byte {position}", sample[:position])
        for pattern in (rb"\S+\s*", rb"[^\n]*\n"):
            for match in list(re.finditer(pattern, sample[:2000]))[:_MAX_POSITIONS_COUNT]:
                yield from _repeat(match.group(), f"{where} at byte {match.start()}", sample[: match.start()])
        yield f"sample {number} with another last byte", sample[:-1] + _MISMATCH
    beginnings = [("", b""), *((f" after the magic {each.data!r}", bytes(each.offset) + each.data) for each in magic)]
    for where, beginning in beginnings:
        for word in (*(bytes([letter]) for letter in _LETTERS), *_WORDS):
            yield from _repeat(word, where, beginning)


def _repeat(word: bytes, where: str, beginning: bytes) -> Iterator[tuple[str, bytes]]:
    for count in _REPEAT_COUNTS:
        head = (beginning + word * count)[: HEAD_BYTES - len(_MISMATCH)] + _MISMATCH
        yield f"{word[:40]!r} repeated {count} times{where}", head


def truncated_files(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield description and content of a file truncated to many lengths, from empty to all but one byte."""
    length = len(data)
    if length <= _MAX_CUTS_COUNT:
        cuts = list(range(length))
    else:
        third = _MAX_CUTS_COUNT // 3
        between = np.linspace(third, length - third, third, endpoint=False).astype(int).tolist()
        cuts = [*range(third), *between, *range(length - third, length)]
    for cut in cuts:
        yield f"cut off after {cut} of {length} bytes", data[:cut]


def random_files() -> Iterator[tuple[str, bytes]]:
    """Yield description and content of files of random bytes, letters and digits in several lengths."""
    random = np.random.default_rng(1)
    for alphabet, letters in (
        ("bytes", np.arange(256)),
        ("letters", np.frombuffer(b" \n\tabcxyzABCXYZ<>/{}\"'", np.uint8)),
        ("digits", np.frombuffer(b" \n0123456789.-e#", np.uint8)),
    ):
        for length in (1, 7, 83, 84, 1000, 20_000):
            yield f"{length} random {alphabet}", random.choice(letters, length).astype(np.uint8).tobytes()


def corrupted_files(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield description and content of copies with some changed bytes, and of copies that are random after the head."""
    random = np.random.default_rng(2)
    original = np.frombuffer(data, np.uint8)
    for number in range(_CORRUPTED_COUNT):
        changed = original.copy()
        positions = random.integers(0, len(original), 1 + number % 8)
        changed[positions] = random.integers(0, 256, len(positions))
        yield f"with other bytes at {sorted(positions.tolist())}", changed.tobytes()
    for length in (4, 8, 20, 84):
        noise = random.integers(0, 256, 2000).astype(np.uint8).tobytes()
        yield f"random after the first {length} bytes", data[:length] + noise
