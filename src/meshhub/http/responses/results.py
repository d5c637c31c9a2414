"""Responses with files: one converted model, or a ZIP of several."""

from __future__ import annotations

import hashlib
import re
import shutil
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from litestar import Response
from litestar.response import Stream

from meshhub.http.admission.threads import Threads
from meshhub.http.errors import RETRY_AFTER, ServiceError
from meshhub.http.headers import CONVERTED, FAILED, REPORT
from meshhub.http.intake.conversion_requests import MODEL_NAME, ConversionRequest, FileResult
from meshhub.http.intake.names import EntryNames, content_disposition, entry_path
from meshhub.http.responses.reports import batch_header, file_header
from meshhub.http.translating import encode_json
from meshhub.model.capabilities import Format
from meshhub.model.report import FileError, Report
from meshhub.model.source import Target
from meshhub.model.translations import Texts
from meshhub.registry import Registry

ERRORS_NAME = "errors.json"
REPORT_NAME = "report.json"

FileResponse = Stream | Response[bytes]
"""Response with a file."""

_CHUNK_BYTES = 1 << 20
"""Bytes of a file in memory at a time."""

_TIMESTAMP = (1980, 1, 1, 0, 0, 0)
"""Earliest time that a ZIP can store; a constant, so that equal files give equal bytes."""

_BED = re.compile(r"-bed\d+")

_COMPRESSED_IMAGES = frozenset((".png", ".jpg", ".jpeg", ".webp"))
"""Extensions of companions that are compressed."""


class ModelFile(NamedTuple):
    """Converted model to send: its file, or a ZIP of the files of its beds."""

    path: Path
    name: str
    media_type: str
    headers: dict[str, str]


async def prepare_model(threads: Threads, result: FileResult, registry: Registry) -> ModelFile:
    """Return the file to send for a converted model; a ZIP if there are several, or each bed was to have one."""
    report, target = result.report, result.target
    assert report is not None and target is not None and target.folder is not None
    target_format = registry.declarations.formats[report.target.format]
    if target.beds or _bed_of(target):
        path = target.folder / "beds.zip"
        await threads.run_archive(pack_results, path, [result], target_format, False, Texts())
        return ModelFile(path, f"{result.file.stem}-beds.zip", "application/zip", {REPORT: file_header(report)})
    return ModelFile(
        target.folder / target.name,
        result.file.stem + target_format.extensions[0],
        target_format.media_types[0],
        {REPORT: file_header(report, has_companions=len(target.names) > 1)},
    )


def _bed_of(target: Target) -> str:
    """Return the end of the name of a bed's file, such as "-bed1"; "" for a model as one file."""
    match = _BED.match(target.name, len(MODEL_NAME))
    return match[0] if match else ""


async def model_response(threads: Threads, result: FileResult, registry: Registry) -> FileResponse:
    """Return the response with a converted model."""
    file = await prepare_model(threads, result, registry)
    return file_response(threads, file.path, file.media_type, file.name, file.headers)


def file_response(threads: Threads, path: Path, media_type: str, name: str, headers: dict[str, str]) -> FileResponse:
    """Return a response with a file that was just written: a small one whole, a larger one in chunks."""
    size = path.stat().st_size
    added = {
        **headers,
        "Content-Disposition": content_disposition(name),
        "Content-Length": str(size),
        "X-Content-Type-Options": "nosniff",
    }
    if size <= _CHUNK_BYTES:
        # the file is still in the memory of the system, so another thread would take longer than the read
        return Response(path.read_bytes(), media_type=media_type, status_code=200, headers=added)
    return Stream(_stream_file(threads, path, size), media_type=media_type, status_code=200, headers=added)


async def _stream_file(threads: Threads, path: Path, size: int) -> AsyncIterator[bytes]:
    # no read at the end of the file, because the client may disconnect as soon as it has Content-Length bytes
    for start in range(0, size, _CHUNK_BYTES):
        yield await threads.run(_read_chunk, path, start)


def _read_chunk(path: Path, start: int) -> bytes:
    """Read a part of a file; the thread opens the file itself, so that the file cannot be closed meanwhile."""
    with path.open("rb") as file:
        file.seek(start)
        return file.read(_CHUNK_BYTES)


def batch_response(threads: Threads, path: Path, name: str, results: list[FileResult]) -> FileResponse:
    """Return the response with a ZIP from `pack_results`."""
    return file_response(threads, path, "application/zip", name, batch_headers(results))


def batch_headers(results: list[FileResult]) -> dict[str, str]:
    """Return the report and the counts of a ZIP."""
    reports = [(result.file.name, result.report) for result in results if result.report is not None]
    failed = len(results) - len(reports)
    return {REPORT: batch_header(reports, failed), CONVERTED: str(len(reports)), FAILED: str(failed)}


