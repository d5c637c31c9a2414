"""An uploaded archive: which of its files are models, which belong to one, and which are neither.

Files that operating systems add by themselves are skipped. A file that no reader knows by its extension belongs to a
model when the model, or a file that belongs to it, mentions its name: an OBJ its .mtl, that its
textures, a glTF its buffers. Whatever else no reader knows fails as `unsupported_format`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from urllib.parse import unquote

from meshhub.errors import EmptyModel, MeshhubError, MissingDependency, UnreadableFile, UnsupportedFormat
from meshhub.http.errors import ServiceError
from meshhub.http.intake.conversion_requests import Item
from meshhub.http.intake.names import folder_label, label, stem
from meshhub.model.plans import Limits
from meshhub.model.source import Source
from meshhub.pipeline.identify import identify
from meshhub.registry import Registry
from meshhub.toolkit.archive import Archive, ArchiveLimits, Entry, is_system_file

_ANY = 1 << 40
_LIMITS = ArchiveLimits(
    # sizes are held against the plan below, which has an error of its own for them
    max_total_bytes=_ANY,
    max_entry_bytes=_ANY,
    max_entries=2000,
    nested=False,
    backslashes=False,
)

_CHUNK = 1 << 20
_LONGEST_NAME = 600
_MOST_HITS = 5_000
"""How many places of one file are looked at."""

_MOST_HITS_IN_ALL = 20_000
"""And of all files of one archive: what is looked for is the sender's choice, and so is how often it occurs."""

_MOST_EXTENSIONS = 32
_BEFORE_A_NAME = re.compile(r"[\s\"'=<>,;:()\[\]{}]")


def opened(path: Path) -> Archive:
    """The archive, its table of contents checked. Raises EmptyModel, UnreadableFile, UnsafeArchive."""
    if path.stat().st_size == 0:
        raise EmptyModel("the archive is empty: it holds 0 bytes; pack and send it again")
    return Archive(path, _LIMITS)


def wanted(archive: Archive, limits: Limits) -> list[Entry]:
    """The entries without system files. Raises ServiceError when they are too large together, EmptyModel for none."""
    entries = [entry for entry in archive.entries if not is_system_file(entry.name)]
    if not entries:
        raise EmptyModel("the archive holds no files; pack the models and send it again")
    total = sum(entry.size for entry in entries)
    if limits.max_request_bytes is not None and total > limits.max_request_bytes:
        raise ServiceError(
            f"the archive unpacks to {total} bytes; this plan allows {limits.max_request_bytes}: send fewer files "
            "at once, or use the key of a plan that allows more",
            code="archive_too_large",
        )
    return entries


def unpacked(archive: Archive, entries: list[Entry], folder: Path, registry: Registry, limits: Limits) -> list[Item]:
    """The models of an archive in their order, unpacked, and what is neither model nor companion as refused items.

    Raises ServiceError for too many models, UnsafeArchive.
    """
    have, sniff = registry.declarations, registry.hooks.sniffing()
    known = {extension for reader in have.readers for extension in reader.capability.format.extensions}
    _refuse_too_many(sum(_extension(entry.name) in known for entry in entries), limits)
    paths: dict[str, Path] = {}
    refused: dict[str, MeshhubError] = {}
    for number, entry in enumerate(entries):
        path = folder / f"unpacked-{number}"
        try:
            _extract(archive, entry, path, limits)
        except (UnreadableFile, ServiceError) as error:
            refused[entry.name] = error
        else:
            paths[entry.name] = path
    strangers = {name: path for name, path in paths.items() if _extension(name) not in known}
    models = {name: path for name, path in paths.items() if name not in strangers}
    companions = _belonging(models, strangers)
    for name, path in strangers.items():
        if name in companions:
            continue
        try:
            identify(have, Source(name, path=path), sniff=sniff)
        except UnsupportedFormat as error:
            refused[name] = error
        except (EmptyModel, MissingDependency):
            models[name] = path
        else:
            models[name] = path
    _refuse_too_many(len(models), limits)
    beside = {name: path for name, path in strangers.items() if name not in models}
    return [
        Item(
            name=entry.name,
            folder=folder_label(entry.name),
            stem=stem(label(entry.name)),
            path=paths.get(entry.name, folder),
            companions=beside,
            refused=refused.get(entry.name),
        )
        for entry in entries
        if entry.name in models or entry.name in refused
    ]


