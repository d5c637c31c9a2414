"""Uploaded archives: models, companions of models, and files that are neither.

Files that operating systems add to archives are skipped. A file without a model's extension is a companion if a model
or another companion mentions its name: an OBJ mentions its .mtl, which mentions textures; a glTF mentions its buffers.
All other files fail with `unsupported_format`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from urllib.parse import unquote

from meshhub.errors import EmptyModel, MeshhubError, MissingDependency, UnreadableFile, UnsupportedFormat
from meshhub.http.errors import ServiceError
from meshhub.http.intake.conversion_requests import InputFile
from meshhub.http.intake.names import folder_label, label, stem
from meshhub.model.plans import Limits
from meshhub.model.source import Source
from meshhub.pipeline.declarations import Declarations
from meshhub.pipeline.identify import Sniff, identify
from meshhub.registry import Registry
from meshhub.toolkit.archive import Archive, ArchiveLimits, Entry, is_system_file

_UNLIMITED_BYTES = 1 << 40
_ARCHIVE_LIMITS = ArchiveLimits(
    # select_entries and _extract check sizes against the plan, with errors of their own
    max_total_bytes=_UNLIMITED_BYTES,
    max_entry_bytes=_UNLIMITED_BYTES,
    max_entries=2000,
    nested=False,
)

_CHUNK_BYTES = 1 << 20
"""Bytes of a file to search at a time."""

_MAX_NAME_BYTES = 600
"""Bytes of a mentioned name, percent-encoded or in JSON escapes."""

_MAX_HIT_COUNT = 5_000
"""Occurrences of an extension to examine in one file."""

_MAX_TOTAL_HIT_COUNT = 20_000
"""Occurrences to examine in all files of an archive; the sender chooses both the names and how often they occur."""

_MAX_EXTENSION_COUNT = 32
"""Different extensions to search for; each one needs a pass over every file."""

_NAME_DELIMITER = re.compile(r"[\s\"'=<>,;:()\[\]{}]")


def open_archive(path: Path) -> Archive:
    """Open an archive and check its directory. Raises EmptyModel, UnreadableFile, UnsafeArchive."""
    if path.stat().st_size == 0:
        raise EmptyModel("the archive is empty: it holds 0 bytes; pack and send it again")
    return Archive(path, _ARCHIVE_LIMITS)


def select_entries(archive: Archive, limits: Limits) -> list[Entry]:
    """Return the entries except files that operating systems add.

    Raises:
        ServiceError: The entries together exceed the plan's limit.
        EmptyModel: The archive has no entries.
    """
    entries = [entry for entry in archive.entries if not is_system_file(entry.name)]
    if not entries:
        raise EmptyModel("the archive holds no files; pack the models and send it again")
    total = sum(entry.size for entry in entries)
    if limits.request_bytes is not None and total > limits.request_bytes:
        raise ServiceError(
            f"the archive unpacks to {total} bytes; this plan allows {limits.request_bytes}: send fewer files "
            "at once, or use the key of a plan that allows more",
            code="archive_too_large",
        )
    return entries


def unpack(archive: Archive, entries: list[Entry], folder: Path, registry: Registry, limits: Limits) -> list[InputFile]:
    """Unpack an archive.

    Returns:
        Models in the order of the archive, and files that are neither model nor companion, with their rejection.
    Raises:
        ServiceError: There are too many models.
        UnsafeArchive: An entry cannot be unpacked safely.
    """
    readers = registry.declarations.readers
    extensions = {extension for reader in readers for extension in reader.capability.format.extensions}
    _check_model_count(sum(_extension(entry.name) in extensions for entry in entries), limits)
    paths, rejections = _extract_all(archive, entries, folder, limits)
    models = {name: path for name, path in paths.items() if _extension(name) in extensions}
    others = {name: path for name, path in paths.items() if name not in models}
    companions = _find_companions(models, others)
    sniff = registry.hooks.sniffing()
    for name, path in others.items():
        if name in companions:
            continue
        rejection = _check_content(Source(name, path=path), registry.declarations, sniff)
        if rejection is None:
            models[name] = path
        else:
            rejections[name] = rejection
    _check_model_count(len(models), limits)
    available = {name: path for name, path in others.items() if name not in models}
    return [
        InputFile(
            name=entry.name,
            folder=folder_label(entry.name),
            stem=stem(label(entry.name)),
            path=paths.get(entry.name, folder),
            companions=available,
            rejection=rejections.get(entry.name),
        )
        for entry in entries
        if entry.name in models or entry.name in rejections
    ]


def _extract_all(
    archive: Archive, entries: list[Entry], folder: Path, limits: Limits
) -> tuple[dict[str, Path], dict[str, MeshhubError]]:
    """Extract the entries; return paths by name, and the errors of entries that cannot be extracted."""
    paths: dict[str, Path] = {}
    rejections: dict[str, MeshhubError] = {}
    for number, entry in enumerate(entries):
        path = folder / f"unpacked-{number}"
        try:
            _extract(archive, entry, path, limits)
        except (UnreadableFile, ServiceError) as error:
            rejections[entry.name] = error
        else:
            paths[entry.name] = path
    return paths, rejections


def _check_content(source: Source, declarations: Declarations, sniff: Sniff) -> UnsupportedFormat | None:
    """Return the error for a file whose content is not a known format; other errors occur when it is converted."""
    try:
        identify(declarations, source, sniff=sniff)
    except UnsupportedFormat as error:
        return error
    except (EmptyModel, MissingDependency):
        pass
    return None


def _check_model_count(count: int, limits: Limits) -> None:
    limit = limits.max_batch_files
    if limit is not None and count > limit:
        raise ServiceError(
            f"the archive holds {count} models; this plan allows {limit} in one batch: send fewer at once, "
            "or use the key of a plan that allows more",
            code="too_many_files",
        )


def _extract(archive: Archive, entry: Entry, path: Path, limits: Limits) -> None:
    limit = limits.max_file_bytes
    if limit is not None and entry.size > limit:
        raise ServiceError(
            f"{entry.name[-80:]!r} unpacks to {entry.size} bytes; this plan allows {limit} for a file",
            code="file_too_large",
        )
    archive.extract(entry.name, path)


def _find_companions(models: dict[str, Path], others: dict[str, Path]) -> set[str]:
    """Return the files of `others` that models mention, directly or through another companion."""
    unmatched: dict[str, list[str]] = {}
    for name in others:
        unmatched.setdefault(_base(name), []).append(name)
    companions: set[str] = set()
    to_search = list(models.values())
    hits_left = _MAX_TOTAL_HIT_COUNT
    while to_search and unmatched and hits_left > 0:
        mentions, hit_count = find_mentions(to_search.pop(), unmatched, min(_MAX_HIT_COUNT, hits_left))
        hits_left -= hit_count
        new = [name for base in mentions for name in unmatched.pop(base)]
        companions.update(new)
        to_search += [others[name] for name in new]
    return companions


def find_mentions(path: Path, names: Collection[str], max_hits: int) -> tuple[set[str], int]:
    """Search a file for file names.

    The search looks for the extensions of the names, which is fast even in long runs of numbers, and then examines the
    text before each one.

    Args:
        path: File to search.
        names: File names without folders, case-folded.
        max_hits: Occurrences of an extension to examine.
    Returns:
        Names that occur, and the number of occurrences examined.
    """
    extensions = sorted({_extension(name) for name in names} - {""})[:_MAX_EXTENSION_COUNT]
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


def _base(name: str) -> str:
    return name.rpartition("/")[2].casefold()


def _extension(name: str) -> str:
    base = _base(name)
    before, dot, after = base.rpartition(".")
    return dot + after if dot and before else ""
