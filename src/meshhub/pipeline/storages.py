"""Addresses such as s3://bucket/key, which storages of plug-ins open: fetch sources, and store results."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeGuard

from meshhub.errors import (
    MeshhubError,
    MissingDependency,
    OutputExists,
    PluginError,
    RequestError,
    describe_missing,
    quote,
)
from meshhub.model.capabilities import SCHEME, Storage, StoredFile, StoredFolderFile
from meshhub.model.source import Source, Target
from meshhub.pipeline.companion_mentions import (
    COMPANION_EXTENSIONS,
    MAX_HIT_COUNT,
    base_name,
    extension_of,
    find_mentions,
    has_mention,
)
from meshhub.pipeline.declarations import Declared, load

if TYPE_CHECKING:
    from meshhub.pipeline.existing_files import Replacing

_ADDRESS = re.compile(rf"({SCHEME})://", re.IGNORECASE)

_QUERY = re.compile(r"(?<=\w)\?\w+=\w*(?:&\w+=\w*)*\Z", re.ASCII)
"""Options at the end of an address; a key of an object store rarely ends so."""

Storages = Mapping[str, Declared[Storage]]


def is_address(value: object) -> TypeGuard[str]:
    """Return whether a value is an address. A path object never is one."""
    return isinstance(value, str) and _ADDRESS.match(value) is not None


def without_query(address: str) -> str:
    """Return an address without options at its end, such as ?print=true, which are for its storage alone."""
    return _QUERY.sub("", address)


@contextlib.contextmanager
def fetched(address: str, storages: Storages) -> Iterator[Source]:
    """Yield the file at an address as a source; the local copies of it and its companions live as long as the block.

    Raises:
        RequestError: No storage opens the address, or it names no file.
        MeshhubError, OSError: The storage cannot fetch the file.
    """
    with _blaming(address, storages):
        stored = _open_stored(address, storages)
    import tempfile

    with tempfile.TemporaryDirectory(prefix="meshhub-address-") as folder:
        path = Path(folder, "source")
        with path.open("wb") as file, _blaming(address, storages):
            stored.fetch(file)
        with _blaming(address, storages):
            companions = _fetch_companions(stored, path)
        yield Source(name_of(address), path=path, companions=companions)


def _fetch_companions(stored: StoredFile, model: Path) -> dict[str, Path]:
    """Fetch the companions that a model and its companions mention; return their local copies by name."""
    if not isinstance(stored, StoredFolderFile) or not has_mention(model, COMPANION_EXTENSIONS):
        return {}
    listed: dict[str, dict[str, StoredFile]] = {}
    for name, file in stored.list_folder().items():
        if extension_of(name) in COMPANION_EXTENSIONS:
            listed.setdefault(base_name(name), {})[name] = file
    copies: dict[str, Path] = {}
    unread = [model]
    while unread:
        mentions, _ = find_mentions(unread.pop(), listed, MAX_HIT_COUNT)
        for name, file in [item for mention in sorted(mentions) for item in listed.pop(mention).items()]:
            path = model.with_name(f"companion-{len(copies)}")
            # another program may have removed it since the folder was listed
            with path.open("wb") as copy, contextlib.suppress(FileNotFoundError):
                file.fetch(copy)
                copies[name] = path
                unread.append(path)
    return copies


@contextlib.contextmanager
def stored(address: str, storages: Storages, replacing: Replacing) -> Iterator[Target]:
    """Yield a local target; put it at the address when the block ends without an error, further beds beside it.

    Raises:
        RequestError: No storage opens the address, or it names no file.
        OutputExists: The file exists and must stay.
        MeshhubError, OSError: The storage cannot store the file.
    """
    replacing.check_inputs(address)
    # an address that cannot be opened is reported before the conversion
    with _blaming(address, storages):
        _open_stored(address, storages)
    import tempfile

    with tempfile.TemporaryDirectory(prefix="meshhub-address-") as folder:
        target = Target(name_of(address), folder=Path(folder))
        yield target
        start = storages[_scheme_of(address)].capability.start_query
        if target.beds and start and address.endswith(start):
            raise RequestError(
                f"the result has {len(target.files)} files, one for each bed, and a printer starts one; omit {start}"
            )
        for file in target.files:
            # all beds share the companions
            files = [Path(folder, name) for name in (file.names if file is target else [file.name])]
            with _blaming(address, storages):
                _store(rename(address, file.name), files, storages, replacing)


def rename(address: str, name: str) -> str:
    """Return the address of a file in the same folder."""
    place = without_query(address)
    return f"{place.rpartition('/')[0]}/{name}{address[len(place) :]}"


def _store(address: str, files: list[Path], storages: Storages, replacing: Replacing) -> None:
    place = _open_stored(address, storages)
    try:
        place.store(files, overwrite=bool(replacing.overwrite))
    except OutputExists:
        if replacing.overwrite is not None:
            raise
        _check_stored(address, place, replacing)
        place.store(files, overwrite=True)


def send(file: Path, address: str, storages: Storages, *, overwrite: bool) -> None:
    """Put a file at an address as it is. Raises as `stored`."""
    if not is_address(address):
        raise RequestError(f"{quote(address)} is not an address; write moonraker://voron/part.gcode, for example")
    with _blaming(address, storages):
        _open_stored(address, storages).store([file], overwrite=overwrite)


def _check_stored(address: str, place: StoredFile, replacing: Replacing) -> None:
    """Raise OutputExists unless the file at an address is a result of meshhub."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="meshhub-address-") as folder:
        copy = Path(folder, "existing")
        with copy.open("wb") as file:
            place.fetch(file)
        if not replacing.may_replace(copy):
            raise OutputExists(f"{address} is not a result of meshhub; name another file, or pass overwrite=True")


def _open_stored(address: str, storages: Storages) -> StoredFile:
    declared = storages.get(_scheme_of(address))
    if declared is None:
        raise RequestError(
            f"no plug-in opens {_scheme_of(address)}:// addresses; name a file, or install a plug-in for them"
        )
    if declared.missing:
        feature = f"opening {_scheme_of(address)}:// addresses"
        raise MissingDependency(describe_missing(feature, declared.missing, declared.remedy))
    name_of(address)
    opened: StoredFile = load(declared.capability.run)(address)
    return opened


@contextlib.contextmanager
def _blaming(address: str, storages: Storages) -> Iterator[None]:
    """Raise PluginError for an exception that a storage must not raise."""
    try:
        yield
    except (MeshhubError, OSError):
        raise
    except Exception as error:
        declared = storages[_scheme_of(address)]
        raise PluginError(
            f"the storage of plug-in {declared.plugin!r} ({declared.origin}) failed: {type(error).__name__}: {error}; "
            "report it to its maintainer",
            error_code="internal_error",
        ) from error


def _scheme_of(address: str) -> str:
    return address.partition(":")[0].lower()


def name_of(address: str) -> str:
    """Return the last component of an address. Raises RequestError if it is not the name of a file."""
    name = without_query(address).partition("://")[2].rpartition("/")[2]
    if name in ("", ".", "..") or PurePosixPath(name).name != name or not name.isprintable():
        raise RequestError(f"{quote(address)} names no file; add the name of a file")
    return name
