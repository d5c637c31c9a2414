"""File names: safe labels for uploads, entry names of result archives, Content-Disposition."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from urllib.parse import quote

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
_NOT_IN_NAMES = re.compile(r'[<>:"|?*]')
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE | re.ASCII)
_ONLY_EXTENSION = re.compile(r"\.+(\w+)")
_MAX_EXTENSION_LENGTH = 20
"""Maximum characters after the last dot that a shortened name keeps."""

_MAX_BYTES = 200
"""Maximum bytes of a name in UTF-8; file systems allow 255, and the end of the name of a result must fit, too."""


def label(filename: str, default: str = "model") -> str:
    """Return a plain file name from any text of a client: no folders, no control characters, limited length.

    A name that is only an extension, or has only invisible characters before it, gets the default stem, because file
    managers hide files named `.stl`. The result is only a label; uploads are never stored under it.
    """
    last = filename.replace("\\", "/").rstrip("/").rpartition("/")[2]
    name = _clean_component(last)
    before, dot, after = name.rpartition(".")
    if not any(map(_is_visible, before or after)):
        name = dot + after if before else ""
    extension = _ONLY_EXTENSION.fullmatch(name)
    return f"{default}.{extension[1]}" if extension else name or default


def _is_visible(character: str) -> bool:
    # Separators (Z) and format characters (Cf) are invisible: a zero-width space, a byte order mark
    return unicodedata.category(character)[0] not in "ZC"


def folder_label(path: str) -> str:
    """Return the folders of an archive entry as safe labels; "" for an entry at the top."""
    components = path.replace("\\", "/").split("/")[:-1]
    return "/".join(filter(None, map(_clean_component, components)))


def _clean_component(text: str) -> str:
    text = unicodedata.normalize("NFC", text)
    text = _NOT_IN_NAMES.sub("_", _CONTROL.sub("", text)).strip()
    text = text.rstrip(". ") if text.strip(". ") else ""
    if _DEVICES.fullmatch(text):
        text = "_" + text
    if len(text.encode()) > _MAX_BYTES:
        before, dot, extension = text.rpartition(".")
        end = dot + extension if before and len(extension) <= _MAX_EXTENSION_LENGTH else ""
        text = text.encode()[: _MAX_BYTES - len(end.encode())].decode(errors="ignore") + end
    return text


def stem(name: str) -> str:
    """Return a file name without its last extension; a name that consists of an extension stays as it is."""
    before, dot, _ = name.rpartition(".")
    return before if dot and before else name


class EntryNames:
    """Unique entry names of a result archive, also on file systems that ignore case."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        """Never assign the `reserved` names."""
        self._used = {_normalize(name) for name in reserved}

    def assign(self, folder: str, base: str, extension: str) -> str:
        """Assign the name of a converted file: its stem and the new extension; `-2` distinguishes a second one."""
        number = 1
        while True:
            suffix = "" if number == 1 else f"-{number}"
            name = entry_path(folder, f"{base}{suffix}{extension}")
            if self.is_free(name):
                self._used.add(_normalize(name))
                return name
            number += 1

    def is_free(self, name: str) -> bool:
        """Return whether a name is still unused."""
        return _normalize(name) not in self._used

    def reserve(self, name: str) -> None:
        """Mark a name as used."""
        self._used.add(_normalize(name))


def entry_path(folder: str, name: str) -> str:
    """Return the path of a file inside an archive."""
    return f"{folder}/{name}" if folder else name


def _normalize(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def content_disposition(name: str) -> str:
    """Return `attachment` with an ASCII `filename` for old clients and the full name in `filename*` (RFC 6266)."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode("ascii")
    plain = re.sub(r"[^A-Za-z0-9 ._()+=@-]", "_", plain).strip()
    base, dot, extension = plain.rpartition(".")
    if not base.strip(" ._"):
        plain = f"model{dot}{extension}" if dot else "model"
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
