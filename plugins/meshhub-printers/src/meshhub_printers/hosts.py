"""Printers of the user: names, addresses and keys in a file that only the user can read."""

from __future__ import annotations

import errno
import os
import stat
import sys
import tomllib
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import platformdirs
from msgspec import Meta, Struct

from meshhub import InvalidOption

FILE_VARIABLE = "MESHHUB_PRINTER_HOSTS"
"""Environment variable with the path of the file; default: network-printers.toml in the user's configuration folder."""

MAX_BYTES = 1 << 20
"""Maximum bytes of the file; a printer has 150."""


Name = Annotated[str, Meta(pattern=r"^[\w.-]{1,60}\Z")]
"""Name of a printer, as addresses have it."""


class PrinterError(OSError):
    """Failure with a sentence for people; nothing was stored, or the message says what was."""


class Host(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Printer on the network."""

    kind: Literal["octoprint", "moonraker", "prusalink"]
    """Service of the printer."""

    url: Annotated[str, Meta(pattern=r"^https?://[^\s/@?#]+(/[^\s@?#]*)?\Z", max_length=300)]
    """Address of the service, without credentials."""

    key: Annotated[str, Meta(pattern=r"^[!-~]*\Z", max_length=300)] = ""
    """API key; "" for a Moonraker that trusts this machine."""

    storage: Annotated[str, Meta(pattern=r"^[\w-]+\Z", max_length=60)] = ""
    """Storage of files; default: local for OctoPrint, gcodes for Moonraker, usb for PrusaLink."""


def find_file() -> Path:
    """Return the path of the file."""
    return Path(os.environ.get(FILE_VARIABLE) or platformdirs.user_config_path("meshhub") / "network-printers.toml")


def describe_file() -> str:
    """Return the path as its owner writes it in a shell, without folders that callers of a service must not see."""
    if os.environ.get(FILE_VARIABLE):
        return f'"${FILE_VARIABLE}"'
    file, home = find_file(), Path.home()
    # the home folder of an account of a service may be /
    return f"~/{file.relative_to(home)}" if home != home.parent and file.is_relative_to(home) else file.name


def read_hosts() -> dict[str, Host]:
    """Return the printers by name. Messages have no folders and hosts, because callers of the service read them, too.

    Raises:
        InvalidOption: The file is missing.
        PrinterError: The file cannot be read, is invalid, or others can read it.
    """
    file = describe_file()
    try:
        # the mode of the file that is open, and not of one that replaced it
        with find_file().open("rb") as stream:
            mode = os.fstat(stream.fileno()).st_mode
            data = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise InvalidOption(f"no printers: {file} does not exist; write kind, url and key of each there") from None
    except OSError as error:
        raise PrinterError(error.errno, f"{file} cannot be read: {error.strerror}") from None
    if sys.platform != "win32" and stat.S_IMODE(mode) & 0o077:
        raise PrinterError(errno.EACCES, f"{file} has keys, and others can read it; run: chmod 600 {file}")
    try:
        if len(data) > MAX_BYTES:
            raise ValueError(f"it is longer than {MAX_BYTES:,} bytes")
        return msgspec.convert(tomllib.loads(data.decode("utf-8")), dict[Name, Host])
    except ValueError as error:
        # the message has no value, because a value may be a key
        raise PrinterError(errno.EINVAL, f"{file} is invalid: {str(error)[:100]}") from None


def find_host(kind: str, name: str) -> Host:
    """Return a printer. Raises InvalidOption if the file does not name it, or names another kind; PrinterError."""
    hosts = read_hosts()
    if name not in hosts:
        known = ", ".join(hosts) or "none"
        raise InvalidOption(f"no printer {name[:30]!r} in {describe_file()}; there are: {known[:60]}")
    if hosts[name].kind != kind:
        raise InvalidOption(
            f"printer {name[:30]!r} is of kind {hosts[name].kind}; write {hosts[name].kind}://{name[:30]}"
        )
    return hosts[name]
