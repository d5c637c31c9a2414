"""Number the places of findings, for pictures and for the model that shows them."""

from __future__ import annotations

from typing import NamedTuple

from meshhub.model.verdict import Place, Verdict
from meshhub.toolkit.rendering.options import MAX_MARKS

MAX_NUMBERED_PLACES = 5
"""Maximum places of a finding that get a number; more numbers would hide the model."""


class NumberedPlace(NamedTuple):
    """Place of a finding, and its number in the pictures."""

    number: int
    place: Place


def number_places(verdict: Verdict) -> list[list[NumberedPlace]]:
    """Return the places that have numbers, for each finding."""
    numbers = iter(range(1, MAX_MARKS + 1))
    # zip takes a place first, so that no number is lost
    return [
        [
            NumberedPlace(number, place)
            for place, number in zip(finding.places[:MAX_NUMBERED_PLACES], numbers, strict=False)
        ]
        for finding in verdict.findings
    ]
