"""Which shells of a skin are solids, which are cavities in them, and which enclose nothing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meshhub.builtin_plugins.step.recognition.skin import Skin, build_skin, lengths
from meshhub.model.scene import Float64
from meshhub.toolkit.containment import hosts_of

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


def orient_outward(skin: Skin) -> Skin:
    """The skin with every closed shell that is inside out, and is no cavity of another, turned round."""
    volume = shell_volumes(skin)
    suspects = skin.closed & (volume < 0)
    if not suspects.any():
        return skin
    turned = suspects & (hosts_of(skin.points[skin.faces], skin.shell, skin.closed, volume) < 0)
    if not turned.any():
        return skin
    faces = np.where(turned[skin.shell][:, None], skin.faces[:, ::-1], skin.faces)
    return build_skin(skin.points, faces, skin.paint)


def group_bodies(skin: Skin) -> Bodies:
    """The bodies of a skin that is `outward`."""
    volume = shell_volumes(skin)
    solid = skin.closed & (np.abs(volume) > _FLAT * shell_sizes(skin))
    hosts = hosts_of(skin.points[skin.faces], skin.shell, skin.closed, volume)
    cavities: dict[int, list[int]] = {}
    for shell in np.flatnonzero(hosts >= 0).tolist():
        cavities.setdefault(int(hosts[shell]), []).append(shell)
    solids = tuple(
        (shell, tuple(cavities.get(shell, ()))) for shell in np.flatnonzero(solid).tolist() if hosts[shell] < 0
    )
    return Bodies(solids, tuple(np.flatnonzero(~solid & (hosts < 0)).tolist()))
