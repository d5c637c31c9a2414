"""Texts of reports in English; other languages are TOML files in `translations/`."""

from __future__ import annotations

from msgspec import Struct, field

from meshhub.model.translations import ENGLISH
from meshhub.model.verdict import Severity, VerdictWord
from meshhub.pipeline.catalogs import find_catalogs, read_texts

LANGUAGES = (ENGLISH, *sorted(find_catalogs("meshhub.reporting")))
"""Languages of reports."""


class ReportTexts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Words of a report."""

    language: str = ENGLISH
    title: str = "Print check"
    created: str = "created on"
    verdicts: dict[VerdictWord, str] = field(
        default_factory=lambda: {
            "ready": "Ready",
            "check_this": "Check this",
            "incomplete": "Not fully checked",
            "will_not_print": "Will not print",
        }
    )
    unreadable: str = "Could not be checked"
    severities: dict[Severity, str] = field(
        default_factory=lambda: {"error": "Error", "warning": "Warning", "info": "Note"}
    )
    size: str = "Size"
    volume: str = "Volume"
    open_volume: str = "none (open)"
    area: str = "Surface"
    triangles: str = "Triangles"
    parts: str = "Parts"
    bodies: str = "Bodies"
    file_format: str = "Format"
    views: dict[str, str] = field(
        default_factory=lambda: {"iso": "From the upper right", "front": "Front", "right": "Right"}
    )
    colored: str = "In color"
    thickness: str = "wall thickness"
    numbers: str = "Numbers mark the places of the findings; a white number lies behind the visible surface. Z is up."
    findings: str = "Findings"
    no_findings: str = "The checks found nothing."
    severity: str = "Severity"
    check: str = "Check"
    finding: str = "Finding"
    worst: str = "Worst"
    limit: str = "Limit"
    numbered: str = "No."
    more: str = "and {count} more"
    places: str = "Places"
    value: str = "Value"
    part: str = "Part"
    remedies: str = "Remedies"
    remedy_advice: str = "The command writes a fixed copy of the model; check that copy again."
    notes: str = "Notes"
    checks: str = "Checks that ran"
    decimal_mark: str = "."
    thousands_mark: str = ","


def load_texts(language: str) -> ReportTexts:
    """Return the texts of a language."""
    return read_texts("meshhub.reporting", language, ReportTexts)
