"""Uploads: multipart bodies parsed while they arrive, files straight to disk, every limit kept on the way.

The framework's own parser cannot limit one file, and answers 400 or 500 where 413 or 400 is due.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal
from urllib.parse import unquote_to_bytes

from multipart import MultipartError, PushMultipartParser, parse_options_header

from meshhub.errors import quote
from meshhub.http.admission.resources import Jobs
from meshhub.http.context import Context
from meshhub.http.errors import ClientGone, ServiceError
from meshhub.http.intake.names import label
from meshhub.model.plans import Limits

MEGABYTE = 1 << 20
FORM_BYTES = MEGABYTE
"""What the text fields and the multipart framing of one form may take beside the files."""

_STEP = MEGABYTE
"""Disk is asked for in such steps."""

TEXT_BYTES = 16_384
"""The longest text field."""

TEXT_PARTS = 100
"""The most text fields."""

MAIN_FIELDS = ("file", "files", "archive")

_CHARSETS = {
    "utf-8": "utf-8", "utf8": "utf-8", "us-ascii": "ascii", "ascii": "ascii", "iso-8859-1": "latin-1",
    "latin-1": "latin-1", "latin1": "latin-1", "windows-1252": "cp1252", "utf-16": "utf-16",
}  # fmt: skip
_EXTENDED_NAME = re.compile(r"filename\*\s*=\s*\"?utf-8'[^']*'([^;\"\s]+)", re.IGNORECASE | re.ASCII)

MainField = Literal["file", "files", "archive"]


@dataclass(frozen=True)
class Uploaded:
    """A file that came: its harmless label, and where its bytes lie."""

    name: str
    path: Path
    size: int


@dataclass
class Form:
    """A whole form; `stray_files` names the fields that carried a file in the place of the endpoint's own field."""

    files: list[Uploaded] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    stray_files: list[str] = field(default_factory=list)


def check_encoding(encoding: str) -> None:
    """Reject a compressed body. Raises ServiceError."""
    if encoding.strip().lower() not in ("", "identity"):
        raise ServiceError(
            f"the body is encoded as {quote(encoding)}; send it without Content-Encoding",
            code="unsupported_encoding",
            headers={"Accept-Encoding": "identity"},
        )


def check_length(declared: str | None, main: MainField, limits: Limits) -> int | None:
    """The declared length of a body that is not too large. Raises ServiceError."""
    if declared is None:
        return None
    if not declared.isascii() or not declared.isdigit():
        raise ServiceError("Content-Length must be a whole number")
    length = int(declared[:19])
    most = body_limit(main, limits)
    if most is not None and length > most:
        raise too_large(main, limits, f"the request announces {length} bytes")
    return length


def body_limit(main: MainField, limits: Limits) -> int | None:
    """The most bytes that a body may have, framing included."""
    bounds = [one for one in (limits.max_request_bytes, limits.max_file_bytes if main != "files" else None) if one]
    return min(bounds) + FORM_BYTES if bounds else None


def too_large(main: MainField, limits: Limits, what: str) -> ServiceError:
    """The error for bytes beyond the plan."""
    code = "archive_too_large" if main == "archive" else "file_too_large"
    bounds = []
    if limits.max_file_bytes is not None:
        bounds.append(f"{'an archive' if main == 'archive' else 'a file'} of {limits.max_file_bytes} bytes")
    if limits.max_request_bytes is not None:
        bounds.append(f"{limits.max_request_bytes} bytes in one request")
    return ServiceError(
        f"{what}; this plan allows {' and '.join(bounds)}: send less, or use the key of a plan that allows more",
        code=code,
    )


async def receive_form(
    request: Any, context: Context, main: MainField, limits: Limits, folder: Path, deadline: float | None, jobs: Jobs
) -> Form:
    """The form of a request, its files in `folder`; `deadline` is of the loop's clock.

    Disk is promised as bytes arrive. Raises ServiceError, ServerBusy, ShuttingDown, ClientGone.
    """
    parser = _parser(request.headers.get("content-type", ""))
    reading = _Reading(main, limits, folder)
    most = body_limit(main, limits)
    received = promised = 0
    try:
        async with jobs.receiving(context, deadline):
            async for chunk in _chunks(request.receive, context):
                received += len(chunk)
                if most is not None and received > most:
                    raise too_large(main, limits, f"the request is larger than {most} bytes")
                if received > promised:
                    await jobs.arrived(context, _STEP)
                    promised += _STEP
                if not parser.closed:
                    for event in parser.parse(chunk):
                        reading.take(event)
        if not parser.closed:
            parser.close()
    except TimeoutError:
        raise ServiceError("the upload took longer than this plan allows one request; send less at once") from None
    except MultipartError as error:
        raise ServiceError(
            f"the body is not valid multipart/form-data: {error.args[0]}; let your HTTP library build the form",
            code="invalid_multipart",
        ) from None
    finally:
        reading.close()
    return reading.form


async def _chunks(receive: Any, context: Context) -> AsyncIterator[bytes]:
    while not context.body_read:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        if message.get("body"):
            yield message["body"]


