"""Comparison of a STEP file that OpenCASCADE read back with the bodies that were written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from meshhub.builtin_plugins.step.facets.bodies import shell_sizes
from meshhub.builtin_plugins.step.kernel.kernel_check import Verdict
from meshhub.builtin_plugins.step.solids.model import BrepModel
from meshhub.builtin_plugins.step.solids.model_check import MAX_VOLUME_RATIO, THIN_VOLUME_RATIO

GAPS = "the triangles that OpenCASCADE makes of it leave gaps"
"""Reason for a body that is valid."""


class ExpectedBody(NamedTuple):
    """A solid of a product, or all its open shells.

    name:        for notes
    shells:      shells of the skin
    volume_mm3:  volume, including the volume between chords and arcs; None for open shells
    allowed_mm3: largest difference from `volume_mm3`
    is_torn:     whether the check without a kernel finds it open or a face reversed
    """

    name: str
    shells: tuple[int, ...]
    volume_mm3: float | None
    allowed_mm3: float
    is_torn: bool


def expected_bodies(name: str, model: BrepModel) -> list[ExpectedBody]:
    """Return the bodies of the product `name` in the order in which they are written."""
    volume = model.shell_volumes
    size = shell_sizes(model.skin)
    solids = model.bodies.solids
    torn = set(model.invalid_shells.tolist())
    bodies = []
    for number, (outer, cavities) in enumerate(solids, 1):
        shells = (outer, *cavities)
        total = float(volume[list(shells)].sum())
        allowed = MAX_VOLUME_RATIO * abs(total) + THIN_VOLUME_RATIO * float(size[list(shells)].sum())
        body_name = f"body {number} of {name!r}" if len(solids) > 1 else repr(name)
        bodies.append(ExpectedBody(body_name, shells, total, allowed, not torn.isdisjoint(shells)))
    if model.bodies.sheets:
        bodies.append(ExpectedBody(f"the open shells of {name!r}", model.bodies.sheets, None, 0.0, False))
    return bodies


def is_as_expected(verdict: Verdict, bodies: Sequence[ExpectedBody], uses: Sequence[int]) -> bool:
    """Return whether a file holds valid solids of the right number and total volume.

    Args:
        verdict: The file, read back.
        bodies: Bodies of all its products.
        uses: Number of instances of each body.
    """
    solids = [(body, count) for body, count in zip(bodies, uses, strict=True) if body.volume_mm3 is not None]
    expected = sum((body.volume_mm3 or 0.0) * count for body, count in solids)
    allowed = sum(body.allowed_mm3 * count for body, count in solids)
    return (
        verdict.valid
        and all(solid.valid and solid.closes for solid in verdict.solids)
        and len(verdict.solids) == sum(count for _, count in solids)
        and abs(sum(solid.volume for solid in verdict.solids) - expected) <= allowed
    )


def find_faults(verdict: Verdict, bodies: Sequence[ExpectedBody]) -> dict[int, str]:
    """Return the reason for each body that fails.

    Args:
        verdict: A file that holds one product once, read back.
        bodies: Bodies of the product.
    Returns:
        Reasons by index of the body; empty if all bodies are as expected.
    """
    solids = [body for body in bodies if body.volume_mm3 is not None]
    if len(verdict.solids) != len(solids):
        reason = f"OpenCASCADE reads {len(verdict.solids)} solids instead of {len(solids)}"
        return dict.fromkeys(range(len(bodies)), reason if verdict.solids else "OpenCASCADE reads no solid")
    faults = {}
    for number, (body, solid) in enumerate(zip(solids, verdict.solids, strict=True)):
        assert body.volume_mm3 is not None
        if not solid.valid:
            faults[number] = "OpenCASCADE finds it invalid"
        elif abs(solid.volume - body.volume_mm3) > body.allowed_mm3:
            percent = (solid.volume / body.volume_mm3 - 1) * 100 if body.volume_mm3 else np.inf
            faults[number] = f"OpenCASCADE finds its volume off by {percent:.2g} %"
        elif not solid.closes:
            faults[number] = GAPS
    if not verdict.valid and not faults:
        # the solids are valid: the open shells are invalid or, if there are none, the shape as a whole
        faults = dict.fromkeys(range(len(solids), len(bodies)) or range(len(bodies)), "OpenCASCADE finds it invalid")
    return faults
