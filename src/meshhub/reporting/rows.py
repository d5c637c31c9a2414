"""Rows of a report as plain text, which HTML and PDF share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from meshhub.errors import format_number, printable
from meshhub.model.options import flag_of
from meshhub.model.verdict import Severity
from meshhub.pipeline.numbered_places import NumberedPlace, number_places
from meshhub.reporting.collecting import CheckedModel, Picture
from meshhub.reporting.texts import ReportTexts

Labels = Mapping[str, str]
"""Labels of checks by id."""


class FindingRow(NamedTuple):
    """A finding as texts."""

    numbers: str
    severity: Severity
    check: str
    message: str
    worst: str
    limit: str


class PlaceRow(NamedTuple):
    """A numbered place as texts."""

    number: str
    finding: str
    x: str
    y: str
    z: str
    value: str
    part: str


def caption_of(picture: Picture, texts: ReportTexts, labels: Labels) -> str:
    """Return the caption of a picture."""
    if picture.view:
        return texts.views[picture.view]
    return f"{texts.colored}: {labels.get(picture.check, picture.check) if picture.check else texts.thickness}"


def list_figures(model: CheckedModel, texts: ReportTexts) -> list[tuple[str, str]]:
    """Return label and value of each figure of a model."""
    if model.verdict is None or model.inspection is None:
        return []
    source, inspection = model.verdict.source, model.inspection
    size = " × ".join(spell_number(side, texts, 4) for side in inspection.size_mm)
    volume = texts.open_volume
    if inspection.volume_mm3 is not None:
        volume = f"{spell_number(inspection.volume_mm3 / 1000, texts, 4)} cm³"
    return [
        (texts.size, f"{size} mm"),
        (texts.volume, volume),
        (texts.area, f"{spell_number(inspection.area_mm2 / 100, texts, 4)} cm²"),
        (texts.triangles, spell_count(inspection.faces, texts)),
        (texts.parts, spell_count(inspection.parts, texts)),
        (texts.bodies, spell_count(inspection.bodies, texts)),
        (texts.file_format, source.format.upper()),
    ]


def list_findings(model: CheckedModel, texts: ReportTexts, labels: Labels) -> list[FindingRow]:
    """Return the findings of a model, the worst first."""
    if model.verdict is None:
        return []
    rows = []
    for finding, places in zip(model.verdict.findings, number_places(model.verdict), strict=True):
        rest = finding.places_found - len(places)
        numbers = ", ".join(str(item.number) for item in places)
        if rest > 0 and places:
            numbers += " " + texts.more.format(count=spell_count(rest, texts))
        worst, limit = (
            "" if value is None else f"{spell_number(value, texts)} {finding.unit}".rstrip()
            for value in (finding.amount, finding.limit)
        )
        check = labels.get(finding.check, finding.check)
        rows.append(FindingRow(numbers, finding.severity, check, printable(finding.spelled(flag_of)), worst, limit))
    return rows


def list_places(model: CheckedModel, texts: ReportTexts, labels: Labels) -> list[PlaceRow]:
    """Return the places that have numbers."""
    if model.verdict is None:
        return []
    return [
        _describe_place(item, labels.get(finding.check, finding.check), finding.unit, texts)
        for finding, places in zip(model.verdict.findings, number_places(model.verdict), strict=True)
        for item in places
    ]


def _describe_place(item: NumberedPlace, label: str, unit: str, texts: ReportTexts) -> PlaceRow:
    place = item.place
    x, y, z = (f"{value:.2f}".replace(".", texts.decimal_mark) for value in place.position_mm)
    value = "" if place.amount is None else f"{spell_number(place.amount, texts)} {unit}".rstrip()
    return PlaceRow(str(item.number), label, x, y, z, value, "" if place.part is None else str(place.part + 1))


def spell_count(value: int, texts: ReportTexts) -> str:
    """Return a whole number with marks between thousands."""
    return f"{value:,}".replace(",", texts.thousands_mark)


def spell_number(value: float, texts: ReportTexts, digits: int = 3) -> str:
    """Return a measured number with significant digits; those before the decimal mark are never rounded."""
    if abs(value) >= 10 ** (digits - 1):
        return spell_count(round(value), texts)
    return format_number(value, digits).replace(".", texts.decimal_mark)