async def pack_batch(
    threads: Threads, folder: Path, results: list[FileResult], conversion: ConversionRequest, texts: Texts
) -> Path:
    """Write the ZIP of a batch to a folder, with messages in the language of the request.

    Raises:
        ServiceError: All files failed.
    """
    _raise_if_all_failed(results)
    assert conversion.request.output is not None
    path = folder / "result.zip"
    await threads.run_archive(pack_results, path, results, conversion.request.output, conversion.wants_report, texts)
    return path


def _raise_if_all_failed(results: list[FileResult]) -> None:
    """Raise ServiceError with all failures if no file was converted.

    If a file failed because the service was busy, the error has the code of that failure, because a retry may succeed.
    """
    if any(result.report is not None for result in results):
        return
    codes = {result.error_code for result in results}
    codes = codes & RETRY_AFTER.keys() or codes
    first = next(result for result in results if result.error_code in codes)
    message = f"{first.file.name!r} could not be converted: {first.error}"
    if len(results) > 1:
        message = f"none of the {len(results)} files could be converted, see details; the first error: {first.error}"
    raise ServiceError(
        message,
        error_code=codes.pop() if len(codes) == 1 else "conversion_failed",
        details=[result.failure() for result in results],
        headers={CONVERTED: "0", FAILED: str(len(results))},
        values=first.values if len(results) == 1 else None,
    )


def pack_results(path: Path, results: list[FileResult], target_format: Format, report: bool, texts: Texts) -> None:
    """Write the ZIP: converted files, `errors.json` if some failed, `report.json` if `report` is set."""
    rows: list[dict[str, Any] | FileError] = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        packer = _Packer(archive, target_format)
        for result in results:
            if result.report is None or result.target is None:
                rows.append(result.failure())
                continue
            name = packer.add(result, result.target)
            rows.append(_report_row(result, name, result.report))
        failures = [result.failure() for result in results if result.report is None]
        if failures:
            _add_json(archive, ERRORS_NAME, failures, texts)
        if report:
            _add_json(archive, REPORT_NAME, {"files": rows}, texts)


def _report_row(result: FileResult, name: str, report: Report) -> dict[str, Any]:
    return {"file": result.file.name, "output": name, "report": report}


class _Packer:
    """Writer of converted files and their companions into a ZIP."""

    def __init__(self, archive: zipfile.ZipFile, target_format: Format) -> None:
        self._archive = archive
        self._format = target_format
        self._names = EntryNames((ERRORS_NAME, REPORT_NAME))
        # SHA-256 of each companion in the archive, by entry name
        self._digests: dict[str, bytes] = {}

    def add(self, result: FileResult, target: Target) -> str:
        """Add a converted file with its companions and further beds next to it; return the name of its entry.

        The model refers to its companions by name, so they cannot be renamed. If another model's companions have the
        same names and different content, this model gets a separate folder.
        """
        assert target.folder is not None
        # only the digests, because textures may be as large as the model, and a batch may have hundreds
        companions = {name: _digest(target.folder / name) for name in target.names[1:]}
        folder = self._choose_folder(result.file.folder, result.file.stem, companions)
        entries = []
        for file in target.files:
            entry = self._names.assign(folder, result.file.stem + _bed_of(file), self._format.extensions[0])
            _copy(self._archive, entry, target.folder / file.name, is_compressed=self._format.is_compressed)
            entries.append(entry)
        for name, digest in companions.items():
            companion = entry_path(folder, name)
            if self._names.is_free(companion):
                self._names.reserve(companion)
                self._digests[companion] = digest
                is_compressed = Path(name).suffix.lower() in _COMPRESSED_IMAGES
                _copy(self._archive, companion, target.folder / name, is_compressed=is_compressed)
        return entries[0]

    def _choose_folder(self, folder: str, stem: str, companions: dict[str, bytes]) -> str:
        paths = {entry_path(folder, name): digest for name, digest in companions.items()}
        if all(self._names.is_free(path) or self._digests.get(path) == digest for path, digest in paths.items()):
            return folder
        number = 1
        own = entry_path(folder, stem)
        while any(not self._names.is_free(entry_path(own, name)) for name in companions):
            number += 1
            own = entry_path(folder, f"{stem}-{number}")
        return own


def _digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _copy(archive: zipfile.ZipFile, name: str, path: Path, *, is_compressed: bool) -> None:
    info = _entry_info(name, zipfile.ZIP_STORED if is_compressed else zipfile.ZIP_DEFLATED)
    with path.open("rb") as source, archive.open(info, "w") as sink:
        shutil.copyfileobj(source, sink, _CHUNK_BYTES)


def _add_json(archive: zipfile.ZipFile, name: str, payload: Any, texts: Texts) -> None:
    with archive.open(_entry_info(name, zipfile.ZIP_DEFLATED), "w") as sink:
        sink.write(msgspec.json.format(encode_json(payload, texts), indent=2))


def _entry_info(name: str, method: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _TIMESTAMP)
    info.compress_type = method
    info.external_attr = 0o644 << 16
    info.create_system = 3
    return info
