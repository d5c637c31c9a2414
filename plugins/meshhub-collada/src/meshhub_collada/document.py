"""COLLADA document: the tree, its ids, its frame, and the files that it refers to."""

from __future__ import annotations

import posixpath
from urllib.parse import unquote
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray

from meshhub import Frame, Source, UnreadableFile
from meshhub.errors import quote
from meshhub.model.capabilities import MILLIMETERS_PER, Up
from meshhub.model.scene import Float64
from meshhub.toolkit.archive import Archive, ArchiveLimits
from meshhub.toolkit.columns import Irregular, read_numbers
from meshhub.toolkit.safe_xml import read_xml_tree

_LIMITS = ArchiveLimits(ratio_after=64 << 20)
"""Bytes before the compression ratio is limited, because text of regular geometry exceeds 100:1."""

_MAX_IMAGE_BYTES = 256 << 20
"""Maximum bytes of an image; larger ones cannot be shown."""

_MAX_DEPTH_COUNT = 512
"""Maximum nested elements; each node of a hierarchy is one, and bones of characters form long chains."""

_MAX_ELEMENTS_COUNT = 2_000_000
"""Maximum elements of a document; each takes about 500 bytes of memory."""

_UNIT_TOLERANCE_RATIO = 1e-6
"""Relative difference up to which a unit counts as a known one; `0.0254000001` is an inch."""

# columns: the X, Y and Z axes of the file in a frame with Y up (COLLADA 1.4.1, <up_axis>)
_X_UP_TO_Y_UP = np.array([[0.0, -1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])


def numbers(text: str | None, dtype: str, what: str) -> NDArray[np.generic]:
    """Return the numbers of a text.

    Raises:
        UnreadableFile: The text contains anything but numbers; the message names `what`.
    """
    # some exporters write the decimal comma of their user's language
    plain = (text or "").replace(",", ".").encode()
    try:
        values, _ = read_numbers(plain, dtype)
    except Irregular as error:
        raise UnreadableFile(f"{what} has {quote(error.word)}, which is not a number; export it again") from None
    return values


def _parse(data: bytes) -> Element:
    """Return the tree of a document, with names without namespaces."""
    return read_xml_tree(
        data, "the XML", max_elements=_MAX_ELEMENTS_COUNT, max_depth=_MAX_DEPTH_COUNT, namespaces=False
    )


def child(element: Element | None, *names: str) -> Element | None:
    """Return the descendant at a path of names; None without one."""
    for name in names:
        element = None if element is None else element.find(name)
    return element


class Document:
    """Parsed file.

    Attributes:
        root: The <COLLADA> element.
        ids: Elements by id; the first of equal ids.
    """

    def __init__(self, source: Source) -> None:
        """Parse a .dae file, or a .zae archive.

        Raises:
            UnreadableFile: The file is damaged, or not COLLADA.
            UnsafeArchive: The archive exceeds a limit.
        """
        self._source = source
        self._files: dict[str, bytes] = {}
        self._base = ""
        self.root = _parse(self._open())
        if self.root.tag != "COLLADA":
            raise UnreadableFile(f"the root element is {self.root.tag[:40]!r}, not 'COLLADA'; check the format")
        self.ids: dict[str, Element] = {}
        for element in self.root.iter():
            if "id" in element.attrib:
                self.ids.setdefault(element.attrib["id"], element)

    def _open(self) -> bytes:
        if not self._source.head(4).startswith(b"PK\3\4"):
            return self._source.read()
        with Archive(self._source.read(), _LIMITS) as archive:
            models = [entry.name for entry in archive.entries if entry.name.lower().endswith(".dae")]
            manifest = archive.find("manifest.xml")
            named = _parse(archive.read(manifest)).text if manifest else None
            model = archive.find(unquote((named or "").partition("#")[0].strip()).removeprefix("./"))
            if model is None and not models:
                raise UnreadableFile("the ZIP archive has no .dae file; check the format of the file")
            model = model or models[0]
            self._base = posixpath.dirname(model)
            self._files = {
                entry.name.casefold(): archive.read(entry.name, _MAX_IMAGE_BYTES)
                for entry in archive.entries
                if entry.name != model and not entry.name.lower().endswith((".dae", ".xml"))
            }
            return archive.read(model)

    def find_file(self, reference: str) -> bytes | None:
        """Return the content of a file that the document refers to; None if it is missing."""
        path = unquote(reference).replace("\\", "/").removeprefix("file://")
        key = posixpath.normpath(posixpath.join(self._base, path)).casefold()
        if key in self._files:
            return self._files[key]
        name = posixpath.basename(path).casefold()
        for other, data in self._files.items():
            if name and posixpath.basename(other) == name:
                return data
        sibling = self._source.sibling(path)
        return None if sibling is None or sibling.size > _MAX_IMAGE_BYTES else sibling.read()

    def resolve(self, url: str | None) -> Element | None:
        """Return the element of a reference within the document."""
        return self.ids.get((url or "").strip().removeprefix("#"))

    def frame(self) -> tuple[Frame, Float64]:
        """Return the frame of the scene, and the (4, 4) matrix from the coordinates of the file to it.

        Raises:
            UnreadableFile: The unit is not a positive number.
        """
        up = (self.root.findtext("asset/up_axis") or "Y_UP").strip().upper()
        matrix = _X_UP_TO_Y_UP.copy() if up == "X_UP" else np.eye(4)
        axis: Up = "z" if up == "Z_UP" else "y"
        unit = self.root.find("asset/unit")
        text = "1" if unit is None else unit.get("meter", "1")
        try:
            mm = float(text.replace(",", ".")) * MILLIMETERS_PER["m"]
        except ValueError:
            mm = np.nan
        if not (np.isfinite(mm) and mm > 0):
            raise UnreadableFile(f"the unit of {text[:40]!r} meters is not a positive number; correct it in the file")
        for name, millimeters in MILLIMETERS_PER.items():
            if abs(mm / millimeters - 1) < _UNIT_TOLERANCE_RATIO:
                return Frame(name, axis), matrix
        return Frame("mm", axis), np.diag([mm, mm, mm, 1.0]) @ matrix
