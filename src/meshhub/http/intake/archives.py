"""Uploaded archives within the limits of the plan; files that are neither model nor companion are rejected."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from meshhub.errors import EmptyModel, MeshhubError, UnreadableFile, UnsupportedFormat
from meshhub.http.errors import ServiceError
from meshhub.http.intake.conversion_requests import InputFile
from meshhub.http.intake.names import folder_label, label, stem
from meshhub.model.plans import Limits
from meshhub.model.source import Source
from meshhub.pipeline.archived_models import ZIP_SIGNATURES, list_entries, sort_files
from meshhub.pipeline.companion_mentions import extension_of
from meshhub.registry import Registry
from meshhub.toolkit.archive import Archive, ArchiveLimits, Entry

_UNLIMITED_BYTES = 1 << 40
_ARCHIVE_LIMITS = ArchiveLimits(
    # select_entries and _extract check sizes against the plan, and raise their own errors
    max_total_bytes=_UNLIMITED_BYTES,
    max_entry_bytes=_UNLIMITED_BYTES,
    max_entries=2000,
    nested=False,
)


def open_archive(path: Path) -> Archive:
    """Open an archive and check its directory. Raises EmptyModel, UnreadableFile, UnsafeArchive."""
    if path.stat().st_size == 0:
        raise EmptyModel("the archive is empty: it holds 0 bytes; pack and send it again")
    return Archive(path, _ARCHIVE_LIMITS)


@contextmanager
def naming_archive_endpoint(source: Source) -> Iterator[None]:
    """Name the endpoint for archives in the error about an archive that was sent as a model."""
    try:
        yield
    except UnsupportedFormat as error:
        if not source.head(4).startswith(ZIP_SIGNATURES):
            raise
        raise UnsupportedFormat(f"{error.message}; an archive goes to /convert-batch") from error


def select_entries(archive: Archive, limits: Limits) -> list[Entry]:
    """Return the entries except files that operating systems add.

    Raises:
        ServiceError: The entries together exceed the plan's limit.
        EmptyModel: The archive has no entries.
    """
    entries = list_entries(archive)
    total = sum(entry.size for entry in entries)
    if limits.request_bytes is not None and total > limits.request_bytes:
        raise ServiceError(
            f"the archive unpacks to {total} bytes; this plan allows {limits.request_bytes}: send fewer files "
            "at once, or use the key of a plan that allows more",
            error_code="archive_too_large",
            values={"bytes": total, "limit_bytes": limits.request_bytes},
        )
    return entries


def unpack(archive: Archive, entries: list[Entry], folder: Path, registry: Registry, limits: Limits) -> list[InputFile]:
    """Unpack an archive.

    Returns:
        Models, and files that are neither model nor companion with their rejection, in the order of the archive.
    Raises:
        ServiceError: There are too many models.
        UnsafeArchive: An entry cannot be unpacked safely.
    """
    readers = registry.declarations.readers
    extensions = {extension for reader in readers for extension in reader.capability.format.extensions}
    _check_model_count(sum(extension_of(entry.name) in extensions for entry in entries), limits)
    paths, rejections = _extract_all(archive, entries, folder, limits)
    contents = sort_files(paths, registry.declarations, registry.hooks.sniffing())
    rejections |= contents.rejections
    _check_model_count(len(contents.models), limits)
    return [
        InputFile(
            name=entry.name,
            folder=folder_label(entry.name),
            stem=stem(label(entry.name)),
            path=paths.get(entry.name, folder),
            companions=contents.companions,
            rejection=rejections.get(entry.name),
        )
        for entry in entries
        if entry.name in contents.models or entry.name in rejections
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


def _check_model_count(count: int, limits: Limits) -> None:
    limit = limits.max_batch_files
    if limit is not None and count > limit:
        raise ServiceError(
            f"the archive holds {count} models; this plan allows {limit} in one batch: send fewer at once, "
            "or use the key of a plan that allows more",
            error_code="too_many_files",
            values={"count": count, "limit": limit},
        )


def _extract(archive: Archive, entry: Entry, path: Path, limits: Limits) -> None:
    limit = limits.max_file_bytes
    if limit is not None and entry.size > limit:
        raise ServiceError(
            f"{entry.name[-80:]!r} unpacks to {entry.size} bytes; this plan allows {limit} for a file",
            error_code="file_too_large",
            values={"name": entry.name[-80:], "bytes": entry.size, "limit_bytes": limit},
        )
    archive.extract(entry.name, path)
