"""The desktop entry of the app on Linux: in the menu, and in "Open with" of the formats that can be read."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path
from xml.sax.saxutils import quoteattr

import click

from meshhub.cli.catalogs import CommandLineTexts
from meshhub.model.capabilities import Format
from meshhub.pipeline.catalogs import find_catalogs, read_texts
from meshhub.registry import Registry

_ENTRY = """[Desktop Entry]
Type=Application
Name=meshhub
GenericName=3D model converter
{names}Comment=Convert, repair and prepare 3D models for print
Exec={command} app %F
Icon=meshhub
Terminal=false
Categories=Graphics;3DGraphics;Engineering;
MimeType={types};
"""

_UNKNOWN = "application/octet-stream"
"""Media type of formats without a registered one; an entry for it would offer every file."""

_UPDATES = (("update-mime-database", "mime"), ("update-desktop-database", "applications"))
"""Programs that make desktops read the files again, with the folder that they take."""


def install(registry: Registry) -> Iterator[Path]:
    """Write the entry, its icon and the media types for this user, and yield their paths. Raises click.UsageError."""
    if not sys.platform.startswith("linux"):
        raise click.UsageError("desktop entries are for Linux; see docs/how-to/app.md for Windows and macOS")
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share")
    formats = {reader.capability.format.id: reader.capability.format for reader in registry.declarations.readers}
    types = {format_.id: _media_type(format_) for format_ in formats.values()}
    entry = _ENTRY.format(
        names="".join(_translate_name()), command=_quote_command(), types=";".join(dict.fromkeys(types.values()))
    )
    contents = {
        data / "applications/meshhub.desktop": entry,
        data / "mime/packages/meshhub.xml": _describe_types((types[name], formats[name]) for name in formats),
        data / "icons/hicolor/scalable/apps/meshhub.svg": _read_icon(),
    }
    for path, content in contents.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        yield path
    for program, folder in _UPDATES:
        if (found := shutil.which(program)) is not None:
            subprocess.run([found, str(data / folder)], check=False, capture_output=True)  # noqa: S603


def _media_type(format_: Format) -> str:
    """Return the media type of a format; one of meshhub for a format without a registered one."""
    first = next(iter(format_.media_types), _UNKNOWN)
    return f"application/x-meshhub-{format_.id}" if first == _UNKNOWN else first


def _describe_types(formats: Iterable[tuple[str, Format]]) -> str:
    """Return the media types by extension, most of which the system lacks (Shared MIME-info Database)."""
    lines = []
    for media_type, format_ in formats:
        globs = "".join(f"<glob pattern={quoteattr('*' + extension)}/>" for extension in format_.extensions)
        lines.append(f"<mime-type type={quoteattr(media_type)}>{globs}</mime-type>")
    body = "\n".join(lines)
    return f'<mime-info xmlns="http://www.freedesktop.org/standards/shared-mime-info">\n{body}\n</mime-info>\n'


def _translate_name() -> Iterator[str]:
    """Yield a line with the generic name for each other language of the command line."""
    for language in sorted(find_catalogs("meshhub.cli")):
        name = read_texts("meshhub.cli", language, CommandLineTexts).words["3D model converter"]
        yield f"GenericName[{language}]={name}\n"


def _quote_command() -> str:
    """Return the command of this installation for the key `Exec` of a desktop entry."""
    program = Path(sys.executable).with_name("meshhub")
    arguments = [str(program)] if program.is_file() else [sys.executable, "-m", "meshhub"]
    return " ".join(f'"{_escape(argument)}"' for argument in arguments)


def _escape(argument: str) -> str:
    """Return a quoted argument: % begins a field code, and \\ is an escape in both the string and the argument."""
    return re.sub(r'["`$]', r"\\\\\g<0>", argument.replace("\\", r"\\\\")).replace("%", "%%")


def _read_icon() -> str:
    """Return the icon of the page, whose name has a hash."""
    assets = files("meshhub.http").joinpath("page/assets")
    return next(entry for entry in assets.iterdir() if entry.name.startswith("icon-")).read_text(encoding="utf-8")
