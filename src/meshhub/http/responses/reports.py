"""What is told beside a converted file: the report header, and `report.json` inside a ZIP."""

from __future__ import annotations

import json
from typing import Any

from meshhub.model.notes import Note
from meshhub.model.report import Report

HEADER = "X-Meshhub-Report"
CONVERTED = "X-Meshhub-Converted"
FAILED = "X-Meshhub-Failed"

HEADER_BYTES = 4096
"""The longest report header; many clients and proxies refuse 8 KB of headers."""


def file_header(report: Report, extra: tuple[Note, ...] = ()) -> str:
    """The header of one converted file."""
    said = {
        "source": report.source.format,
        "target": report.target.format,
        "faces_in": report.source.faces,
        "faces_out": report.target.faces,
        "seconds": report.seconds,
        "losses": [{"feature": loss.feature, "step": loss.step} for loss in report.losses],
        "notes": [
            {key: value for key, value in (("code", one.code), ("message", one.message), ("step", one.step)) if value}
            for one in (*report.notes, *extra)
        ],
    }
    if len(_ascii(said)) <= HEADER_BYTES:
        return _ascii(said)
    # texts go first: the codes say what happened, /inspect and report.json say it at length
    said["notes"] = [{"code": note.code} for note in (*report.notes, *extra)]
    return _cut(said, "notes", "losses")


def batch_header(reports: list[tuple[str, Report]], failed: int) -> str:
    """The header of a ZIP: totals, and the codes of the notes of each converted file."""
    notes: dict[str, list[str]] = {}
    for name, report in reports:
        codes = notes.setdefault(name, [])
        codes += [code for code in dict.fromkeys(note.code for note in report.notes) if code not in codes]
    said = {
        "converted": len(reports),
        "failed": failed,
        "faces_in": sum(report.source.faces for _, report in reports),
        "faces_out": sum(report.target.faces for _, report in reports),
        "seconds": round(sum(report.seconds for _, report in reports), 4),
        "notes": {name: codes for name, codes in notes.items() if codes},
    }
    return _ascii(said) if len(_ascii(said)) <= HEADER_BYTES else _cut(said, "notes")


def _cut(said: dict[str, Any], *fields: str) -> str:
    """As much of the last entries of these fields left out as is needed."""
    said["truncated"] = True
    for name in fields:
        entries = list(said[name].items()) if isinstance(said[name], dict) else said[name]
        kept = len(entries)
        while len(_ascii(said)) > HEADER_BYTES and kept:
            kept //= 2
            said[name] = type(said[name])(entries[:kept])
    return _ascii(said)


def _ascii(said: dict[str, Any]) -> str:
    return json.dumps(said, ensure_ascii=True, separators=(",", ":"))
