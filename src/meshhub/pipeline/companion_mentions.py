"""Names of other files that a model mentions: an OBJ mentions its .mtl, which mentions textures."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from urllib.parse import unquote

COMPANION_EXTENSIONS = frozenset(
    ".mtl .bin .png .jpg .jpeg .webp .bmp .gif .tga .tif .tiff .ktx2 .dds".split(),
)
"""Extensions of materials, buffers and images. Other models in the folder are not companions, however large the folder
is.
"""

_MAX_LISTED_COUNT = 10_000
"""Maximum files to list in the folder of a model and below, because it may be the home of a user."""

_CHUNK_BYTES = 1 << 20
"""Bytes of a file to search at a time."""

_MAX_NAME_BYTES = 600
"""Maximum bytes of a mentioned name, percent-encoded or in JSON escapes."""

MAX_HIT_COUNT = 5_000
"""Occurrences of an extension to examine in one file."""

_MAX_EXTENSION_COUNT = 32
"""Maximum different extensions to search for, because each one needs a pass over every file."""

_NAME_DELIMITER = re.compile(r"[\s\"'=<>,;:()\[\]{}]")


def find_companions(model: Path, extensions: frozenset[str] = COMPANION_EXTENSIONS) -> dict[str, Path]:
    """Return the files beside a model and below that it or another companion mentions, by their relative names."""
    if not has_mention(model, extensions):
        return {}
    listed: dict[str, dict[str, Path]] = {}
    for path in itertools.islice(_list_files(model.parent), _MAX_LISTED_COUNT):
        if extension_of(path.name) in extensions:
            listed.setdefault(base_name(path.name), {})[path.relative_to(model.parent).as_posix()] = path
    companions: dict[str, Path] = {}
    unread = [model]
    while unread:
        mentions, _ = find_mentions(unread.pop(), listed, MAX_HIT_COUNT)
        for mention in sorted(mentions):
            files = listed.pop(mention)
            companions |= files
            unread += files.values()
    return companions


def _list_files(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder and below; links may lead out of it."""
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            if not path.is_symlink():
                yield path


def find_mentions(path: Path, names: Collection[str], max_hits: int) -> tuple[set[str], int]:
    """Search a file for file names.

    The search looks for the extensions of the names, which is fast even in long runs of numbers, and then examines the
    text before each match.

    Args:
        names: File names without folders, case-folded.
        max_hits: Occurrences of an extension to examine.
    Returns:
        Names that occur, and the number of occurrences examined.
    """
    extensions = sorted({extension_of(name) for name in names} - {""})[:_MAX_EXTENSION_COUNT]
    lengths = frozenset(map(len, names))
    mentions: set[str] = set()
    hit_count = 0
    for window in _windows(path):
        for extension in map(str.encode, extensions):
            start = window.find(extension)
            while start >= 0:
                end = start + len(extension)
                mentions |= _names_at_end(window[max(0, end - _MAX_NAME_BYTES) : end], names, lengths)
                hit_count += 1
                if hit_count >= max_hits or len(mentions) == len(names):
                    return mentions, hit_count
                start = window.find(extension, end)
    return mentions, hit_count


def has_mention(path: Path, extensions: Collection[str]) -> bool:
    """Return whether one of the extensions occurs in a file in the way it would in a file name."""
    spellings = [extension.encode() for extension in extensions]
    return any(spelling in window for window in _windows(path) for spelling in spellings)


def _windows(path: Path) -> Iterator[bytes]:
    """Read a file in lower case, in windows that overlap by more than the length of a name."""
    with path.open("rb") as file:
        overlap = b""
        while chunk := file.read(_CHUNK_BYTES).lower():
            yield overlap + chunk
            overlap = chunk[-_MAX_NAME_BYTES:]


def _names_at_end(window: bytes, names: Collection[str], lengths: frozenset[int]) -> set[str]:
    text = window.decode("utf-8", "ignore")
    if "\\u" in text:
        text = re.sub(r"\\u[0-9a-f]{4}", lambda match: chr(int(match[0][2:], 16)), text)
    matches = set()
    for spelling in {text, unquote(text)}:
        last = spelling.replace("\\", "/").rpartition("/")[2].casefold()
        for length in lengths:
            start = len(last) - length
            is_delimited = start == 0 or (start > 0 and _NAME_DELIMITER.match(last, start - 1))
            if is_delimited and last[start:] in names:
                matches.add(last[start:])
    return matches


def base_name(name: str) -> str:
    """Return the last component of a path with slashes, case-folded."""
    return name.rpartition("/")[2].casefold()


def extension_of(name: str) -> str:
    """Return the last extension of a path with slashes, case-folded and with the dot; "" for none."""
    base = base_name(name)
    before, dot, after = base.rpartition(".")
    return dot + after if dot and before else ""
