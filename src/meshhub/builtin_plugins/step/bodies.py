"""Which shells of a skin are solids, which are cavities in them, and which enclose nothing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.skin import Skin, lengths, skin_of
from meshhub.containment import TURN, inside
from meshhub.scene import Float64

_FLAT = 1e-12


class Bodies(NamedTuple):
    """The shells of a skin by their role.

    solids: for each solid its outer shell and the shells of its cavities
    sheets: the shells that enclose nothing: open ones, and closed ones without a volume
    """

    solids: tuple[tuple[int, tuple[int, ...]], ...]
    sheets: tuple[int, ...]


def shell_volumes(skin: Skin) -> Float64:
    """(s,) the signed volume of each shell, about its own first point."""
    count = len(skin.closed)
    first = np.empty(count, np.intp)
    first[skin.shell[::-1]] = skin.faces[::-1, 0]
    origin = skin.points[first]
    lever = skin.points[skin.faces[:, 0]] - origin[skin.shell]
    return np.bincount(skin.shell, np.einsum("ij,ij->i", lever, skin.cross), count) / 6


def shell_sizes(skin: Skin) -> Float64:
    """(s,) the area of each shell to the power of 1.5: a volume to compare its volume with."""
    area = np.bincount(skin.shell, lengths(skin.cross), len(skin.closed)) / 2
    made: Float64 = area**1.5
    return made


def outward(skin: Skin) -> Skin:
    """The skin with every closed shell that is inside out, and is no cavity of another, turned round."""
    volume = shell_volumes(skin)
    suspects = skin.closed & (volume < 0)
    if not suspects.any():
        return skin
    turned = suspects & (_hosts(skin, volume) < 0)
    if not turned.any():
        return skin
    faces = np.where(turned[skin.shell][:, None], skin.faces[:, ::-1], skin.faces)
    return skin_of(skin.points, faces, skin.paint)


def bodies_of(skin: Skin) -> Bodies:
    """The bodies of a skin that is `outward`."""
    volume = shell_volumes(skin)
    solid = skin.closed & (np.abs(volume) > _FLAT * shell_sizes(skin))
    hosts = _hosts(skin, volume)
    cavities: dict[int, list[int]] = {}
    for shell in np.flatnonzero(hosts >= 0).tolist():
        cavities.setdefault(int(hosts[shell]), []).append(shell)
    solids = tuple(
        (shell, tuple(cavities.get(shell, ()))) for shell in np.flatnonzero(solid).tolist() if hosts[shell] < 0
    )
    return Bodies(solids, tuple(np.flatnonzero(~solid & (hosts < 0)).tolist()))


def _hosts(skin: Skin, volume: Float64) -> NDArray[np.intp]:
    """(s,) for each inward shell the smallest outward one around it, -1 for all others."""
    hosts = np.full(len(volume), -1, np.intp)
    free = np.flatnonzero(skin.closed & (volume < 0))
    outer = np.flatnonzero(skin.closed & (volume > 0))
    if len(free) == 0 or len(outer) == 0:
        return hosts
    order = np.argsort(skin.shell, kind="stable")
    begin = np.searchsorted(skin.shell[order], np.arange(len(volume) + 1))
    corner = (skin.points @ TURN)[skin.faces[order]]
    face_low, face_high = corner.min(axis=1), corner.max(axis=1)
    low = np.minimum.reduceat(face_low, begin[:-1])
    high = np.maximum.reduceat(face_high, begin[:-1])
    # only those that begin within a host's extent along X can be in it
    free = free[np.argsort(low[free, 0], kind="stable")]
    left = low[free, 0]
    begins, ends = np.searchsorted(left, low[:, 0]), np.searchsorted(left, high[:, 0], side="right")
    for host in outer[np.argsort(volume[outer], kind="stable")].tolist():
        near = free[begins[host] : ends[host]]
        near = near[(hosts[near] < 0) & (-volume[near] < volume[host])]
        near = near[(low[near] >= low[host]).all(axis=1) & (high[near] <= high[host]).all(axis=1)]
        if len(near) == 0:
            continue
        faces = slice(begin[host], begin[host + 1])
        probes = corner[begin[near]].mean(axis=1)
        hosts[near[inside(corner[faces], face_low[faces], face_high[faces], probes)]] = host
    return hosts
