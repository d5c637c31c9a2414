"""Part and material of each face, from the `o`, `g` and `usemtl` statements in effect."""

# why this way: docs/decisions/0009-obj-groups.md
from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import numpy as np

from meshhub.builtin_plugins.obj.reading.connectivity import Labels, join_groups, join_objects
from meshhub.builtin_plugins.obj.reading.faces import Faces
from meshhub.builtin_plugins.obj.reading.lines import USEMTL, G, Index, Lines, O
from meshhub.model.notes import note
from meshhub.model.scene import Int32
from meshhub.toolkit.geometry import weld

MAX_PARTS_COUNT = 20_000
"""Maximum parts or materials per file; more than any model has, and each costs objects and output."""

_COMMENT = re.compile(r"\s#(?:\s.*)?$")

_MAX_ARGUMENT_LENGTH = 1000
"""Maximum characters of a name; bounds the work on hostile lines."""


@dataclass(frozen=True)
class PartName:
    """Name of a part, and the names of the objects that contain it."""

    name: str = ""
    path: tuple[str, ...] = ()


def read_argument(lines: Lines, number: int) -> str:
    """Return the text of a line after its keyword, without a comment at the end."""
    _, _, argument = lines.decode(number).strip().partition(" ")
    return _COMMENT.sub("", " " + argument[:_MAX_ARGUMENT_LENGTH]).strip()


def assign_parts(lines: Lines, faces: Faces) -> tuple[Int32, list[PartName]]:
    """Assign each face to a part.

    A repeated name continues its group; an object ends the group before it. Groups of one object that share vertices
    become one part, and so do objects that only together close a surface.

    Returns:
        (p,) part of each face, and the name of each part, in the order of their first faces.
    """
    objects, groups = lines.find(O), lines.find(G)
    face_object, object_names = _names_in_effect(lines, objects, faces.line)
    face_group, group_names = _names_in_effect(lines, groups, faces.line, ended_by=objects)
    if len(object_names) * len(group_names) == 1:
        return np.zeros(len(faces.line), np.int32), [PartName()]
    keys = face_object.astype(np.int64) * len(group_names) + face_group
    first, group = weld(keys[:, None])
    if len(first) == 1:
        return group, [_part_name(object_names[face_object[0]], group_names[face_group[0]])]
    owner = join_objects(face_object, faces)
    surface = join_groups(group, len(first), owner, faces)
    # the groups of each surface; both are numbered by first face
    members: list[list[int]] = [[] for _ in range(int(surface.max()) + 1)]
    for group_number, surface_number in enumerate(surface.tolist()):
        members[surface_number].append(group_number)
    if len(members) > MAX_PARTS_COUNT:
        note(
            "too_many_groups",
            f"the OBJ has more than {MAX_PARTS_COUNT} groups: joined them and dropped their names",
            limit=MAX_PARTS_COUNT,
        )
        return _assign_objects(owner, object_names)
    _note_joined_groups(members)
    object_of_group = [object_names[index] for index in face_object[first].tolist()]
    name_of_group = [group_names[index] for index in face_group[first].tolist()]
    owner_of_group = owner[first].tolist()
    joined_per_owner = Counter(owner_of_group[groups[0]] for groups in members if len(groups) > 1)
    part_names = [
        _joined_name(
            [object_of_group[index] for index in groups],
            [name_of_group[index] for index in groups],
            is_only=joined_per_owner[owner_of_group[groups[0]]] == 1,
        )
        for groups in members
    ]
    return surface[group], part_names


def _note_joined_groups(members: list[list[int]]) -> None:
    """Note how many groups became how many parts; `members` are the groups of each part."""
    joined = [groups for groups in members if len(groups) > 1]
    if joined:
        note(
            "groups_joined",
            f"{sum(map(len, joined))} groups or objects of the OBJ share vertices: read them as {len(joined)} "
            f"part{'s' if len(joined) > 1 else ''}, with their materials",
            count=sum(map(len, joined)),
            parts=len(joined),
        )


def _joined_name(object_names: list[str], group_names: list[str], *, is_only: bool) -> PartName:
    """Name a part after its object and its groups.

    A part of several groups has the name of its object. If the object has no name, or contains other parts of several
    groups, that name would not be unique, so the name of the first group is added.
    """
    if len(object_names) == 1:
        return _part_name(object_names[0], group_names[0])
    object_name = next(filter(None, object_names), "")
    if object_name and is_only:
        return PartName(object_name)
    return _part_name(object_name, next(filter(None, group_names), ""))


def _part_name(object_name: str, group_name: str) -> PartName:
    if group_name and object_name and group_name != object_name:
        return PartName(group_name, (object_name,))
    return PartName(group_name or object_name)


def _assign_objects(owner: Labels, names: list[str]) -> tuple[Int32, list[PartName]]:
    """Assign each face to a part per object, or to one part if there are too many objects."""
    first, part = weld(owner[:, None])
    if len(first) > MAX_PARTS_COUNT:
        return np.zeros(len(owner), np.int32), [PartName()]
    return part, [PartName(names[index]) for index in owner[first].tolist()]


def assign_materials(lines: Lines, face_lines: Index) -> tuple[Int32 | None, list[str]]:
    """Return the (p,) material of each face, -1 for none, and the material names; None if no face has one."""
    name_index, names = _names_in_effect(lines, lines.find(USEMTL), face_lines)
    if not name_index.any():
        return None, []
    if len(names) > MAX_PARTS_COUNT:
        note(
            "too_many_materials",
            f"the OBJ uses more than {MAX_PARTS_COUNT} materials: dropped them",
            limit=MAX_PARTS_COUNT,
        )
        return None, []
    return name_index - np.int32(1), names[1:]


def _names_in_effect(
    lines: Lines, statements: Index, face_lines: Index, *, ended_by: Index | None = None
) -> tuple[Int32, list[str]]:
    """Return the name that the last statement before each face gives.

    Args:
        statements: Line numbers of the statements.
        face_lines: (p,) line number of each face.
        ended_by: Line numbers of statements that end the effect.
    Returns:
        (p,) index into the names, and the names; name 0 is empty.
    """
    names: dict[str, int] = {"": 0}
    if len(statements) == 0:
        return np.zeros(len(face_lines), np.int32), list(names)
    last = np.searchsorted(statements, face_lines) - 1
    if ended_by is not None and len(ended_by):
        end = np.searchsorted(ended_by, face_lines) - 1
        is_ended = (end >= 0) & (ended_by[np.maximum(end, 0)] > statements[np.maximum(last, 0)])
        last = np.where(is_ended, -1, last)
    runs = np.flatnonzero(np.diff(last, prepend=-2))
    name_indices: list[int] = []
    for statement in last[runs].tolist():
        name = read_argument(lines, int(statements[statement])) if statement >= 0 else ""
        name_indices.append(names.setdefault(name, len(names)))
    return np.repeat(np.array(name_indices, np.int32), np.diff(runs, append=len(last))), list(names)