def _refuse_too_many(count: int, limits: Limits) -> None:
    most = limits.max_batch_files
    if most is not None and count > most:
        raise ServiceError(
            f"the archive holds {count} models; this plan allows {most} in one batch: send fewer at once, "
            "or use the key of a plan that allows more",
            code="too_many_files",
        )


def _extract(archive: Archive, entry: Entry, path: Path, limits: Limits) -> None:
    most = limits.max_file_bytes
    if most is not None and entry.size > most:
        raise ServiceError(
            f"{entry.name[-80:]!r} unpacks to {entry.size} bytes; this plan allows {most} for a file",
            code="file_too_large",
        )
    archive.extract(entry.name, path)


def _belonging(models: dict[str, Path], strangers: dict[str, Path]) -> set[str]:
    """The strangers that models mention, and those that these mention in turn."""
    open_names: dict[str, list[str]] = {}
    for name in strangers:
        open_names.setdefault(_base(name), []).append(name)
    found: set[str] = set()
    reading = list(models.values())
    hits_left = _MOST_HITS_IN_ALL
    while reading and open_names and hits_left > 0:
        said, hits = mentioned(reading.pop(), open_names, min(_MOST_HITS, hits_left))
        hits_left -= hits
        new = [name for base in said for name in open_names.pop(base)]
        found.update(new)
        reading += [strangers[name] for name in new]
    return found


def mentioned(path: Path, names: Collection[str], most_hits: int) -> tuple[set[str], int]:
    """Those of these file names (case-folded, without folders) that occur in a file's bytes, and the places looked at.

    Looks for the names' extensions, which is quick in any amount of numbers, and at what stands
    before each.
    """
    extensions = sorted({_extension(name) for name in names} - {""})[:_MOST_EXTENSIONS]
    lengths = frozenset(map(len, names))
    found: set[str] = set()
    hits = 0
    for text in _windows(path):
        for extension in extensions:
            mark = extension.encode()
            at = text.find(mark)
            while at >= 0:
                end = at + len(mark)
                found |= _names_at_end(text[max(0, end - _LONGEST_NAME) : end], names, lengths)
                hits += 1
                if hits >= most_hits or len(found) == len(names):
                    return found, hits
                at = text.find(mark, end)
    return found, hits


def _windows(path: Path) -> Iterator[bytes]:
    """A file's bytes in lower case, in pieces that overlap by more than a name's length."""
    with path.open("rb") as file:
        before = b""
        while chunk := file.read(_CHUNK).lower():
            yield before + chunk
            before = chunk[-_LONGEST_NAME:]


def _names_at_end(window: bytes, names: Collection[str], lengths: frozenset[int]) -> set[str]:
    text = window.decode("utf-8", "ignore")
    if "\\u" in text:
        text = re.sub(r"\\u[0-9a-f]{4}", lambda hit: chr(int(hit[0][2:], 16)), text)
    found = set()
    for spelled in {text, unquote(text)}:
        last = spelled.replace("\\", "/").rpartition("/")[2].casefold()
        for length in lengths:
            start = len(last) - length
            before = start == 0 or (start > 0 and _BEFORE_A_NAME.match(last, start - 1))
            if before and last[start:] in names:
                found.add(last[start:])
    return found


def _base(name: str) -> str:
    return name.rpartition("/")[2].casefold()


def _extension(name: str) -> str:
    base = _base(name)
    before, dot, after = base.rpartition(".")
    return dot + after if dot and before else ""
