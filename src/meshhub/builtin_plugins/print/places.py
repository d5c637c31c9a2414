"""Places of findings."""

from __future__ import annotations

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
