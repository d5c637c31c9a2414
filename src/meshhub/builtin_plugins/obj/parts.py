"""Objects, groups and materials of an OBJ file: which of them is in force at each face."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from meshhub.builtin_plugins.obj.lines import USEMTL, G, Index, Lines, O
from meshhub.geometry import weld
from meshhub.notes import note
from meshhub.scene import Int32

PARTS = 20_000
"""More parts than any model has; beyond it groups are no longer told apart."""

_REMARK = re.compile(r"\s#(?:\s.*)?$")
_LONGEST = 1000


@dataclass(frozen=True)
class Place:
    """A part's name and the names of what it is in."""

    name: str = ""
    path: tuple[str, ...] = ()


def argument(lines: Lines, number: int) -> str:
    """What a line says after its keyword, without a remark at its end."""
    _, _, rest = lines.line(number).strip().partition(" ")
    return _REMARK.sub("", " " + rest[:_LONGEST]).strip()


def parts_of_faces(lines: Lines, face_lines: Index) -> tuple[Int32, list[Place]]:
    """Which part each face belongs to, and the parts in the order of their first faces.

    The same name again goes on with the part; an object ends the group before it.
    """
    objects, groups = lines.of(O), lines.of(G)
    at_object, object_names = _in_force(lines, objects, face_lines)
    at_group, group_names = _in_force(lines, groups, face_lines, objects)
    keys = at_object.astype(np.int64) * len(group_names) + at_group
    if len(object_names) * len(group_names) == 1:
        return np.zeros(len(face_lines), np.int32), [Place()]
    first, part = weld(keys[:, None])
    if len(first) > PARTS:
        first, part = weld(at_object[:, None])
        at_group = np.zeros_like(at_group)
        group_names = [""]
        if len(first) > PARTS:
            first, part = weld(np.zeros((len(face_lines), 1), np.int32))
            at_object, object_names = np.zeros_like(at_object), [""]
        note("too_many_groups", f"the OBJ has more than {PARTS} groups: they were joined, and their names left out")
    places: list[Place] = []
    for face in first.tolist():
        above, own = object_names[at_object[face]], group_names[at_group[face]]
        if own and above and own != above:
            places.append(Place(own, (above,)))
        else:
            places.append(Place(own or above))
    return part, places


def materials_of_faces(lines: Lines, face_lines: Index) -> tuple[Int32 | None, list[str]]:
    """The index of each face's material among the names used, -1 for none; None when no face has one."""
    used, names = _in_force(lines, lines.of(USEMTL), face_lines)
    if not used.any():
        return None, []
    if len(names) > PARTS:
        note("too_many_materials", f"the OBJ uses more than {PARTS} materials: they were left out")
        return None, []
    return used - np.int32(1), names[1:]


def _in_force(
    lines: Lines, statements: Index, face_lines: Index, ended_by: Index | None = None
) -> tuple[Int32, list[str]]:
    """The name that the last such statement before each face gives, as an index into the names; 0 is no name."""
    names: dict[str, int] = {"": 0}
    if len(statements) == 0:
        return np.zeros(len(face_lines), np.int32), list(names)
    last = np.searchsorted(statements, face_lines) - 1
    if ended_by is not None and len(ended_by) and len(statements):
        end = np.searchsorted(ended_by, face_lines) - 1
        ended = (end >= 0) & (ended_by[np.maximum(end, 0)] > statements[np.maximum(last, 0)])
        last = np.where(ended, -1, last)
    runs = np.flatnonzero(np.diff(last, prepend=-2))
    numbers: list[int] = []
    for which in last[runs].tolist():
        name = argument(lines, int(statements[which])) if which >= 0 else ""
        numbers.append(names.setdefault(name, len(names)))
    return np.repeat(np.array(numbers, np.int32), np.diff(runs, append=len(last))), list(names)
