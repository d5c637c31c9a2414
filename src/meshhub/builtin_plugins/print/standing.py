"""Check `standing`: how the model stands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, QhullError

from meshhub.builtin_plugins.print import PrintOptions
from meshhub.builtin_plugins.print.bodies import (
    Bodies,
    find_contacts,
    list_bodies,
    oriented,
    sheets_of,
    topology_of,
)
from meshhub.builtin_plugins.print.mesh import CLOSED_MM
from meshhub.builtin_plugins.print.places import list_places
from meshhub.builtin_plugins.print.size import is_usual_size
from meshhub.errors import format_count, format_number
from meshhub.model.notes import did
from meshhub.model.scene import Float64, Scene
from meshhub.model.verdict import Finding
from meshhub.toolkit.geometry import IntIndex, corner_extremes, extremes
from meshhub.toolkit.topology import components

MIN_CONTACT_MM2 = 20.0
"""Area on the bed from which a model holds without a brim, if it is not high."""

MAX_SLENDERNESS = 10.0
"""Height per side of a square as large as the contact, up to which a model holds."""


def run_standing(scene: Scene, options: PrintOptions) -> Iterator[Finding]:
    """Find bodies that hold badly on the bed, or tip over; bodies that touch stand together.

    Args:
        scene: Millimeters, Z up.
        options: Process and layers.
    """
    if options.print_process == "sls":
        return
    scene = oriented(scene)
    bodies = list_bodies(scene, topology_of(scene))
    if len(bodies.corners) == 0:
        return
    label: IntIndex = np.arange(len(bodies.parts))
    groups = _measure_groups(bodies, label, options.layer_mm, skip_small=len(bodies.parts) > 1)
    is_doubtful = groups.is_raised | groups.tips | groups.is_small
    if len(bodies.parts) > 1 and is_doubtful.any():
        first, second = find_contacts(bodies, is_doubtful, CLOSED_MM)
        label = components(len(bodies.parts), first, second)[1].astype(np.intp)
        groups = _measure_groups(bodies, label, options.layer_mm)
    on_bed = ~groups.is_raised
    did(contact_mm2=float(groups.contact[on_bed].sum()), height_mm=float(np.ptp(bodies.corners[:, :, 2])))
    low, high = extremes(bodies.corners.reshape(-1, 3))
    # other findings report sheets, which do not stand
    sheets = [number for number, part in enumerate(scene.parts) if part.mesh in sheets_of(scene)]
    is_solid = np.bincount(label[~np.isin(bodies.parts, sheets)], minlength=len(groups.contact)) > 0
    # the area that holds is in square millimeters, which the check of the size doubts
    is_small = groups.is_small & is_solid & is_usual_size(float((high - low).max()))
    tipping, small = np.flatnonzero(groups.tips & is_solid), np.flatnonzero(is_small)
    is_one = len(groups.contact) == 1
    if len(tipping):
        subject = "the center of mass is"
        if not is_one:
            subject = format_count(len(tipping), "body has its center of mass", "bodies have their center of mass")
        model = "the model" if is_one else "it" if len(tipping) == 1 else "they"
        yield Finding(
            code="tips_over",
            severity="warning",
            message=f"{subject} not above what touches the bed, so that {model} may tip over; use "
            f"{'{lay_flat}, or use ' if is_one else ''}a brim in the slicer",
            options=("lay_flat",) if is_one else (),
            places=list_places(groups.center[tipping], groups.contact[tipping]),
            places_found=len(tipping),
            remedy={"lay_flat": True} if is_one else {},
        )
    if len(small):
        needed = groups.needed_contact
        order = small[np.argsort(groups.contact[small] / needed[small], kind="stable")]
        worst = order[0]
        subject = "" if is_one else format_count(len(small), "body holds badly: ", "bodies hold badly; of the worst, ")
        yield Finding(
            code="small_contact",
            severity="warning",
            message=f"{subject}{format_number(groups.contact[worst], 3)} mm² touch the bed below a height of "
            f"{format_number(groups.height[worst], 3)} mm, which needs {format_number(needed[worst], 3)} mm²; use "
            f"{'{lay_flat}, or use ' if is_one else ''}a brim in the slicer",
            options=("lay_flat",) if is_one else (),
            amount=float(groups.contact[worst]),
            limit=float(needed[worst]),
            unit="mm²",
            places=list_places(groups.center[order], groups.contact[order]),
            places_found=len(order),
            remedy={"lay_flat": True} if is_one else {},
        )


class _Groups(NamedTuple):
    """Groups of bodies that stand together.

    of_face: (m,) group of each face
    contact: (g,) mm² that touch the bed
    height:  (g,) mm
    center:  (g, 3) center of mass; Z is that of the lowest point
    is_raised: (g,) mask of groups that begin above the bed; the check of islands finds them
    tips:    (g,) mask of groups on the bed whose center of mass is not above what touches it
    """

    of_face: IntIndex
    contact: Float64
    height: Float64
    center: Float64
    is_raised: NDArray[np.bool_]
    tips: NDArray[np.bool_]

    @property
    def needed_contact(self) -> Float64:
        """The contact from which each group holds, in mm²."""
        return np.maximum(MIN_CONTACT_MM2, (self.height / MAX_SLENDERNESS) ** 2)

    @property
    def is_small(self) -> NDArray[np.bool_]:
        """Mask of groups on the bed that do not tip over, but hardly touch it."""
        return ~self.is_raised & ~self.tips & (self.contact < self.needed_contact)


def _measure_groups(bodies: Bodies, label: IntIndex, layer_mm: float, skip_small: bool = False) -> _Groups:
    """Return the groups of bodies with equal labels (b,), which are numbered from 0.

    Args:
        bodies: Bodies in millimeters.
        label: (b,) group of each body.
        layer_mm: Height within which a face touches the bed.
        skip_small: Whether `tips` stays False for groups with a small contact, of which there may be thousands.
    """
    corners, count = bodies.corners, int(label.max()) + 1
    group = label[bodies.body]
    order = np.argsort(group, kind="stable")
    begin = np.searchsorted(group[order], np.arange(count))
    bottom, top = (extreme[:, 2] for extreme in corner_extremes(corners))
    low, high = np.minimum.reduceat(bottom[order], begin), np.maximum.reduceat(top[order], begin)
    bed = float(low.min())
    moved = corners - corners[0, 0]
    normals = np.cross(moved[:, 1] - moved[:, 0], moved[:, 2] - moved[:, 0])
    touches = top <= bed + layer_mm
    contact = np.bincount(group[touches], np.maximum(-normals[touches, 2], 0) / 2, count).astype(np.float64)
    # the volume of open surfaces is uncertain, so that their area is weighed
    is_uncertain = np.bincount(label[~(bodies.solid | bodies.hollow)], minlength=count) > 0
    volume = np.einsum("ij,ij->i", moved[:, 0], normals) / 4
    weight = np.where(is_uncertain[group], np.linalg.norm(normals, axis=1) / 3, volume)
    share = np.where(is_uncertain, 3, 4)
    sums = np.stack([np.bincount(group, weight * axis, count) for axis in moved.sum(axis=1).T], axis=1)
    total = np.bincount(group, weight, count) * share
    center = corners[0, 0] + sums / np.where(total == 0, 1.0, total)[:, None]
    center[:, 2] = low
    result = _Groups(group, contact, high - low, center, low > bed + layer_mm, np.zeros(count, np.bool_))
    own = order[touches[order]]
    ends = np.searchsorted(group[own], np.arange(count + 1))
    for number in np.flatnonzero(~result.is_raised & ~(skip_small & result.is_small)).tolist():
        foot = corners[own[ends[number] : ends[number + 1]], :, :2].reshape(-1, 2)
        result.tips[number] = not _is_above(foot, center[number, :2])
    return result


def _is_above(foot: Float64, point: Float64) -> bool:
    """Return whether a point (2,) is in the convex hull of points (n, 2)."""
    try:
        hull = ConvexHull(foot)
    except (QhullError, ValueError):
        return False
    inside: NDArray[np.bool_] = hull.equations[:, :2] @ point + hull.equations[:, 2] <= 1e-6
    return bool(inside.all())
