"""Put copies of the model beside it, in rows."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import numpy as np

from meshhub.builtin_plugins.copies import CopiesOptions
from meshhub.errors import ModelTooComplex
from meshhub.model.notes import did
from meshhub.model.scene import Part, Scene
from meshhub.toolkit.geometry import bounds
from meshhub.toolkit.objects import find_objects, renamed

MAX_PARTS = 10_000
"""Parts of the result; no slicer shows more."""


def run(scene: Scene, options: CopiesOptions) -> Scene:
    """Put copies of the whole model beside it: along X, then in further rows along Y, in about a square.

    Args:
        scene: Millimeters, Z up.
        options: `copies` None or 1 leaves the scene unchanged.
    Returns:
        Scene with the copies, which share meshes; the groups of a copy are named NAME-2, NAME-3, ….
    Raises:
        ModelTooComplex: The result would have more than MAX_PARTS parts.
        ValueError: The scene has no faces.
    """
    count = options.copies
    if count is None or count == 1:
        return scene
    objects, roots = find_objects(scene)
    total = count * sum(map(len, objects))
    if total > MAX_PARTS:
        raise ModelTooComplex(
            f"the copies would have {total:,} parts, and '{{copies}}' makes at most {MAX_PARTS:,}; lower it",
            options=("copies",),
            values={"count": total, "limit": MAX_PARTS},
        )
    width, depth, _ = np.ptp(bounds(scene), axis=0) + options.copies_gap_mm
    per_row = max(1, round(float(np.sqrt(count * depth / width)))) if width > 0 else 1
    parts: list[Part] = []
    for number in range(count):
        row, column = divmod(number, per_row)
        shift = np.eye(4)
        shift[:2, 3] = column * width, row * depth
        for part in chain.from_iterable(objects):
            copy = renamed(part, roots, number + 1) if number else part
            parts.append(replace(copy, transform=shift @ part.transform))
    did(parts_before=len(scene.parts), parts_after=total)
    return replace(scene, parts=tuple(parts))
