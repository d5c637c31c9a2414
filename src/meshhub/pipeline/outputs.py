"""Output file with its companions: written completely or not at all, without replacing a file that must stay."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, TypeAlias, Union

from meshhub.errors import DiskFull, UnsupportedTarget, quote
from meshhub.model.source import Target, name_bed
from meshhub.pipeline.declarations import Declarations
from meshhub.pipeline.existing_files import Replacing, find_descriptor
from meshhub.pipeline.fork_lock import IMPORTING
from meshhub.pipeline.storages import Storages, is_address, name_of, rename, stored, without_query

Output: TypeAlias = Union[str, "os.PathLike[str]", BinaryIO, Target]
"""Path, address of a storage (text), binary file, or target in memory or in a folder."""


def target_format(output: Output, target: str | None, declarations: Declarations) -> str:
    """Return the name of the target format: `target`, or the extension of a path. Raises UnsupportedTarget."""
    if target is not None:
        return target
    if not isinstance(output, str | os.PathLike):
        raise UnsupportedTarget("a target in memory has no extension; name the format with target=")
    suffix = output_suffix(output, declarations)
    if not suffix:
        raise UnsupportedTarget(f"{str(output)!r} has no extension that names a format; add one, or name a format")
    return suffix


def output_suffix(output: str | os.PathLike[str], declarations: Declarations) -> str:
    """Return the extension of a path or an address, with two parts if these are of a format, such as .gcode.3mf."""
    path = Path(without_query(output) if is_address(output) else output)
    double = "".join(path.suffixes[-2:])
    return double if declarations.format_of(double) is not None else path.suffix


def check_picture_name(output: Output) -> None:
    """Raise UnsupportedTarget if an output is a path or an address without the extension .png."""
    if isinstance(output, str | os.PathLike) and Path(output).suffix.lower() != ".png":
        raise UnsupportedTarget(f"pictures are PNG files: name {quote(Path(output).name)} with .png")


def place_first_bed(output: Output) -> Output:
    """Return the output of the first bed, if each bed gets a file of its own: that of a path is named NAME-bed1."""
    if is_address(output):
        return rename(output, name_bed(name_of(output), 1))
    if not isinstance(output, str | os.PathLike):
        return output
    path = Path(output)
    return path.with_name(name_bed(path.name, 1))


@contextlib.contextmanager
def open_output(output: Output, storages: Storages, replacing: Replacing) -> Iterator[Target]:
    """Yield the target of an output; complete the output when the block ends without an error.

    Args:
        output: A path is replaced as a whole, also that of a target in a folder. Text such as s3://bucket/key goes to
            its storage. A binary file gets the content at its position.
        storages: Storages by scheme.
        replacing: Which existing files to replace; binary files are never compared with results.
    Raises:
        OutputExists, OSError: See `_staged_output` and `pipeline.storages.stored`.
        UnsupportedTarget: A binary file cannot hold the companions of the result, or several beds.
        TypeError: The value is not an output.
    """
    if isinstance(output, Target):
        with _filled_target(output, replacing) as target:
            yield target
    elif is_address(output):
        with stored(output, storages, replacing) as target:
            yield target
    elif isinstance(output, str | os.PathLike):
        with _staged_output(Path(output), replacing) as target:
            yield target
    elif hasattr(output, "write"):
        with _filled_file(output, replacing) as target:
            yield target
    else:
        raise TypeError(f"the target must be a path, a binary file or a Target, not {type(output).__name__}")


@contextlib.contextmanager
def _filled_target(output: Target, replacing: Replacing) -> Iterator[Target]:
    """Yield a target whose files become those of the output when the block ends without an error."""
    if output.folder is None:
        yield output
        return
    with _staged_output(output.folder / output.name, replacing) as target:
        yield target
    output.found(target.names[1:], len(target.beds))


@contextlib.contextmanager
def _filled_file(output: BinaryIO, replacing: Replacing) -> Iterator[Target]:
    """Yield a target in memory whose content is written to an open file when the block ends without an error."""
    descriptor = find_descriptor(output)
    if descriptor is not None:
        replacing.check_inputs(descriptor)
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


def check_output(path: Path, replacing: Replacing) -> Path:
    """Return the path of an output that could be written now: the target of a symlink, or the path itself.

    Raises:
        OutputExists: The file exists and must stay.
        OSError: The path is not a file, or its folder does not exist.
    """
    if path.is_dir():
        raise FileExistsError(f"{path} is a folder; name the file to write in it")
    if path.exists() and not path.is_file():
        raise FileExistsError(f"{path} is a device or a pipe, which a finished file cannot replace; name a file")
    place = path.resolve() if path.is_symlink() else path
    if not place.parent.is_dir():
        raise _no_folder(place)
    replacing.check(place)
    return place


@contextlib.contextmanager
def _staged_output(path: Path, replacing: Replacing) -> Iterator[Target]:
    """Yield a target in a temporary folder beside `path`; move its files into place when the block ends without an
    error.

    Args:
        path: File to write. If the path is a symlink, the link stays and its target is written, as a shell redirect
            does.
        replacing: Which existing files to replace. An existing file that has the name of a companion and other content
            is never replaced.
    Raises:
        OutputExists: The file exists and must stay.
        OSError: The file cannot be written; the error names `path`, not the temporary file.
    """
    place = check_output(path, replacing)
    with IMPORTING.held():
        import shutil
        import tempfile

    with _naming(path):
        folder = Path(tempfile.mkdtemp(prefix=".meshhub-", dir=place.parent))
    try:
        target = Target(place.name, folder=folder)
        yield target
        with _naming(path):
            _publish(target, folder, place, replacing)
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


def _no_folder(path: Path) -> NotADirectoryError:
    return NotADirectoryError(f"{path.parent} is not a folder; create it first")


def _publish(target: Target, folder: Path, place: Path, replacing: Replacing) -> None:
    """Move a finished target with its companions and further beds from its folder to its final place."""
    places = {folder / file.name: place.parent / file.name for file in target.files}
    for end in places.values():
        replacing.check(end)
    # all companions are checked before the first one is moved, so that a conflict leaves no files behind
    new = [name for name in target.names[1:] if not _has_companion(folder / name, place.parent / name)]
    for name in new:
        try:
            _move_new(folder / name, place.parent / name)
        except FileExistsError:
            # another conversion wrote it meanwhile
            _has_companion(folder / name, place.parent / name)
    for file, end in places.items():
        if not replacing.overwrite:
            try:
                _move_new(file, end)
                continue
            except FileExistsError:
                # another program may have written it since the check above
                replacing.check(end)
        file.replace(end)


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
