"""Fragments that no one meant: specks beside the body."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from meshhub import topology
from meshhub.builtin_plugins.repair.orient import shell_volumes
from meshhub.builtin_plugins.repair.surface import Surface
from meshhub.geometry import IntIndex

FEW_FACES = 4
SMALL_DIAGONAL = 0.01
SMALL_VOLUME = 0.0001


def stray_shells(surface: Surface, count: int, label: NDArray[np.int32], border: IntIndex) -> NDArray[np.bool_]:
    """Which shells are strays: at most four faces or open, under a hundredth of the part's diagonal, and under
    a ten-thousandth of its volume. Never all of them.
    """
    stray = np.zeros(count, np.bool_)
    if count < 2:
        return stray
    open_shell = stray.copy()
    open_shell[label[border // 3]] = True
    candidate = open_shell | (np.bincount(label, minlength=count) <= FEW_FACES)
    if not candidate.any():
        return stray
    face = np.flatnonzero(candidate[label])
    order = face[np.argsort(label[face], kind="stable")]
    begin = np.concatenate([[0], np.cumsum(np.bincount(label[face], minlength=count)[candidate])[:-1]])
    corner = surface.points[surface.faces[order]]
    size = np.maximum.reduceat(corner.max(axis=1), begin) - np.minimum.reduceat(corner.min(axis=1), begin)
    whole = float(np.linalg.norm(np.ptp(surface.points[np.unique(surface.faces)], axis=0)))
    volume = np.abs(shell_volumes(surface.points, surface.faces, count, label))
    small = (np.linalg.norm(size, axis=1) < SMALL_DIAGONAL * whole) & (volume[candidate] <= SMALL_VOLUME * volume.sum())
    stray[candidate] = small
    return np.zeros(count, np.bool_) if stray.all() else stray


def without_strays(surface: Surface, one: IntIndex, other: IntIndex) -> tuple[Surface, int, tuple[IntIndex, IntIndex]]:
    """The surface without its strays, given the partners; how many there were, and the partners now."""
    count, label = topology.components(len(surface.faces), one // 3, other // 3)
    lone = np.ones(3 * len(surface.faces), np.bool_)
    lone[one] = lone[other] = False
    stray = stray_shells(surface, count, label, np.flatnonzero(lone))
    if not stray.any():
        return surface, 0, (one, other)
    kept = ~stray[label]
    name = np.cumsum(kept) - 1
    stays = kept[one // 3]
    one, other = (name[half // 3] * 3 + half % 3 for half in (one[stays], other[stays]))
    return surface.keep(kept), int(stray.sum()), (one, other)
