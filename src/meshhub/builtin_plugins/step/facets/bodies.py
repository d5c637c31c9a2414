"""Roles of the shells of a skin: solids, cavities in solids, and sheets that enclose nothing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from meshhub.builtin_plugins.step.facets.skin import Skin, build_skin
from meshhub.builtin_plugins.step.surfaces.arrays import lengths, sum_by_label
from meshhub.model.scene import Float64
from meshhub.toolkit.containment import hosts_of
from meshhub.toolkit.geometry import IntIndex
from meshhub.toolkit.topology import first_members

_MIN_VOLUME_RATIO = 1e-12
"""Volume over `shell_sizes` up to which a closed shell counts as flat; far above the rounding of float64 (2e-16)."""


class Bodies(NamedTuple):
    """Shells of a skin by role.

    solids: outer shell of each solid, and the shells of its cavities
    sheets: shells that enclose nothing: open shells, and closed shells without volume
    """

    solids: tuple[tuple[int, tuple[int, ...]], ...]
    sheets: tuple[int, ...]


def shell_origins(skin: Skin) -> Float64:
    """Return the first point (s, 3) of each shell, about which volumes lose least to rounding."""
    origins: Float64 = skin.points[skin.faces[first_members(skin.shell, len(skin.closed)), 0]]
    return origins


def shell_volumes(skin: Skin) -> Float64:
    """Compute the (s,) signed volume of each shell in mm³; negative if inside out, meaningless for an open shell."""
    lever = skin.points[skin.faces[:, 0]] - shell_origins(skin)[skin.shell]
    return sum_by_label(skin.shell, np.einsum("ij,ij->i", lever, skin.cross), len(skin.closed)) / 6


def shell_sizes(skin: Skin) -> Float64:
    """Compute the (s,) area of each shell to the power of 1.5, in mm³: the scale of its volume."""
    area = sum_by_label(skin.shell, lengths(skin.cross), len(skin.closed)) / 2
    result: Float64 = area**1.5
    return result


def orient_outward(skin: Skin) -> Skin:
    """Flip the closed shells that are inside out, except for cavities of other shells."""
    volume = shell_volumes(skin)
    is_inward = skin.closed & (volume < 0)
    if not is_inward.any():
        return skin
    is_flipped = is_inward & (_hosts(skin, volume) < 0)
    if not is_flipped.any():
        return skin
    faces = np.where(is_flipped[skin.shell][:, None], skin.faces[:, ::-1], skin.faces)
    return build_skin(skin.points, faces, skin.paint)


def group_bodies(skin: Skin) -> Bodies:
    """Group the shells into bodies; the skin comes from `orient_outward`."""
    volume = shell_volumes(skin)
    is_solid = skin.closed & (np.abs(volume) > _MIN_VOLUME_RATIO * shell_sizes(skin))
    hosts = _hosts(skin, volume)
    cavities: dict[int, list[int]] = {}
    for shell in np.flatnonzero(hosts >= 0).tolist():
        cavities.setdefault(int(hosts[shell]), []).append(shell)
    solids = tuple(
        (shell, tuple(cavities.get(shell, ()))) for shell in np.flatnonzero(is_solid).tolist() if hosts[shell] < 0
    )
    return Bodies(solids, tuple(np.flatnonzero(~is_solid & (hosts < 0)).tolist()))


def _hosts(skin: Skin, volume: Float64) -> IntIndex:
    """Return the smallest outward shell (s,) around each cavity; -1 for all other shells."""
    return hosts_of(skin.points[skin.faces], skin.shell, skin.closed, volume)
