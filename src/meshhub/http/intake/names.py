"""Names: harmless labels for uploads, entries of result archives, Content-Disposition."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from urllib.parse import quote

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
_NOT_IN_NAMES = re.compile(r'[<>:"|?*]')
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE | re.ASCII)
_LONGEST = 150


def label(sent: str, otherwise: str = "model") -> str:
    """A plain file name from whatever a client sent: no folders, no control characters, not too long.

    It only labels: an upload is never stored under it.
    """
    last = sent.replace("\\", "/").rstrip("/").rpartition("/")[2]
    return _component(last) or otherwise


def folder_label(path: str) -> str:
    """The folders of an archive's entry, each made harmless; "" when it lies at the top."""
    parts = path.replace("\\", "/").split("/")[:-1]
    return "/".join(part for part in (_component(one) for one in parts) if part)


def _component(text: str) -> str:
    text = unicodedata.normalize("NFC", text)
    text = _NOT_IN_NAMES.sub("_", _CONTROL.sub("", text)).strip()
    text = text.rstrip(". ") if text.strip(". ") else ""
    if _DEVICES.fullmatch(text):
        text = "_" + text
    if len(text) > _LONGEST:
        stem, dot, extension = text.rpartition(".")
        cut = _LONGEST - len(dot + extension)
        text = (stem[:cut] + dot + extension) if stem and cut > 0 else text[:_LONGEST]
    return text


def stem(name: str) -> str:
    """A file name without its last extension; a name that is all extension is kept."""
    before, dot, _ = name.rpartition(".")
    return before if dot and before else name


class EntryNames:
    """Gives out the names of a result archive's entries; none twice, also where case is not told apart."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        """`taken` are never given out."""
        self._taken = {_same(name) for name in taken}

    def take(self, folder: str, base: str, extension: str) -> str:
        """The name for a converted file: its stem and the new extension; a second one gets `-2`."""
        number = 1
        while True:
            ending = "" if number == 1 else f"-{number}"
            name = joined(folder, f"{base}{ending}{extension}")
            if self.free(name):
                self._taken.add(_same(name))
                return name
            number += 1

    def free(self, name: str) -> bool:
        """Whether a name may still be given out."""
        return _same(name) not in self._taken

    def hold(self, name: str) -> None:
        """Take a name as it is."""
        self._taken.add(_same(name))


def joined(folder: str, name: str) -> str:
    """A path inside an archive."""
    return f"{folder}/{name}" if folder else name


def _same(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def content_disposition(name: str) -> str:
    """`attachment` with an ASCII `filename` for old clients and the whole name in `filename*` (RFC 6266)."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode("ascii")
    plain = re.sub(r"[^A-Za-z0-9 ._()+=@-]", "_", plain).strip()
    base, dot, extension = plain.rpartition(".")
    if not base.strip(" ._"):
        plain = f"model{dot}{extension}" if dot else "model"
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
