"""Fragments that no one meant: specks beside the body."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from meshhub import topology
from meshhub.builtin_plugins.repair.orient import shell_volumes
from meshhub.builtin_plugins.repair.surface import Surface
from meshhub.topology import Index

FEW_FACES = 4
SMALL_DIAGONAL = 0.01
SMALL_VOLUME = 0.0001


def stray_shells(surface: Surface, border: Index) -> NDArray[np.bool_]:
    """Which shells are strays: at most four faces or open, under a hundredth of the part's diagonal, and under
    a ten-thousandth of its volume. Never all of them.
    """
    count, label = surface.shells, surface.shell
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
    volume = np.abs(shell_volumes(surface))
    small = (np.linalg.norm(size, axis=1) < SMALL_DIAGONAL * whole) & (volume[candidate] <= SMALL_VOLUME * volume.sum())
    stray[candidate] = small
    return np.zeros(count, np.bool_) if stray.all() else stray


def without_strays(surface: Surface, one: Index, other: Index) -> tuple[Surface, int, tuple[Index, Index]]:
    """The surface, its shells labelled, without its strays, given the partners; how many they were; the partners."""
    label = topology.components(len(surface.faces), one // 3, other // 3)[1]
    surface = replace(surface, shell=label)
    lone = np.ones(3 * len(surface.faces), np.bool_)
    lone[one] = lone[other] = False
    stray = stray_shells(surface, np.flatnonzero(lone))
    if not stray.any():
        return surface, 0, (one, other)
    kept = ~stray[label]
    name = np.cumsum(kept) - 1
    stays = kept[one // 3]
    one, other = (name[half // 3] * 3 + half % 3 for half in (one[stays], other[stays]))
    surface = surface.keep(kept)
    renamed = (np.cumsum(~stray, dtype=np.int32) - np.int32(1))[surface.shell]
    return replace(surface, shell=renamed), int(stray.sum()), (one, other)
