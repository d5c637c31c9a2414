"""Output file with its companions: written completely or not at all, without overwriting a file that was not named."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, TypeAlias, Union

from meshhub.errors import DiskFull, OutputExists, UnsupportedTarget, quote
from meshhub.model.source import Target, name_bed
from meshhub.pipeline.fork_lock import IMPORTING
from meshhub.pipeline.storages import Storages, is_address, stored

Output: TypeAlias = Union[str, "os.PathLike[str]", BinaryIO, Target]
"""Path, address of a storage (text), binary file, or target in memory or in a folder."""


def target_format(output: Output, to: str | None) -> str:
    """Return the name of the target format: `to`, or the extension of a path. Raises UnsupportedTarget."""
    if to is not None:
        return to
    if not isinstance(output, str | os.PathLike):
        raise UnsupportedTarget("a target in memory has no extension; name the format with to=")
    path = Path(output)
    if not path.suffix:
        raise UnsupportedTarget(f"{str(path)!r} has no extension that names a format; add one, or name a format")
    return path.suffix


def check_picture_name(output: Output) -> None:
    """Raise UnsupportedTarget if an output is a path or an address without the extension .png."""
    if isinstance(output, str | os.PathLike) and Path(output).suffix.lower() != ".png":
        raise UnsupportedTarget(f"pictures are PNG files: name {quote(Path(output).name)} with .png")


def place_first_bed(output: Output) -> Output:
    """Return the output of the first bed, if each bed gets a file of its own: that of a path is named NAME-bed1.

    Raises:
        UnsupportedTarget: The output is an address, which holds one file.
    """
    if is_address(output):
        raise UnsupportedTarget(
            "an address holds one file, and '{each_bed}' writes several; convert to a path", options=("each_bed",)
        )
    if not isinstance(output, str | os.PathLike):
        return output
    path = Path(output)
    return path.with_name(name_bed(path.name, 1))


@contextlib.contextmanager
def open_output(output: Output, storages: Storages, *, overwrite: bool) -> Iterator[Target]:
    """Yield the target of an output; complete the output when the block ends without an error.

    Args:
        output: A path is replaced as a whole. Text such as s3://bucket/key goes to its storage. A binary file gets the
            content at its position.
        storages: Storages by scheme.
        overwrite: Whether to replace an existing file; applies only to paths and addresses.
    Raises:
        OutputExists, OSError: See `_staged_output` and `pipeline.storages.stored`.
        UnsupportedTarget: A binary file cannot hold the companions of the result, or several beds.
        TypeError: The value is not an output.
    """
    if isinstance(output, Target):
        yield output
    elif is_address(output):
        with stored(output, storages, overwrite=overwrite) as target:
            yield target
    elif isinstance(output, str | os.PathLike):
        with _staged_output(Path(output), overwrite=overwrite) as target:
            yield target
    elif hasattr(output, "write"):
        target = Target()
        yield target
        if len(target.names) > 1:
            raise UnsupportedTarget(
                f"the result needs the companions {', '.join(target.names[1:])}, which one file cannot hold; "
                "convert to a path or to a Target"
            )
        if target.beds:
            raise UnsupportedTarget(
                f"the objects are on {len(target.files)} beds, and one file cannot hold the files of '{{each_bed}}'; "
                "convert to a path or to a Target",
                options=("each_bed",),
            )
        output.write(target.read())
    else:
        raise TypeError(f"the target must be a path, a binary file or a Target, not {type(output).__name__}")


def check_output(path: Path, *, overwrite: bool) -> Path:
    """Return the path of an output that could be written now: the target of a symlink, or the path itself.

    Raises:
        OutputExists: The file exists and `overwrite` is false.
        OSError: The path is not a file, or its folder does not exist.
    """
    if path.is_dir():
        raise FileExistsError(f"{path} is a folder; name the file to write in it")
    if path.exists() and not path.is_file():
        raise FileExistsError(f"{path} is a device or a pipe, which a finished file cannot replace; name a file")
    place = path.resolve() if path.is_symlink() else path
    if not place.parent.is_dir():
        raise _no_folder(place)
    if not overwrite and place.exists():
        raise _exists(path)
    return place


@contextlib.contextmanager
def _staged_output(path: Path, *, overwrite: bool) -> Iterator[Target]:
    """Yield a target in a temporary folder beside `path`; move its files into place when the block ends without an
    error.

    Args:
        path: File to write. If the path is a symlink, the link stays and its target is written, as a shell redirect
            does.
        overwrite: Whether to replace an existing file. An existing file that has the name of a companion and other
            content is never replaced.
    Raises:
        OutputExists: The file exists and `overwrite` is false.
        OSError: The file cannot be written; the error names `path`, not the temporary file.
    """
    place = check_output(path, overwrite=overwrite)
    with IMPORTING.held():
        import shutil
        import tempfile

    with _naming(path):
        folder = Path(tempfile.mkdtemp(prefix=".meshhub-", dir=place.parent))
    try:
        target = Target(place.name, folder=folder)
        yield target
        with _naming(path):
            _publish(target, folder, place, overwrite=overwrite)
    except DiskFull as error:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Make system errors name the file that the caller requested."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        if error.errno == errno.ENOENT:
            raise _no_folder(path) from error
        raise OSError(error.errno, error.strerror, str(path)) from error


def _exists(path: Path) -> OutputExists:
    return OutputExists(f"{path} already exists and was not changed")


def _no_folder(path: Path) -> NotADirectoryError:
    return NotADirectoryError(f"{path.parent} is not a folder; create it first")


def _publish(target: Target, folder: Path, place: Path, *, overwrite: bool) -> None:
    """Move a finished target with its companions and further beds from its folder to its final place."""
    places = {folder / file.name: place.parent / file.name for file in target.files}
    for taken in places.values():
        if not overwrite and os.path.lexists(taken):
            raise _exists(taken)
    # all companions are checked before the first one is moved, so that a conflict leaves no files behind
    new = [name for name in target.names[1:] if not _has_companion(folder / name, place.parent / name)]
    for name in new:
        try:
            _move_new(folder / name, place.parent / name)
        except FileExistsError:
            # another conversion wrote it meanwhile
            _has_companion(folder / name, place.parent / name)
    for file, end in places.items():
        if overwrite:
            file.replace(end)
            continue
        try:
            _move_new(file, end)
        except FileExistsError:
            raise _exists(end) from None


def _has_companion(file: Path, place: Path) -> bool:
    """Return whether the place of a companion holds the same content. Raises FileExistsError for other content.

    Companions are named by their content, so a file with other content belongs to another program, or was edited by
    hand.
    """
    if not os.path.lexists(place):
        return False
    import filecmp

    if not (place.is_file() and filecmp.cmp(file, place, shallow=False)):
        raise FileExistsError(
            f"{place} exists with other content than this result needs; move it, or name another folder"
        )
    return True


def _move_new(file: Path, place: Path) -> None:
    """Move a file to an unused name; a hard link fails if the name was taken meanwhile. Raises FileExistsError."""
    try:
        os.link(file, place)
    except FileExistsError:
        raise
    except OSError:
        # a file system without hard links
        if os.path.lexists(place):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(place)) from None
        file.rename(place)
