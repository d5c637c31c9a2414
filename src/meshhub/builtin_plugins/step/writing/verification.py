"""What a STEP file must hold, and which of its bodies do not hold it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from meshhub.builtin_plugins.step.recognition.bodies import shell_sizes, shell_volumes
from meshhub.builtin_plugins.step.recognition.deviation import chord_volumes
from meshhub.builtin_plugins.step.writing.brep import Model
from meshhub.builtin_plugins.step.writing.kernel_check import Verdict
from meshhub.builtin_plugins.step.writing.validity import unsound_shells

_VOLUME_RATIO = 1e-3
"""Share of a solid's volume by which the kernel may find another; it integrates over arcs by as much."""
_THIN_RATIO = 1e-7
"""Share of a solid's area to the power of 1.5, which counts where it has next to no volume."""


class Body(NamedTuple):
    """A solid of a product, or its open shells.

    name:   for notes
    shells: of the skin; those of open shells together are one body
    volume: in mm³, with what lies between chords and arcs; None for open shells
    allowed: mm³ by which the volume may differ
    torn:   whether the check without a kernel finds it open or turned over
    """

    name: str
    shells: tuple[int, ...]
    volume: float | None
    allowed: float
    torn: bool


def bodies_in(name: str, model: Model) -> list[Body]:
    """Return the bodies of a product in the order in which they are written."""
    volume = shell_volumes(model.skin) + chord_volumes(model.skin, model.regions.region, model.regions.surfaces)
    size = shell_sizes(model.skin)
    solids = model.bodies.solids
    torn = set(unsound_shells(model).tolist())
    made = []
    for number, (outer, cavities) in enumerate(solids, 1):
        shells = (outer, *cavities)
        whole = float(volume[list(shells)].sum())
        allowed = _VOLUME_RATIO * abs(whole) + _THIN_RATIO * float(size[list(shells)].sum())
        called = f"body {number} of {name!r}" if len(solids) > 1 else repr(name)
        made.append(Body(called, shells, whole, allowed, not torn.isdisjoint(shells)))
    if model.bodies.sheets:
        made.append(Body(f"the open shells of {name!r}", model.bodies.sheets, None, 0.0, False))
    return made


def agrees(verdict: Verdict, bodies: Sequence[Body], uses: Sequence[int]) -> bool:
    """Return whether a file holds valid solids of the right number and volume.

    Args:
        verdict: The file, read back.
        bodies: Those of all its products.
        uses: How often each is in it.
    """
    solids = [(body, count) for body, count in zip(bodies, uses, strict=True) if body.volume is not None]
    wanted = sum((body.volume or 0.0) * count for body, count in solids)
    allowed = sum(body.allowed * count for body, count in solids)
    return (
        verdict.valid
        and all(solid.valid for solid in verdict.solids)
        and len(verdict.solids) == sum(count for _, count in solids)
        and abs(sum(solid.volume for solid in verdict.solids) - wanted) <= allowed
    )


def faults_in(verdict: Verdict, bodies: Sequence[Body]) -> dict[int, str]:
    """Return what is wrong with bodies of a file that holds one product once: a reason for each that fails."""
    solids = [body for body in bodies if body.volume is not None]
    if len(verdict.solids) != len(solids):
        reason = f"OpenCASCADE reads {len(verdict.solids)} solids instead of {len(solids)}"
        return dict.fromkeys(range(len(bodies)), reason if verdict.solids else "OpenCASCADE reads no solid")
    faults = {}
    for number, (body, solid) in enumerate(zip(solids, verdict.solids, strict=True)):
        assert body.volume is not None
        if not solid.valid:
            faults[number] = "OpenCASCADE finds it invalid"
        elif abs(solid.volume - body.volume) > body.allowed:
            off = (solid.volume / body.volume - 1) * 100 if body.volume else np.inf
            faults[number] = f"OpenCASCADE finds its volume off by {off:.2g} %"
    if not verdict.valid and not faults:
        # the solids are valid: what is left are the open shells, or all that it has to hold together
        faults = dict.fromkeys(range(len(solids), len(bodies)) or range(len(bodies)), "OpenCASCADE finds it invalid")
    return faults
