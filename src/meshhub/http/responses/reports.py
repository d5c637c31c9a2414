"""Report header of a converted file or a batch."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from meshhub.http.headers import REPORT
from meshhub.http.translating import encode_json
from meshhub.model.notes import Note
from meshhub.model.report import Report
from meshhub.model.translations import Texts
from meshhub.service.jobs.description import summarize_report

MAX_REPORT_BYTES = 4096
"""Maximum bytes of the report header; many clients and proxies reject responses with 8 KB of headers."""

_COMPANIONS_LEFT_OUT = Note(
    "companions_left_out",
    "the target format stores materials or textures in separate files, and this response has one file; "
    "use /convert-many to get all files",
)


def file_header(report: Report, *, has_companions: bool = False) -> str:
    """Return the report header of one converted file; `has_companions`: the response leaves out files beside it."""
    notes = (*report.notes, _COMPANIONS_LEFT_OUT) if has_companions else report.notes
    payload = summarize_report(report, notes)
    header = _encode(payload)
    if len(header) <= MAX_REPORT_BYTES:
        return header
    # figures are for people, who also see the result
    del payload["figures"]
    payload["truncated"] = True
    header = _encode(payload)
    if len(header) <= MAX_REPORT_BYTES:
        return header
    # then drop the texts, because the codes name the problems, and /inspect and report.json have the texts
    payload["notes"] = [{"code": note.code} for note in notes]
    return _truncate(payload, "notes", "losses")


def batch_header(reports: list[tuple[str, Report]], failed: int) -> str:
    """Return the report header of a ZIP: totals, and the note codes of each converted file."""
    notes: dict[str, list[str]] = {}
    for name, report in reports:
        codes = notes.setdefault(name, [])
        codes += [code for code in dict.fromkeys(note.code for note in report.notes) if code not in codes]
    payload = {
        "converted": len(reports),
        "failed": failed,
        "faces_in": sum(report.source.faces for _, report in reports),
        "faces_out": sum(report.target.faces for _, report in reports),
        "seconds": round(sum(report.seconds for _, report in reports), 4),
        "notes": {name: codes for name, codes in notes.items() if codes},
    }
    return _encode(payload) if len(_encode(payload)) <= MAX_REPORT_BYTES else _truncate(payload, "notes")


def translate_report(headers: Iterable[tuple[bytes, bytes]], texts: Texts) -> Iterator[tuple[bytes, bytes]]:
    """Yield the headers of a response with the messages of the report in another language, if they fit into it."""
    for name, value in headers:
        if name.lower() != REPORT.lower().encode():
            yield name, value
            continue
        # the caller may keep the result of a job, which carries the report
        yield b"vary", b"Accept-Language"
        translated = _encode(json.loads(encode_json(json.loads(value), texts))).encode()
        yield name, translated if len(translated) <= MAX_REPORT_BYTES else value


def _truncate(payload: dict[str, Any], *fields: str) -> str:
    """Drop entries from the end of these fields until the header is short enough."""
    payload["truncated"] = True
    for name in fields:
        entries = list(payload[name].items()) if isinstance(payload[name], dict) else payload[name]
        count = len(entries)
        while len(_encode(payload)) > MAX_REPORT_BYTES and count:
            count //= 2
            payload[name] = type(payload[name])(entries[:count])
    return _encode(payload)


def _encode(payload: dict[str, Any]) -> str:
    return json.dumps(payload, ensure_ascii=True, separators=(",", ":"))
