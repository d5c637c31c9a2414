"""Winding: the same on both sides of every edge, then outward for bodies and inward for their cavities."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from meshhub import topology
from meshhub.builtin_plugins.repair.nesting import depths
from meshhub.builtin_plugins.repair.surface import Surface
from meshhub.scene import Float64, Int32
from meshhub.topology import Index


def turns(faces: Int32, one: Index, other: Index) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which faces to turn so that partners run against each other, and which pairs still do not.

    The faces that agree already form patches; only the few patches that disagree are walked, breadth first.
    In each connected lot the winding that most faces have stays. A pair that cannot agree (a Möbius strip) is
    to be cut.
    """
    corner = faces.ravel()
    agree = corner[one] != corner[other]
    flip, conflict = np.zeros(len(faces), np.bool_), np.zeros(len(one), np.bool_)
    if agree.all():
        return flip, conflict
    count, patch = topology.components(len(faces), one[agree] // 3, other[agree] // 3)
    odd = np.flatnonzero(~agree)
    a, b = patch[one[odd] // 3], patch[other[odd] // 3]
    lots, lot = topology.components(count, a, b)
    root = topology.first_members(lot, lots)
    # a root of all roots, so that one search walks every lot
    rows, columns = np.concatenate([a, np.full(lots, count)]), np.concatenate([b, root])
    apart = rows != columns
    graph = coo_array((np.ones(int(apart.sum())), (rows[apart], columns[apart])), (count + 1, count + 1)).tocsr()
    depth = dijkstra(graph, directed=False, indices=count, unweighted=True)[:count].astype(np.int64)
    turned = depth % 2 == 0
    size = np.bincount(patch, minlength=count)
    balance = np.bincount(lot, np.where(turned, size, -size), minlength=lots)
    turned ^= (balance > 0)[lot]
    conflict[odd] = turned[a] == turned[b]
    return turned[patch], conflict


def shell_volumes(surface: Surface) -> Float64:
    """The signed volume of each shell, measured from its own first point so that far ones keep their digits."""
    points, faces, label = surface.points, surface.faces, surface.shell
    origin = points[faces[topology.first_members(label, surface.shells), 0]]
    if surface.shells == 1:
        shifted = (points - origin[0]).T
        a, b, c = ([axis[faces[:, corner]] for axis in shifted] for corner in range(3))
    else:
        a, b, c = (list((points[faces[:, corner]] - origin[label]).T) for corner in range(3))
    sixth = a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) + a[2] * (b[0] * c[1] - b[1] * c[0])
    return np.bincount(label, sixth, minlength=surface.shells) / 6.0


def wrong_shells(surface: Surface, border: Index, volume: Float64) -> NDArray[np.bool_]:
    """Which shells look the wrong way: a body must look out, a cavity in a body in, a body in a cavity out.

    Shells with a border are left as they are.
    """
    whole = np.ones(surface.shells, np.bool_)
    whole[surface.shell[border // 3]] = False
    inward = depths(surface, whole, np.abs(volume)) % 2 == 1
    size = np.abs(volume)
    if size[inward].sum() >= size[~inward].sum():  # shells that run through each other are not nested
        inward[:] = False
    return whole & np.where(inward, volume > 0, volume < 0)


def enclosed(surface: Surface) -> float:
    """The volume of the closed shells."""
    volume = shell_volumes(surface)
    volume[surface.shell[topology.edges(surface.faces).border() // 3]] = 0
    return float(volume.sum())


def outward(surface: Surface) -> Surface:
    """The surface with every closed shell turned as its nesting demands."""
    border = topology.edges(surface.faces).border()
    wrong = wrong_shells(surface, border, shell_volumes(surface))
    return surface.flip(wrong[surface.shell]) if wrong.any() else surface
