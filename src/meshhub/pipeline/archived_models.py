"""ZIP archives of models: models, companions of models, and files that are neither.

Files that operating systems add to archives are skipped. A file without a model's extension is a companion if a model
or another companion mentions its name: an OBJ mentions its .mtl, which mentions textures; a glTF mentions its buffers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from meshhub.errors import EmptyModel, MissingDependency, UnsupportedFormat, quote
from meshhub.model.source import Source
from meshhub.pipeline.companion_mentions import MAX_HIT_COUNT, base_name, extension_of, find_mentions
from meshhub.pipeline.declarations import Declarations
from meshhub.pipeline.fork_lock import IMPORTING
from meshhub.pipeline.identify import Sniff, identify
from meshhub.pipeline.program_scenes import SceneSource

if TYPE_CHECKING:
    from meshhub.toolkit.archive import Archive, Entry

ZIP_SIGNATURES = (b"PK\3\4", b"PK\5\6")
"""First bytes of a ZIP archive with entries, and of one without (APPNOTE 4.3)."""

MAX_LISTED_COUNT = 3
"""Maximum models that a message lists; more do not fit into a line."""

_MAX_TOTAL_HIT_COUNT = 20_000
"""Maximum occurrences to examine in an archive; the sender chooses the names and how often they occur. """


class SeveralModels(UnsupportedFormat):
    """An archive holds several models where only one is expected; the message ends with REMEDY."""

    REMEDY = "unpack it, or take its models from Registry.open_models"


class Contents(NamedTuple):
    """Unpacked files of an archive by name."""

    models: dict[str, Path]
    """Files that a reader may read."""

    companions: dict[str, Path]
    """Files that models may find."""

    rejections: dict[str, UnsupportedFormat]
    """Errors of the files that are neither."""


def list_entries(archive: Archive) -> list[Entry]:
    """Return the entries except files that operating systems add. Raises EmptyModel if there are none."""
    from meshhub.toolkit.archive import is_system_file

    entries = [entry for entry in archive.entries if not is_system_file(entry.name)]
    if not entries:
        raise EmptyModel("the archive holds no files; pack the models into it")
    return entries


def sort_files(paths: Mapping[str, Path], declarations: Declarations, sniff: Sniff) -> Contents:
    """Sort the unpacked files of an archive into models, companions and others."""
    extensions = {name for reader in declarations.readers for name in reader.capability.format.extensions}
    models = {name: path for name, path in paths.items() if extension_of(name) in extensions}
    others = {name: path for name, path in paths.items() if name not in models}
    companions = _find_companions(models, others)
    rejections = {}
    for name, path in others.items():
        if name in companions:
            continue
        rejection = _check_content(Source(name, path=path), declarations, sniff)
        if rejection is None:
            models[name] = path
        else:
            rejections[name] = rejection
    return Contents(models, {name: path for name, path in others.items() if name not in models}, rejections)


@contextmanager
def opened_models(source: Source, declarations: Declarations, sniff: Sniff) -> Iterator[list[Source]]:
    """Yield the models of a ZIP archive in its order, each with its companions; for a single model, yield the model
    itself.

    Raises:
        EmptyModel, UnsupportedFormat: The archive holds no model.
        UnreadableFile, UnsafeArchive: The archive is damaged, or cannot be unpacked safely.
    """
    if not _is_archive(source, declarations, sniff):
        yield [source]
        return
    with IMPORTING.held():
        import tempfile

        from meshhub.toolkit.archive import UPLOAD_LIMITS, Archive

    with tempfile.TemporaryDirectory(prefix="meshhub-archive-") as folder:
        with Archive(source.path or source.read(), UPLOAD_LIMITS) as archive:
            paths = {entry.name: Path(folder, str(number)) for number, entry in enumerate(list_entries(archive))}
            for name, path in paths.items():
                archive.extract(name, path)
        contents = sort_files(paths, declarations, sniff)
        if not contents.models:
            raise UnsupportedFormat(
                f"the archive {quote(source.name)} holds no model that can be read ({declarations.list_readable()})",
                values={"name": source.name},
            )
        yield [
            Source(name, path=path, companions=contents.companions)
            for name, path in paths.items()
            if name in contents.models
        ]


def only_model(models: list[Source], archive: str) -> Source:
    """Return the only model of an archive. Raises SeveralModels."""
    if len(models) == 1:
        return models[0]
    names = ", ".join(quote(model.name) for model in models[:MAX_LISTED_COUNT])
    more = ", …" if len(models) > MAX_LISTED_COUNT else ""
    raise SeveralModels(f"{archive} holds {len(models)} models ({names}{more}); {SeveralModels.REMEDY}")


def _is_archive(source: Source, declarations: Declarations, sniff: Sniff) -> bool:
    """Return whether a source is a ZIP archive and not a format that uses one."""
    if isinstance(source, SceneSource) or not source.head(4).startswith(ZIP_SIGNATURES):
        return False
    return _check_content(source, declarations, sniff) is not None


def _check_content(source: Source, declarations: Declarations, sniff: Sniff) -> UnsupportedFormat | None:
    """Return the error for a file whose content has no known format; other errors occur when the file is converted."""
    try:
        identify(declarations, source, sniff=sniff)
    except UnsupportedFormat as error:
        return error
    except (EmptyModel, MissingDependency):
        pass
    return None


def _find_companions(models: Mapping[str, Path], others: Mapping[str, Path]) -> set[str]:
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
