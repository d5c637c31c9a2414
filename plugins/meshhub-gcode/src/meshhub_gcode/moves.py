"""Follow the commands of G-code: positions, filament, tools and time of all moves, without a loop over them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub import note
from meshhub.model.scene import Float64
from meshhub_gcode.words import Commands, Index

Flags = NDArray[np.bool_]

_INCH_MM = 25.4
_MAX_TOOL = 63
"""Largest number of a tool; printers use larger ones for other purposes, such as T255 to unload."""

_MAX_ARC_POINTS_COUNT = 64
"""Maximum straight lines of an arc; bounds the memory for arcs of huge radius."""

DEFAULT_SPEED_MM_S = 25.0
"""Millimeters per second before the first F, that of Marlin."""


class Moves(NamedTuple):
    """Straight moves, in order. An arc becomes several.

    line:     (n,) line of the command, from 0
    start:    (n, 3) position before the move, in millimeters
    end:      (n, 3) position after the move
    filament: (n,) millimeters of filament that the move pushes; negative for a retraction
    tool:     (n,) number of the tool
    speed:    (n,) millimeters per second
    acceleration: (n,) millimeters per second², NaN where the file states none
    dwell_s:  seconds of all pauses
    """

    line: Index
    start: Float64
    end: Float64
    filament: Float64
    tool: Index
    speed: Float64
    acceleration: Float64
    dwell_s: float


def follow(commands: Commands, tolerance_mm: float) -> Moves:
    """Follow commands from the origin.

    Args:
        commands: Commands of a file.
        tolerance_mm: Maximum distance of a straight line from its arc.
    """
    is_move = commands.has("G0", "G1", "G2", "G3")
    scale = np.where(_last_is(commands, ["G20"], ["G21"]), _INCH_MM, 1.0)
    is_relative = _last_is(commands, ["G91"], ["G90"])
    # as PrusaSlicer: either makes the filament relative, because M83 survives G90 in the order of most files
    is_filament_relative = is_relative | _last_is(commands, ["M83"], ["M82"])
    words = commands.words
    is_set, is_home = commands.has("G92"), commands.has("G28")
    names_axis = np.isfinite(np.stack([words[axis] for axis in "XYZ"])).any(axis=0)
    # `G28 X` names its axis without a number, so all axes go home here; later positions are absolute, which corrects it
    axes = [
        _follow_axis(
            words[axis] * scale, is_move, is_set, is_relative, is_home & (~names_axis | _has_word(words[axis]))
        )
        for axis in "XYZ"
    ]
    position = np.stack(axes, axis=1)
    filament = np.diff(
        _follow_axis(words["E"] * scale, is_move, is_set, is_filament_relative, np.zeros(len(is_move), np.bool_)),
        prepend=0.0,
    )
    tool = _fill(np.where(commands.has("T0") & (words["T"] <= _MAX_TOOL), words["T"], np.nan), 0.0)
    speed = _fill(np.where(is_move, words["F"] * scale, np.nan), DEFAULT_SPEED_MM_S * 60) / 60
    is_printing = is_move & (filament > 0)
    accelerations = [
        _fill(np.where(commands.has("M204"), np.where(_has_word(words[own]), words[own], words["S"]), np.nan), np.nan)
        for own in "PT"
    ]
    pauses = commands.has("G4")
    dwell_s = float(np.nansum(words["S"][pauses]) + np.nansum(words["P"][pauses]) / 1000)

    chosen = np.flatnonzero(is_move)
    moves = Moves(
        commands.line[chosen],
        np.concatenate([np.zeros((1, 3)), position[:-1]])[chosen],
        position[chosen],
        filament[chosen],
        tool[chosen].astype(np.int64),
        np.maximum(speed[chosen], 1e-3),
        np.where(is_printing, *accelerations)[chosen],
        dwell_s,
    )
    is_arc = commands.has("G2", "G3")
    is_upright = is_arc & _last_is(commands, ["G18", "G19"], ["G17"])
    if is_upright.any():
        note("arcs_straightened", "arcs in the planes of G18 and G19 are drawn as straight lines")
    is_arc = (is_arc & ~is_upright)[chosen]
    if not is_arc.any():
        return moves
    return _divide_arcs(
        moves, is_arc, commands.has("G2")[chosen], [words[each][chosen] * scale[chosen] for each in "IJR"], tolerance_mm
    )


def _has_word(values: Float64) -> Flags:
    return np.isfinite(values)


def _fill(values: Float64, first: float) -> Float64:
    """Return each value, or the last one before it that is not NaN."""
    at = np.maximum.accumulate(np.where(np.isfinite(values), np.arange(1, len(values) + 1), 0))
    return np.concatenate([[first], values])[at]


def _last_is(commands: Commands, on: list[str], off: list[str]) -> Flags:
    """Return whether a mode is on at each command: off at first."""
    switched = np.where(commands.has(*on), 1.0, np.where(commands.has(*off), 0.0, np.nan))
    return _fill(switched, 0.0) > 0


def _follow_axis(values: Float64, is_move: Flags, is_set: Flags, is_relative: Flags, is_home: Flags) -> Float64:
    """Return the position after each command, which G92 does not change, because it only names it anew."""
    is_named = np.isfinite(values)
    steps = np.where(is_move & is_relative & is_named, values, 0.0)
    total = np.cumsum(steps)
    # names of positions: the last absolute value, and all steps since
    absolute = np.where(is_named & ((is_move & ~is_relative) | is_set), values - total, np.nan)
    absolute = np.where(is_home, -total, absolute)
    name = _fill(absolute, 0.0) + total
    renamed = np.where(is_set, np.diff(name, prepend=0.0), 0.0)
    position: Float64 = name - np.cumsum(renamed)
    return position


def _divide_arcs(moves: Moves, is_arc: Flags, is_clockwise: Flags, words: list[Float64], tolerance_mm: float) -> Moves:
    """Replace arcs by straight moves. An arc without a center or with an impossible radius is a straight line."""
    i, j, r = words
    start, end = moves.start[:, :2], moves.end[:, :2]
    chord = end - start
    half = np.linalg.norm(chord, axis=1) / 2
    turn = np.where(is_clockwise, -1.0, 1.0)
    # the center of a counterclockwise arc with a radius is on its left, or on its right with a negative radius
    height = np.sqrt(np.maximum(r * r - half * half, 0)) * np.sign(r) * turn
    left = np.stack([-chord[:, 1], chord[:, 0]], axis=1) / np.maximum(2 * half, 1e-12)[:, None]
    by_radius = (start + end) / 2 + left * height[:, None]
    by_center = start + np.stack([np.nan_to_num(i), np.nan_to_num(j)], axis=1)
    center = np.where(np.isfinite(r)[:, None], by_radius, by_center)
    first, last = start - center, end - center
    radius = np.linalg.norm(first, axis=1)
    angle = np.arctan2(first[:, 0] * last[:, 1] - first[:, 1] * last[:, 0], (first * last).sum(axis=1)) * turn
    # a full circle returns to its start
    angle = np.where(angle <= 1e-9, angle + 2 * np.pi, angle)
    is_curved = is_arc & (radius > tolerance_mm) & np.where(np.isfinite(r), half > 0, np.isfinite(i) | np.isfinite(j))
    step = 2 * np.arccos(np.clip(1 - tolerance_mm / np.maximum(radius, 1e-9), -1, 1))
    counts = np.where(is_curved, np.clip(np.ceil(angle / np.maximum(step, 1e-9)), 1, _MAX_ARC_POINTS_COUNT), 1)
    counts = counts.astype(np.int64)
    owner = np.repeat(np.arange(len(counts)), counts)
    number = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    count = counts[owner]

    def place(fraction: Float64) -> Float64:
        # height changes evenly along the arc
        points = moves.start[owner] + (moves.end - moves.start)[owner] * fraction[:, None]
        turned = angle[owner] * fraction * turn[owner]
        cosine, sine = np.cos(turned), np.sin(turned)
        x, y = first[owner].T
        curve = center[owner] + np.stack([x * cosine - y * sine, x * sine + y * cosine], axis=1)
        is_inner = is_curved[owner] & (fraction > 0) & (fraction < 1)
        points[:, :2] = np.where(is_inner[:, None], curve, points[:, :2])
        return points

    return Moves(
        moves.line[owner],
        place(number / count),
        place((number + 1) / count),
        moves.filament[owner] / count,
        moves.tool[owner],
        moves.speed[owner],
        moves.acceleration[owner],
        moves.dwell_s,
    )


def measure_filament(moves: Moves) -> dict[int, float]:
    """Return the millimeters of filament that each tool uses: the farthest that it was pushed."""
    return {
        tool: float(max(0.0, np.cumsum(moves.filament[moves.tool == tool]).max()))
        for tool in np.unique(moves.tool).tolist()
    }


class Machine(NamedTuple):
    """Limits of a printer.

    acceleration: millimeters per second² where the file states none
    max_acceleration: most millimeters per second² of a move
    jerk: (4,) millimeters per second by which X, Y, Z and the filament may change their speed at once
    """

    acceleration: float
    max_acceleration: float
    jerk: tuple[float, float, float, float]


def estimate_seconds(moves: Moves, machine: Machine) -> float:
    """Estimate the time of moves as a printer plans them: it accelerates evenly, and slows down for corners.

    Source:
        The planner of Marlin, with its classic jerk. Its two passes over neighboring moves are running minima.
    """
    steps = np.column_stack([moves.end - moves.start, moves.filament])
    distance = np.linalg.norm(steps[:, :3], axis=1)
    distance = np.where(distance > 0, distance, np.abs(moves.filament))
    is_used = distance > 1e-9
    steps, distance, speed = steps[is_used], distance[is_used], moves.speed[is_used]
    if len(distance) == 0:
        return moves.dwell_s
    stated = np.where(np.isfinite(moves.acceleration), moves.acceleration, machine.acceleration)[is_used]
    acceleration = np.clip(stated, 1.0, machine.max_acceleration)
    direction = steps / distance[:, None]
    change = np.abs(np.diff(direction, axis=0))
    corner = np.minimum(speed[1:], speed[:-1])
    corner = np.minimum(corner, (np.array(machine.jerk) / np.maximum(change, 1e-9)).min(axis=1))
    limit = np.concatenate([[0.0], corner, [0.0]]) ** 2
    # the square of the speed grows by at most 2·a·d along a move
    reach = np.concatenate([[0.0], np.cumsum(2 * acceleration * distance)])
    limit = np.minimum.accumulate(limit - reach) + reach
    limit = (np.minimum.accumulate((limit + reach)[::-1]))[::-1] - reach
    limit = np.maximum(limit, 0.0)
    entry, leave = limit[:-1], limit[1:]
    peak = np.minimum(speed**2, acceleration * distance + (entry + leave) / 2)
    peak = np.maximum(peak, np.maximum(np.maximum(entry, leave), 1e-12))
    ramps = (2 * np.sqrt(peak) - np.sqrt(entry) - np.sqrt(leave)) / acceleration
    even = np.maximum(distance - (2 * peak - entry - leave) / (2 * acceleration), 0.0) / np.sqrt(peak)
    return float((ramps + even).sum()) + moves.dwell_s
