"""Is it sound: before a repair, to leave it alone, and after one, to tell what could not be done."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from meshhub import topology
from meshhub.builtin_plugins.repair.orient import shell_volumes, wrong_shells
from meshhub.builtin_plugins.repair.strays import stray_shells
from meshhub.builtin_plugins.repair.surface import Surface, rounded
from meshhub.geometry import signed_volume, weld
from meshhub.scene import Float64, Int32


class Health(NamedTuple):
    """What a surface is like. sound: nothing at all is left for a repair to do."""

    sound: bool
    bodies: int
    volume: float
    edges: topology.Edges


class Verdict(NamedTuple):
    """What a file that holds positions in float32 and no indices would say of a surface."""

    boundary: int
    nonmanifold: int
    inconsistent: int
    volume: float

    @property
    def right(self) -> bool:
        """Closed, manifold at its edges, consistently wound, and with an inside."""
        return self.boundary == self.nonmanifold == self.inconsistent == 0 and self.volume > 0

    @property
    def defects(self) -> int:
        """How many edges are unsound."""
        return self.boundary + self.nonmanifold + self.inconsistent


def health(surface: Surface) -> Health:
    """How a surface is."""
    faces = surface.faces
    found = topology.edges(faces)
    count, label = topology.shells(faces, found)
    surface = replace(surface, shell=label)
    volume = shell_volumes(surface)
    one, other = found.pairs()
    begin, _ = topology.half_edges(faces)
    sound = (
        2 * len(one) == len(begin)
        and not (begin[one] == begin[other]).any()
        and bool((np.bincount(label, minlength=count) >= 4).all())
        and len(topology.without_degenerate(faces)) == len(faces)
        and topology.fans_are_whole(faces, found)
        and not stray_shells(surface, one[:0]).any()
        and not wrong_shells(surface, one[:0], volume).any()
    )
    return Health(sound, count, float(volume.sum()), found)


def verdict(points: Float64, faces: Int32) -> Verdict:
    """How a surface will be once its positions are rounded and welded again."""
    first, index = weld(rounded(points))
    again = topology.without_degenerate(index[faces])
    return Verdict(*topology.edge_statistics(again), signed_volume(points[first], again))
