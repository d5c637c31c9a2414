"""Order of the faces in a shell.

CAD programs find out which side of a shell is outside by a ray along the normal of its first face. A folded mesh, as
mesh generators leave beside slivers, misleads a ray that hits the fold first.
"""

from __future__ import annotations

import numpy as np

from meshhub.builtin_plugins.step.facets.skin import Skin
from meshhub.builtin_plugins.step.recognition.regions import Regions, region_areas
from meshhub.toolkit.geometry import IntIndex

_CANDIDATES_COUNT = 8
"""Largest faces of a shell that are tried as its first face."""


def order_faces(skin: Skin, regions: Regions) -> tuple[IntIndex, IntIndex]:
    """Return the order of the faces in the file, and where each shell begins.

    Each shell begins with a large flat face that has the whole shell behind it; without one, with a large face.

    Args:
        skin: Mesh.
        regions: Its faces.
    Returns:
        (r,) regions, and (s + 1,) positions.
    """
    count = len(regions.surfaces)
    shell = np.empty(count, np.intp)
    shell[regions.region] = skin.shell
    begin = np.searchsorted(np.sort(shell), np.arange(len(skin.closed) + 1))
    by_area = np.lexsort((-region_areas(skin, regions), regions.curved, shell))
    first = by_area[begin[:-1]]
    is_found = np.zeros(len(first), np.bool_)
    used = np.unique(skin.faces)
    points, point_shell = skin.points[used], np.empty(len(skin.points), np.intp)
    point_shell[skin.faces] = skin.shell[:, None]
    point_shell = point_shell[used]
    for rank in range(_CANDIDATES_COUNT):
        place = begin[:-1] + rank
        candidate = by_area[np.where(place < begin[1:], place, begin[:-1])]
        surfaces = regions.surfaces.take(candidate)
        offset = points - surfaces.origin[point_shell]
        above = np.full(len(first), -np.inf)
        np.maximum.at(above, point_shell, np.einsum("ij,ij->i", offset, surfaces.axis[point_shell]))
        is_support = ~is_found & ~regions.curved[candidate] & (above <= regions.limit[candidate])
        first[is_support] = candidate[is_support]
        is_found |= is_support
        if is_found.all():
            break
    is_first = np.zeros(count, np.bool_)
    is_first[first] = True
    return np.lexsort((~is_first, shell)), begin
