"""Paths that commands take: files, folders, and `-` for the standard streams."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath

import click

from meshhub.model.source import Source
from meshhub.pipeline import existing_files
from meshhub.pipeline.archived_models import ZIP_SIGNATURES
from meshhub.pipeline.storages import is_address
from meshhub.registry import Registry

STREAM = "-"
"""The path that stands for standard input or output."""


def read_from(path: str) -> Source | str:
    """Return the source behind a path or `-`; for an address of a storage, the address, which the registry fetches."""
    if path == STREAM:
        if sys.stdin is None:
            raise click.UsageError("standard input is closed; name a file")
        return Source.from_bytes(sys.stdin.buffer.read(), "standard input")
    return path if is_address(path) else Source.from_path(path)


def identity(path: str | Path) -> tuple[int, int] | None:
    """Return the device and number of the file behind a path or `-`; None without a file."""
    return existing_files.identity(0 if path == STREAM else path)


def is_folder(name: str) -> bool:
    """Return whether an argument names a folder; an empty one does not, although `Path("")` is the current folder."""
    return name != "" and Path(name).is_dir()


def is_zip(path: str | Path) -> bool:
    """Return whether a file begins like a ZIP archive; some model formats do, too.

    Return False for a pipe, because reading from it would consume its data.
    """
    if not Path(path).is_file():
        return False
    try:
        with Path(path).open("rb") as file:
            return file.read(4).startswith(ZIP_SIGNATURES)
    except OSError:
        return False


def readable_extensions(registry: Registry) -> frozenset[str]:
    """Return the extensions of the formats that can be read."""
    readers = registry.declarations.readers
    return frozenset(name for reader in readers for name in reader.capability.format.extensions)


def expand_inputs(
    paths: Iterable[str], extensions: frozenset[str], output_dir: Path | None = None
) -> Iterator[tuple[Path, PurePath]]:
    """Yield each input file with its folder below the output folder; a folder stands for its model files.

    An output folder inside an input folder is left out, because its files come from an earlier run.
    """
    for name in paths:
        path = Path(name)
        if not is_folder(name):
            yield path, PurePath()
            continue
        files = list_models(path, extensions, output_dir)
        if not files:
            raise click.UsageError(f"{name} is a folder without a model file in it")
        for file in files:
            yield file, file.relative_to(path).parent


def list_models(folder: Path, extensions: frozenset[str], output_dir: Path | None = None) -> list[Path]:
    """Return the visible model files in a folder and below, without those in an output folder inside of it."""
    matches = (file for file in folder.rglob("*") if file.suffix.lower() in extensions)
    files = sorted(file for file in matches if _is_visible(file, folder))
    results = None if output_dir is None else output_dir.resolve()
    if results is None or folder.resolve() not in results.parents:
        return files
    return [file for file in files if not file.parent.resolve().is_relative_to(results)]


def _is_visible(file: Path, folder: Path) -> bool:
    """Return whether a file is not hidden; macOS leaves a `._part.stl` beside each `part.stl` that it copies."""
    return file.is_file() and not any(name.startswith(".") for name in file.relative_to(folder).parts)


def leads_elsewhere(target: Path, folder: Path) -> bool:
    """Return whether a derived output leads, through links, to an existing file that the command did not name.

    A link to a file that does not exist yet is followed if it stays in the folder.
    """
    if not os.path.lexists(target):
        return False
    return (target.is_symlink() and target.exists()) or not target.resolve().is_relative_to(folder.resolve())


def list_inputs(registry: Registry, path: str) -> list[str]:
    """Return the model files of a folder; another path, or `-`, unchanged."""
    if not is_folder(path):
        return [path]
    return [str(file) for file, _ in expand_inputs([path], readable_extensions(registry))]
