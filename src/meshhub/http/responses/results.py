"""Answers that carry files: a converted model, or a ZIP of many."""

from __future__ import annotations

import hashlib
import shutil
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
from litestar.response import Stream

from meshhub.http.admission.resources import Jobs
from meshhub.http.errors import RETRY_AFTER, ServiceError
from meshhub.http.intake.conversion_requests import Outcome
from meshhub.http.intake.names import EntryNames, content_disposition, joined
from meshhub.http.responses.reports import CONVERTED, FAILED, HEADER, batch_header
from meshhub.model.report import Report
from meshhub.model.source import Target

ERRORS = "errors.json"
REPORT = "report.json"

_CHUNK = 1 << 20
_NO_TIME = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a ZIP can say: the same files give the same bytes at any time of day."""

_PACKED = frozenset((".3mf", ".png", ".jpg", ".jpeg", ".webp"))
"""Contents that are compressed already."""


def file_answer(jobs: Jobs, path: Path, media_type: str, name: str, headers: dict[str, str]) -> Stream:
    """An answer that sends a file in pieces, never whole in memory."""
    size = path.stat().st_size
    return Stream(
        _pieces(jobs, path, size),
        media_type=media_type,
        status_code=200,
        headers={
            **headers,
            "Content-Disposition": content_disposition(name),
            "Content-Length": str(size),
            "X-Content-Type-Options": "nosniff",
        },
    )


async def _pieces(jobs: Jobs, path: Path, size: int) -> AsyncIterator[bytes]:
    # no read at the end of the file: the client may leave as soon as it has all the bytes it was promised
    for start in range(0, size, _CHUNK):
        yield await jobs.call(_piece, path, start)


def _piece(path: Path, start: int) -> bytes:
    """A part of a file, opened in the thread that reads it: nobody can close it meanwhile."""
    with path.open("rb") as file:
        file.seek(start)
        return file.read(_CHUNK)


def batch_answer(jobs: Jobs, path: Path, name: str, outcomes: list[Outcome]) -> Stream:
    """The answer with a ZIP that `packed` made."""
    done = [(outcome.item.name, outcome.report) for outcome in outcomes if outcome.report is not None]
    failed = len(outcomes) - len(done)
    headers = {
        HEADER: batch_header(done, failed),
        CONVERTED: str(len(done)),
        FAILED: str(failed),
    }
    return file_answer(jobs, path, "application/zip", name, headers)


def refuse_if_all_failed(outcomes: list[Outcome]) -> None:
    """Raises ServiceError with the whole list, when no file was converted.

    What failed for want of room may succeed later, whatever is wrong with the rest: then that is said.
    """
    if any(outcome.report is not None for outcome in outcomes):
        return
    codes = {outcome.error_code for outcome in outcomes}
    codes = codes & RETRY_AFTER.keys() or codes
    first = next(outcome for outcome in outcomes if outcome.error_code in codes)
    text = f"{first.item.name!r} could not be converted: {first.error}"
    if len(outcomes) > 1:
        text = f"none of the {len(outcomes)} files could be converted, see details; the first: {first.error}"
    raise ServiceError(
        text,
        code=codes.pop() if len(codes) == 1 else "conversion_failed",
        details=[outcome.failure() for outcome in outcomes],
        headers={CONVERTED: "0", FAILED: str(len(outcomes))},
    )


def packed(path: Path, outcomes: list[Outcome], extension: str, report: bool) -> None:
    """Write the ZIP: the converted files, `errors.json` when some failed, `report.json` when it was asked for."""
    names = EntryNames((ERRORS, REPORT))
    held: dict[str, bytes] = {}
    told: list[dict[str, Any]] = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for outcome in outcomes:
            if outcome.report is None or outcome.target is None:
                told.append(outcome.failure())
                continue
            name = _place(archive, names, held, outcome, outcome.target, extension)
            told.append(_row(outcome, name, outcome.report))
        failures = [outcome.failure() for outcome in outcomes if outcome.report is None]
        if failures:
            _add(archive, ERRORS, msgspec.json.format(msgspec.json.encode(failures), indent=2))
        if report:
            _add(archive, REPORT, msgspec.json.format(msgspec.json.encode({"files": told}), indent=2))


def _row(outcome: Outcome, name: str, report: Report) -> dict[str, Any]:
    return {"file": outcome.item.name, "output": name, "report": report}


def _place(
    archive: zipfile.ZipFile,
    names: EntryNames,
    held: dict[str, bytes],
    outcome: Outcome,
    target: Target,
    extension: str,
) -> str:
    """Put a converted file and its companions side by side; the name of its entry.

    The model names its companions, so they cannot be renamed: where another model's companions
    have the same names and other contents, this model gets a folder of its own. `held` has the digests
    of the companions that lie in the archive.
    """
    folder, stem = outcome.item.folder, outcome.item.stem
    assert target.folder is not None
    # textures may be as large as the model, and a batch may have hundreds: none of them is held
    companions = {name: _digest(target.folder / name) for name in target.names[1:]}
    taken = (joined(folder, name) for name in companions)
    if any(not names.free(name) and held.get(name) != companions[name.rpartition("/")[2]] for name in taken):
        number = 1
        own = joined(folder, stem)
        while any(not names.free(joined(own, name)) for name in companions):
            number += 1
            own = joined(folder, f"{stem}-{number}")
        folder = own
    entry = names.take(folder, stem, extension)
    _copy(archive, entry, target.folder / target.name)
    for name, digest in companions.items():
        beside = joined(folder, name)
        if names.free(beside):
            names.hold(beside)
            held[beside] = digest
            _copy(archive, beside, target.folder / name)
    return entry


def _digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _copy(archive: zipfile.ZipFile, name: str, path: Path) -> None:
    with path.open("rb") as source, archive.open(_info(name), "w") as sink:
        shutil.copyfileobj(source, sink, _CHUNK)


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    with archive.open(_info(name), "w") as sink:
        sink.write(data)


def _info(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _NO_TIME)
    info.compress_type = zipfile.ZIP_STORED if Path(name).suffix.lower() in _PACKED else zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    info.create_system = 3
    return info
