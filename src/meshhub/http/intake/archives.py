"""Uploaded archives: models, companions of models, and files that are neither.

Files that operating systems add to archives are skipped. A file without a model's extension is a companion if a model
or another companion mentions its name: an OBJ mentions its .mtl, which mentions textures; a glTF mentions its buffers.
All other files fail with `unsupported_format`.
"""

from __future__ import annotations

from pathlib import Path

from meshhub.errors import EmptyModel, MeshhubError, MissingDependency, UnreadableFile, UnsupportedFormat
from meshhub.http.errors import ServiceError
from meshhub.http.intake.conversion_requests import InputFile
from meshhub.http.intake.names import folder_label, label, stem
from meshhub.model.plans import Limits
from meshhub.model.source import Source
from meshhub.pipeline.declarations import Declarations
from meshhub.pipeline.identify import Sniff, identify
from meshhub.pipeline.mentions import MAX_HIT_COUNT, base_name, extension_of, find_mentions
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

_MAX_TOTAL_HIT_COUNT = 20_000
"""Occurrences to examine in all files of an archive; the sender chooses both the names and how often they occur."""


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
    _check_model_count(sum(extension_of(entry.name) in extensions for entry in entries), limits)
    paths, rejections = _extract_all(archive, entries, folder, limits)
    models = {name: path for name, path in paths.items() if extension_of(name) in extensions}
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
        unmatched.setdefault(base_name(name), []).append(name)
    companions: set[str] = set()
    to_search = list(models.values())
    hits_left = _MAX_TOTAL_HIT_COUNT
    while to_search and unmatched and hits_left > 0:
        mentions, hit_count = find_mentions(to_search.pop(), unmatched, min(MAX_HIT_COUNT, hits_left))
        hits_left -= hit_count
        new = [name for base in mentions for name in unmatched.pop(base)]
        companions.update(new)
        to_search += [others[name] for name in new]
    return companions
