"""Places of findings."""

from __future__ import annotations

import numpy as np

from meshhub.model.scene import Float64
from meshhub.model.verdict import MAX_PLACES, Place


def list_places(centers: Float64, amounts: Float64) -> tuple[Place, ...]:
    """Return the first `MAX_PLACES` places with their values.

    Args:
        centers: (k, 3) millimeters, Z up.
        amounts: (k,) value at each place, in the unit of its finding.
    """
    rows = zip(centers[:MAX_PLACES].tolist(), amounts[:MAX_PLACES].tolist(), strict=True)
    return tuple(Place(position_mm=(x, y, z), amount=amount) for (x, y, z), amount in rows)


def place_box(box: Float64, part: int | None = None, amount: float | None = None) -> Place:
    """Return the place of a bounding box (2, 3) in millimeters, Z up."""
    x, y, z = box.mean(axis=0).tolist()
    return Place(position_mm=(x, y, z), size_mm=float(np.linalg.norm(np.ptp(box, axis=0))), part=part, amount=amount)
