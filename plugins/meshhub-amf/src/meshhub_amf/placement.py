"""Constellations of AMF: nested groups of placed objects."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from xml.etree.ElementTree import Element

import numpy as np

from meshhub import ModelTooComplex, Part, UnreadableFile, note
from meshhub.model.scene import Float64
from meshhub_amf.objects import Volume, metadata_of

_MAX_PARTS_COUNT = 100_000
"""Maximum placed parts, because nested constellations multiply, so that a small file can describe billions."""

_MAX_DEPTH_COUNT = 32
"""Maximum nested constellations; real files have one or two levels."""

Objects = Mapping[str, tuple[Volume, ...]]


def place_objects(root: Element, objects: Objects, *, is_radians: bool) -> tuple[Part, ...]:
    """Return the parts of a file: its outermost constellations, and the objects that no constellation contains.

    Args:
        root: The <amf> element.
        objects: Volumes by id of the object.
        is_radians: Whether angles are radians, as Slic3r and PrusaSlicer write them, instead of degrees.
    Raises:
        UnreadableFile: An instance refers to a missing object, or a constellation contains itself.
        ModelTooComplex: The constellations place too many parts.
    """
    constellations = index_by_id(root.findall("constellation"))
    instances = [instance for element in constellations.values() for instance in element.findall("instance")]
    walk = _Walk(constellations, objects, is_radians)
    placed = {walk.find(instance.get("objectid", "")) for instance in instances}
    has_printable = any(map(_is_printable, instances)) or any((True, name) not in placed for name in objects)
    if instances and not has_printable:
        note("not_printable_read", "the file marks all its objects as not printable; all of them were read")
        walk.skips_unprintable = False
    parts: list[Part] = []
    for target in (*((False, name) for name in constellations), *((True, name) for name in objects)):
        if target in placed:
            continue
        for part in walk.parts(target, np.eye(4), (), ""):
            parts.append(part)
            if len(parts) > _MAX_PARTS_COUNT:
                raise ModelTooComplex(f"the constellations place more than {_MAX_PARTS_COUNT} parts; split the file")
    for name in constellations.keys() - walk.visited:
        # only a cycle, or an instance that is not printed, can be unreachable
        deque(walk.parts((False, name), np.eye(4), (), ""), maxlen=0)
    return tuple(parts)


def index_by_id(elements: list[Element]) -> dict[str, Element]:
    """Return elements by their id; further elements with the same id or without one get keys that no file has."""
    index: dict[str, Element] = {}
    for number, element in enumerate(elements):
        name = element.get("id", "")
        index[f"{name}\0{number}" if name in index else name] = element
    return index


def _is_printable(instance: Element) -> bool:
    return (instance.findtext("printable") or "1").strip() != "0"


Target = tuple[bool, str]
"""Whether an id is that of an object, and the id; programs count objects and constellations separately."""


class _Placement(NamedTuple):
    """Instance of an object or constellation."""

    target: Target
    matrix: Float64
    name: str


class _Walk:
    """Recursive expansion of constellations.

    Attributes:
        visited: Ids of the constellations that were expanded.
        skips_unprintable: Whether instances that are marked as not printable are left out.
    """

    def __init__(self, constellations: Mapping[str, Element], objects: Objects, is_radians: bool) -> None:
        self.visited: set[str] = set()
        self.skips_unprintable = True
        self._constellations = constellations
        self._objects = objects
        self._is_radians = is_radians
        self._placements: dict[str, tuple[_Placement, ...]] = {}
        self._open: list[str] = []
        self._steps_count = 0

    def find(self, name: str) -> Target:
        """Return the target of an instance: an object, or else a constellation. Raises UnreadableFile without one."""
        names: Mapping[str, object] = self._objects if name in self._objects else self._constellations
        if name not in names:
            raise UnreadableFile(f"a constellation refers to object {name[:40]!r}, which the file does not have")
        if any(other.startswith(name + "\0") for other in names):
            raise UnreadableFile(
                f"several objects have the id {name[:40]!r}, which a constellation refers to; renumber them"
            )
        return name in self._objects, name

    def parts(self, target: Target, matrix: Float64, path: tuple[str, ...], part_name: str) -> Iterator[Part]:
        """Yield the parts of an object or constellation."""
        self._steps_count += 1
        if self._steps_count > 4 * _MAX_PARTS_COUNT:
            raise ModelTooComplex("the constellations are nested too often; split the file")
        is_object, name = target
        if not is_object:
            yield from self._constellation_parts(name, matrix, path)
            return
        for volume in self._objects[name]:
            yield Part(volume.mesh, matrix, part_name or volume.name, (*path, *volume.path), volume.material)

    def _constellation_parts(self, name: str, matrix: Float64, path: tuple[str, ...]) -> Iterator[Part]:
        if name in self._open:
            raise UnreadableFile(f"constellation {name[:40]!r} contains itself; correct the file")
        if len(self._open) == _MAX_DEPTH_COUNT:
            raise UnreadableFile(f"constellations are nested more than {_MAX_DEPTH_COUNT} deep; simplify the file")
        self._open.append(name)
        if name not in self.visited:
            self.visited.add(name)
            self._placements[name] = tuple(self._read_placements(self._constellations[name]))
        group = metadata_of(self._constellations[name]).get("name", "")
        for placement in self._placements[name]:
            child_path = (*path, group) if group else path
            yield from self.parts(placement.target, matrix @ placement.matrix, child_path, placement.name)
        self._open.pop()

    def _read_placements(self, constellation: Element) -> Iterator[_Placement]:
        for instance in constellation.findall("instance"):
            if self.skips_unprintable and not _is_printable(instance):
                note("instance_skipped", "skipped an instance that is marked as not printable")
                continue
            yield _Placement(
                self.find(instance.get("objectid", "")), self._matrix(instance), metadata_of(instance).get("name", "")
            )

    def _matrix(self, instance: Element) -> Float64:
        """Return the matrix of an instance: scale and mirror, rotations about X, Y and Z, then the translation."""
        angles = [_number(instance, name, 0.0) for name in ("rx", "ry", "rz")]
        x, y, z = angles if self._is_radians else np.radians(angles)
        overall = _number(instance, "scale", 1.0)
        matrix = np.eye(4)
        matrix[:3, :3] = _rotation(2, z) @ _rotation(1, y) @ _rotation(0, x)
        for axis, letter in enumerate("xyz"):
            scale = overall * _number(instance, "scale" + letter, 1.0) * _number(instance, "mirror" + letter, 1.0)
            matrix[:3, axis] *= scale
            matrix[axis, 3] = _number(instance, "delta" + letter, 0.0)
        return matrix


def _rotation(axis: int, angle: float) -> Float64:
    """Return the (3, 3) rotation about an axis, counter-clockwise seen from its tip."""
    first, second = (axis + 1) % 3, (axis + 2) % 3
    matrix = np.eye(3)
    matrix[first, first] = matrix[second, second] = np.cos(angle)
    matrix[second, first] = np.sin(angle)
    matrix[first, second] = -matrix[second, first]
    return matrix


def _number(element: Element, name: str, default: float) -> float:
    """Return the number in a child element. Raises UnreadableFile."""
    text = element.findtext(name)
    try:
        value = default if text is None or not text.strip() else float(text)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise UnreadableFile(f"an instance has {name} {text!r:.40}, which is not a number; correct the file")
    return value