def _parser(content_type: str) -> PushMultipartParser:
    kind, options = parse_options_header(content_type)
    if kind != "multipart/form-data":
        raise ServiceError(
            f"send the form as multipart/form-data (curl -F), not as {kind[:60] or 'a body without a type'}",
            code="invalid_multipart",
        )
    boundary = options.get("boundary", "")
    if not boundary or len(boundary) > 200 or not boundary.isascii():
        raise ServiceError(
            "Content-Type names no usable boundary; let your HTTP library set this header", code="invalid_multipart"
        )
    # names are labels: decoded below, where a stray byte does no harm
    return PushMultipartParser(boundary, max_segment_count=10_000, header_charset="latin-1")


class _Reading:
    """Takes the parser's events: files to disk, texts to memory, each within its limits."""

    def __init__(self, main: MainField, limits: Limits, folder: Path) -> None:
        self.form = Form()
        self._main = main
        self._limits = limits
        self._folder = folder
        self._file: BinaryIO | None = None
        self._path = folder
        self._text: bytearray | None = None
        self._name = ""
        self._sent = ""
        self._label = ""
        self._charset = "utf-8"
        self._size = 0
        self._is_stray_file = False

    def take(self, event: Any) -> None:
        """One event: a part begins, some of its bytes, or it ends (None)."""
        if event is None:
            self._end()
        elif isinstance(event, bytes | bytearray):
            self._bytes(event)
        else:
            self._begin(event)

    def close(self) -> None:
        """Let go of a file that was not finished."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _begin(self, part: Any) -> None:
        encoding = part.header("Content-Transfer-Encoding", "binary").strip().lower()
        if encoding not in ("binary", "8bit", "7bit"):
            raise _invalid(f"a part is encoded as {quote(encoding)}; send its bytes as they are")
        self._size = 0
        self._name = _unicode(part.name)
        if self._name == self._main:
            if self._main != "files" and self.form.files:
                raise ServiceError(f"the field {self._main!r} was sent twice; send it once, or use /convert-many")
            most = self._limits.max_batch_files
            if self._main == "files" and most is not None and len(self.form.files) >= most:
                raise ServiceError(
                    f"more than {most} files were sent; this plan allows {most} in one batch: send fewer at once",
                    code="too_many_files",
                )
            self._sent = _file_name(part)
            self._label = label(self._sent)
            self._path = self._folder / f"upload-{len(self.form.files)}-{secrets.token_hex(4)}"
            self._file = self._path.open("xb")
            return
        self._is_stray_file = self._name not in MAIN_FIELDS and bool(_file_name(part))
        if self._is_stray_file:
            self.form.stray_files.append(self._name)
        if self._name in self.form.texts:
            raise ServiceError(f"the field {quote(self._name)} was sent twice; send it once")
        if len(self.form.texts) >= TEXT_PARTS:
            raise _invalid(f"the form has more than {TEXT_PARTS} text fields")
        charset = (part.charset or "utf-8").lower()
        if charset not in _CHARSETS:
            raise _invalid(f"the charset {quote(charset)} of field {quote(self._name)} is not known; send UTF-8")
        self._charset = _CHARSETS[charset]
        self._text = bytearray()

    def _bytes(self, data: bytes | bytearray) -> None:
        self._size += len(data)
        if self._file is not None:
            most = self._limits.max_file_bytes
            if most is not None and self._size > most:
                raise too_large(self._main, self._limits, f"{self._label!r} is larger than {most} bytes")
            self._file.write(data)
        elif self._text is not None:
            if self._name in MAIN_FIELDS:
                return
            if self._size > TEXT_BYTES:
                if self._is_stray_file:
                    raise wrong_field(self._name, self._main)
                raise _invalid(f"the text field {quote(self._name)} is longer than {TEXT_BYTES} bytes")
            self._text += data

    def _end(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
            # a browser's form sends a nameless, empty part where no file was chosen
            if self._sent or self._size:
                self.form.files.append(Uploaded(self._label, self._path, self._size))
            else:
                # there may be thousands of them
                self._path.unlink()
        elif self._text is not None:
            try:
                self.form.texts[self._name] = self._text.decode(self._charset)
            except UnicodeDecodeError:
                if self._is_stray_file:
                    raise wrong_field(self._name, self._main) from None
                raise _invalid(f"the text field {quote(self._name)} is not {self._charset} text") from None
            self._text = None


def wrong_field(name: str, main: MainField) -> ServiceError:
    """Return the error for a file in a field where none is expected."""
    return ServiceError(
        f"the file came in the field {quote(name)}; send it in {main!r} (curl -F {main}=@model.stl)",
        code="missing_field",
    )


def _invalid(message: str) -> ServiceError:
    return ServiceError(message, code="invalid_multipart")


def _unicode(raw: str) -> str:
    """A header's text, which was taken byte by byte, as the UTF-8 it should be."""
    return raw.encode("latin-1", "replace").decode("utf-8", "replace")


def _file_name(part: Any) -> str:
    """The name that a part's file was sent under, in either of the spellings that clients use; "" without one."""
    if part.filename:
        return _unicode(part.filename)
    extended = _EXTENDED_NAME.search(part.header("Content-Disposition", ""))
    return unquote_to_bytes(extended[1]).decode("utf-8", "replace") if extended else ""
