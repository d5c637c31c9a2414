"""Kind, layer and height of printed lines, by the comments of slicers or by the moves."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from meshhub.model.scene import Float64
from meshhub.toolkit.names import single_line
from meshhub_gcode.words import Index

_TYPE = re.compile(rb"^[ \t]*;[ \t]*(?:TYPE|FEATURE|feature)(?::[ \t]*|[ \t]+)([^\r\n]{1,60})", re.MULTILINE)
_HEIGHT = re.compile(rb"^[ \t]*;[ \t]*(?:LAYER_)?HEIGHT:[ \t]*(\d{0,4}\.?\d{0,9})", re.MULTILINE)
_LAYER = re.compile(rb"^[ \t]*;[ \t]*(?:LAYER_CHANGE|CHANGE_LAYER|LAYER:[ \t]*-?\d+|layer \d+, Z)", re.MULTILINE)

UNKNOWN = "Toolpath"
"""Kind of lines without a comment."""

_MAX_KINDS_COUNT = 64
"""Kinds of lines that become parts; slicers have about fifteen."""

_DEFAULT_HEIGHT_MM = 0.2
"""Millimeters of a line on the bed or below the last one, where neither comments nor layers state a height."""

_ROUND_MM = 1e-3
"""Millimeters between heights that are the same layer."""


class Marks(NamedTuple):
    """Comments of a file that describe the lines after them.

    kinds:      names of the kinds; the first is that before any comment
    kind_at:    (k,) line of each comment, ascending
    kind:       (k,) number of the kind from there
    height_at:  (h,) line of each comment with a height
    height:     (h,) millimeters from there
    layer_at:   (l,) line of each comment that begins a layer
    """

    kinds: list[str]
    kind_at: Index
    kind: Index
    height_at: Index
    height: Float64
    layer_at: Index


def read_marks(text: bytes) -> Marks:
    """Find the comments that describe lines."""
    newlines = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))
    kinds = [UNKNOWN]
    numbers: dict[bytes, int] = {}
    places, kind = [], []
    for match in _TYPE.finditer(text):
        number = numbers.get(match[1])
        if number is None:
            name = single_line(match[1].decode("utf-8", "replace")).strip() or UNKNOWN
            name = name.replace("-", " ").capitalize() if name.isupper() else name
            if name not in kinds and len(kinds) < _MAX_KINDS_COUNT:
                kinds.append(name)
            number = numbers[match[1]] = kinds.index(name) if name in kinds else 0
        places.append(match.start(1))
        kind.append(number)
    heights = [(match.start(1), float(match[1])) for match in _HEIGHT.finditer(text) if match[1].strip(b".")]
    layers = [match.end() for match in _LAYER.finditer(text)]
    return Marks(
        kinds,
        np.searchsorted(newlines, np.array(places, np.int64)),
        np.array(kind, np.int64),
        np.searchsorted(newlines, np.array([place for place, _ in heights], np.int64)),
        np.array([height for _, height in heights], np.float64),
        np.searchsorted(newlines, np.array(layers, np.int64)),
    )


def find_kinds(marks: Marks, line: Index) -> Index:
    """Return the number of the kind of the commands on lines."""
    return np.append(0, marks.kind)[np.searchsorted(marks.kind_at, line, side="right")]


def list_layers(marks: Marks, line: Index, z: Float64) -> Float64:
    """Return the heights of the tops of the layers of printed lines, in the order of printing, in millimeters.

    Layers are those that comments begin, otherwise different heights.

    Args:
        marks: Comments.
        line: (n,) line of the command of each printed line.
        z: (n,) height of its end in millimeters.
    """
    if not len(marks.layer_at):
        return np.unique(np.rint(z / _ROUND_MM)) * _ROUND_MM
    _, layer = np.unique(np.searchsorted(marks.layer_at, line), return_inverse=True)
    tops = np.full(layer.max(initial=-1) + 1, -np.inf)
    np.maximum.at(tops, layer, z)
    return tops


def find_heights(marks: Marks, line: Index, z: Float64) -> Float64:
    """Return how high printed lines are, in millimeters: as comments state, otherwise down to the layer below."""
    levels = np.unique(np.rint(z / _ROUND_MM)) * _ROUND_MM
    level = np.searchsorted(levels, z - _ROUND_MM / 2)
    below = np.concatenate([[0.0], levels])[np.minimum(level, len(levels) - 1)]
    heights = z - below
    heights = np.where(heights > _ROUND_MM, heights, _DEFAULT_HEIGHT_MM)
    if len(marks.height_at):
        at = np.searchsorted(marks.height_at, line, side="right") - 1
        stated = np.where(at >= 0, marks.height[np.maximum(at, 0)], 0.0)
        heights = np.where(stated > _ROUND_MM, stated, heights)
    return heights
