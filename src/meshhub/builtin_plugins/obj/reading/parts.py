"""Objects, groups and materials of an OBJ file: which of them is in force at each face."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import numpy as np

from meshhub.builtin_plugins.obj.reading.faces import Faces
from meshhub.builtin_plugins.obj.reading.lines import USEMTL, G, Index, Lines, O
from meshhub.builtin_plugins.obj.reading.seams import Labels, joined_groups, joined_objects
from meshhub.model.notes import note
from meshhub.model.scene import Int32
from meshhub.toolkit.geometry import weld

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


def parts_of_faces(lines: Lines, faces: Faces) -> tuple[Int32, list[Place]]:
    """Which part each face belongs to, and the parts in the order of their first faces.

    The same name again goes on with the group; an object ends the group before it. Groups of one object
    that share vertices are one part, and so are objects that only together close a surface.
    """
    objects, groups = lines.of(O), lines.of(G)
    at_object, object_names = _in_force(lines, objects, faces.line)
    at_group, group_names = _in_force(lines, groups, faces.line, objects)
    if len(object_names) * len(group_names) == 1:
        return np.zeros(len(faces.line), np.int32), [Place()]
    keys = at_object.astype(np.int64) * len(group_names) + at_group
    first, group = weld(keys[:, None])
    if len(first) == 1:
        return group, [_place(object_names[at_object[0]], group_names[at_group[0]])]
    owner = joined_objects(at_object, faces)
    surface = joined_groups(group, len(first), owner, faces)
    # the names of each surface's groups; both are numbered by their first faces
    above = [object_names[index] for index in at_object[first].tolist()]
    own = [group_names[index] for index in at_group[first].tolist()]
    members: list[list[int]] = [[] for _ in range(int(surface.max()) + 1)]
    for number, made in enumerate(surface.tolist()):
        members[made].append(number)
    if len(members) > PARTS:
        note("too_many_groups", f"the OBJ has more than {PARTS} groups: they were joined, and their names left out")
        return _without_groups(owner, object_names)
    several = [one for one in members if len(one) > 1]
    if several:
        note(
            "groups_joined",
            f"{sum(map(len, several))} groups or objects of the OBJ share vertices and are pieces of "
            f"{len(several)} surface{'s' if len(several) > 1 else ''}: read as {len(several)} "
            f"part{'s' if len(several) > 1 else ''}, with their materials",
        )
    whose = owner[first].tolist()
    surfaces_of = Counter(whose[one[0]] for one in several)
    places = [_named(one, above, own, alone=surfaces_of[whose[one[0]]] == 1) for one in members]
    return surface[group], places


def _named(members: list[int], above: list[str], own: list[str], *, alone: bool) -> Place:
    """What a part of some groups is called, given the names of all groups' objects and their own.

    A joined part takes the object's name, or its first group's where there is none or where it is not `alone`: the
    only joined one of its object.
    """
    if len(members) == 1:
        return _place(above[members[0]], own[members[0]])
    named = next((above[one] for one in members if above[one]), "")
    if named and alone:
        return Place(named)
    return _place(named, next((own[one] for one in members if own[one]), ""))


def _place(above: str, own: str) -> Place:
    return Place(own, (above,)) if own and above and own != above else Place(own or above)


def _without_groups(owner: Labels, names: list[str]) -> tuple[Int32, list[Place]]:
    """A part for each object, or one for all when there are too many objects too."""
    first, part = weld(owner[:, None])
    if len(first) > PARTS:
        return np.zeros(len(owner), np.int32), [Place()]
    return part, [Place(names[index]) for index in owner[first].tolist()]


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
