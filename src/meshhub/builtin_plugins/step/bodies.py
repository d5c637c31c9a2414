"""Which shells of a skin are solids, which are cavities in them, and which enclose nothing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.skin import Skin, lengths, skin_of
from meshhub.scene import Float64

_CHUNK = 1 << 18
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
    hosts = _hosts(skin, volume)
    turned = np.array([bool(suspects[shell]) and hosts[shell] < 0 for shell in range(len(volume))])
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
    inward = np.flatnonzero(skin.closed & (volume < 0))
    outer = np.flatnonzero(skin.closed & (volume > 0))
    if len(inward) == 0 or len(outer) == 0:
        return hosts
    outer = outer[np.argsort(volume[outer], kind="stable")]
    order = np.argsort(skin.shell, kind="stable")
    begin = np.searchsorted(skin.shell[order], np.arange(len(volume) + 1))
    corner = skin.points[skin.faces[order]]
    low = np.minimum.reduceat(corner.min(axis=1), begin[:-1])
    high = np.maximum.reduceat(corner.max(axis=1), begin[:-1])
    for shell in inward.tolist():
        around = ((low[outer] <= low[shell]) & (high[outer] >= high[shell])).nonzero()[0]
        probe = corner[begin[shell]].mean(axis=0)
        for host in outer[around].tolist():
            if volume[host] > -volume[shell] and _winding(corner[begin[host] : begin[host + 1]], probe) > 0.5:
                hosts[shell] = host
                break
    return hosts


def _winding(corner: Float64, probe: Float64) -> float:
    """How often a closed surface winds around a point; van Oosterom and Strackee, 1983."""
    total = 0.0
    for start in range(0, len(corner), _CHUNK):
        a, b, c = (corner[start : start + _CHUNK, k] - probe for k in range(3))
        x, y, z = lengths(a), lengths(b), lengths(c)
        solid = np.einsum("ij,ij->i", a, np.cross(b, c))
        dots = [np.einsum("ij,ij->i", p, q) for p, q in ((a, b), (b, c), (c, a))]
        total += float(np.arctan2(solid, x * y * z + dots[0] * z + dots[1] * x + dots[2] * y).sum())
    return total / (2 * np.pi)
