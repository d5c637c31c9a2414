"""Uploads: multipart bodies, parsed while they arrive, with files written to disk and all limits enforced.

The framework's own parser cannot limit a single file, and answers 400 or 500 where 413 or 400 is correct.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast
from urllib.parse import unquote_to_bytes

from multipart import MultipartError, PushMultipartParser, parse_options_header

from meshhub.errors import quote
from meshhub.http.errors import ServiceError
from meshhub.http.intake.names import label
from meshhub.model.plans import Limits

MEGABYTE = 1 << 20
"""Bytes."""

MAX_FORM_BYTES = MEGABYTE
"""Maximum bytes of the text fields and the multipart framing of a form, in addition to its files."""

MAX_TEXT_BYTES = 16_384
"""Maximum bytes of a text field; the longest option values are far shorter."""

MAX_TEXT_COUNT = 100
"""Maximum number of text fields of a form: a few times the number of options."""

MAX_SEGMENT_COUNT = 10_000
"""Maximum number of parts of a form: more files than any plan allows; bounds the cost of empty parts."""

MAX_BOUNDARY_LENGTH = 200
"""Maximum characters; RFC 2046 §5.1.1 allows 70, some clients send more."""

MAIN_FIELDS = ("file", "files", "archive")

_CHARSETS = {
    "utf-8": "utf-8", "utf8": "utf-8", "us-ascii": "ascii", "ascii": "ascii", "iso-8859-1": "latin-1",
    "latin-1": "latin-1", "latin1": "latin-1", "windows-1252": "cp1252", "utf-16": "utf-16",
}  # fmt: skip
_EXTENDED_NAME = re.compile(r"filename\*\s*=\s*\"?utf-8'[^']*'([^;\"\s]+)", re.IGNORECASE | re.ASCII)

MainField = Literal["file", "files", "archive"]
AnyField = Literal["any"]
"""Marker for a form that may use any of the main fields: its first file decides which one."""

ModelField = Literal["model"]
"""Marker for a form with one model in the field `file`, and the files that it needs in `companions`."""

COMPANIONS = "companions"
"""Field of the files that the model of a form needs, such as materials and textures."""

FileFields = MainField | AnyField | ModelField | None
"""Fields with the files of a form; None for a form without files."""


@dataclass(frozen=True)
class UploadedFile:
    """File of a form: its safe label, and the path of its content."""

    name: str
    path: Path
    size: int


@dataclass
class Form:
    """Complete form; `stray_files` names the fields that carried a file although the endpoint has another field.

    `main` is the field with the files. Companions of a model follow it in `files`.
    """

    main: MainField = "file"
    files: list[UploadedFile] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    stray_files: list[str] = field(default_factory=list)


def max_body_bytes(main: FileFields, limits: Limits) -> int | None:
    """Return the maximum size of a body, including framing; None for no limit."""
    if main is None:
        return MAX_FORM_BYTES
    candidates = (limits.request_bytes, limits.max_file_bytes if main in ("file", "archive") else None)
    bounds = [bound for bound in candidates if bound]
    return min(bounds) + MAX_FORM_BYTES if bounds else None


def too_large(main: FileFields, limits: Limits, problem: str) -> ServiceError:
    """Return the error for bytes beyond the plan's limits."""
    if main is None:
        return ServiceError(
            f"{problem}; a form without files has at most {MAX_FORM_BYTES}",
            error_code="file_too_large",
            values={"limit_bytes": MAX_FORM_BYTES},
        )
    code = "archive_too_large" if main == "archive" else "file_too_large"
    bounds = []
    if limits.max_file_bytes is not None:
        bounds.append(f"{'an archive' if main == 'archive' else 'a file'} of {limits.max_file_bytes} bytes")
    if limits.request_bytes is not None:
        bounds.append(f"{limits.request_bytes} bytes in one request")
    return ServiceError(
        f"{problem}; this plan allows {' and '.join(bounds)}: send less, or use the key of a plan that allows more",
        error_code=code,
        values={"limit_bytes": min(filter(None, (limits.max_file_bytes, limits.request_bytes)), default=0)},
    )


def too_many_files(limit: int) -> ServiceError:
    """Return the error for more files than the plan allows in one request."""
    return ServiceError(
        f"more than {limit} files were sent; this plan allows {limit} in one batch: send fewer at once",
        error_code="too_many_files",
        values={"limit": limit},
    )


def _create_parser(content_type: str) -> PushMultipartParser:
    kind, options = parse_options_header(content_type)
    if kind != "multipart/form-data":
        raise ServiceError(
            f"send the form as multipart/form-data (curl -F), not as {kind[:60] or 'a body without Content-Type'}",
            error_code="invalid_multipart",
        )
    boundary = options.get("boundary", "")
    if not boundary or len(boundary) > MAX_BOUNDARY_LENGTH or not boundary.isascii():
        raise ServiceError(
            "Content-Type has no valid boundary; let your HTTP library set this header", error_code="invalid_multipart"
        )
    # names are labels and are decoded below, where an invalid byte is harmless
    return PushMultipartParser(boundary, max_segment_count=MAX_SEGMENT_COUNT, header_charset="latin-1")


class FormParser:
    """Parser of a form that arrives in chunks: files go to disk, texts to memory, within the limits."""

    def __init__(self, content_type: str, main: FileFields, limits: Limits, folder: Path) -> None:
        """Parse a body of a Content-Type; write the files of the fields `main` to `folder`. Raises ServiceError."""
        self._parser = _create_parser(content_type)
        self._form = Form()
        self._companion_field = COMPANIONS if main == "model" else None
        self._main: MainField | AnyField | None = "file" if main == "model" else main
        if self._main is not None and self._main != "any":
            self._form.main = self._main
        self._limits = limits
        self._folder = folder
        self._file: BinaryIO | None = None
        self._path = folder
        self._text: bytearray | None = None
        self._name = ""
        self._filename = ""
        self._label = ""
        self._charset = "utf-8"
        self._size = 0
        self._is_stray_file = False

    def feed(self, chunk: bytes) -> None:
        """Parse the next bytes of the body; ignore those after the last part. Raises ServiceError."""
        if self._parser.closed:
            return
        try:
            for event in self._parser.parse(chunk):
                if event is None:
                    self._end_part()
                elif isinstance(event, bytes | bytearray):
                    self._add_bytes(event)
                else:
                    self._begin_part(event)
        except MultipartError as error:
            raise _invalid(
                f"the body is not valid multipart/form-data: {error.args[0]}; let your HTTP library create the form"
            ) from None

    def finish(self) -> Form:
        """Return the form at the end of the body. Raises ServiceError if it is incomplete."""
        # an empty chunk is the end
        self.feed(b"")
        return self._form

    def close(self) -> None:
        """Close an incomplete file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _begin_part(self, part: Any) -> None:
        encoding = part.header("Content-Transfer-Encoding", "binary").strip().lower()
        if encoding not in ("binary", "8bit", "7bit"):
            raise _invalid(f"a part is encoded as {quote(encoding)}; send its bytes unencoded")
        self._size = 0
        self._name = _decode_header(part.name)
        if self._main == "any" and self._name in MAIN_FIELDS:
            self._main = self._form.main = cast(MainField, self._name)
        if self._name in (self._main, self._companion_field):
            self._begin_file(part)
        else:
            self._begin_text(part)

    def _begin_file(self, part: Any) -> None:
        if self._name == self._companion_field:
            if not self._form.files:
                raise ServiceError(f"the field {COMPANIONS!r} was sent before the model; send the field 'file' first")
        elif self._main != "files" and self._form.files:
            raise ServiceError(f"the field {self._main!r} was sent twice; send it once, or use /convert-many")
        limit = self._limits.max_batch_files
        if self._main == "files" and limit is not None and len(self._form.files) >= limit:
            raise too_many_files(limit)
        self._filename = _filename_of(part)
        self._label = label(self._filename)
        self._path = self._folder / f"upload-{len(self._form.files)}-{secrets.token_hex(4)}"
        self._file = self._path.open("xb")

    def _begin_text(self, part: Any) -> None:
        self._is_stray_file = self._name not in MAIN_FIELDS and bool(_filename_of(part))
        if self._is_stray_file:
            self._form.stray_files.append(self._name)
        if self._name in self._form.texts:
            raise ServiceError(f"the field {quote(self._name)} was sent twice; send it once")
        if len(self._form.texts) >= MAX_TEXT_COUNT:
            raise _invalid(f"the form has more than {MAX_TEXT_COUNT} text fields")
        charset = (part.charset or "utf-8").lower()
        if charset not in _CHARSETS:
            raise _invalid(f"the charset {quote(charset)} of field {quote(self._name)} is not supported; send UTF-8")
        self._charset = _CHARSETS[charset]
        self._text = bytearray()

    def _add_bytes(self, data: bytes | bytearray) -> None:
        self._size += len(data)
        if self._file is not None:
            limit = self._limits.max_file_bytes
            if limit is not None and self._size > limit:
                raise too_large(self._main, self._limits, f"{self._label!r} is larger than {limit} bytes")
            self._file.write(data)
        elif self._text is not None:
            if self._name in MAIN_FIELDS:
                return
            if self._size > MAX_TEXT_BYTES:
                if self._is_stray_file:
                    raise wrong_field(self._name, self._main)
                raise _invalid(f"the text field {quote(self._name)} is longer than {MAX_TEXT_BYTES} bytes")
            self._text += data

    def _end_part(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
            # a browser sends a nameless, empty part for a file input without a selected file
            if self._filename or self._size:
                self._form.files.append(UploadedFile(self._label, self._path, self._size))
            else:
                # a form can have thousands of them
                self._path.unlink()
        elif self._text is not None:
            try:
                self._form.texts[self._name] = self._text.decode(self._charset)
            except UnicodeDecodeError:
                if self._is_stray_file:
                    raise wrong_field(self._name, self._main) from None
                raise _invalid(f"the text field {quote(self._name)} is not {self._charset} text") from None
            self._text = None


def wrong_field(name: str, main: FileFields) -> ServiceError:
    """Return the error for a file in a field that takes no file."""
    if main is None:
        return ServiceError(
            f"the field {quote(name)} takes no file here; describe the file in 'sources'", error_code="missing_field"
        )
    main = "file" if main in ("any", "model") else main
    return ServiceError(
        f"the field {quote(name)} takes no file; send the file in {main!r} alone (curl -F {main}=@model.stl)",
        error_code="missing_field",
    )


def _invalid(message: str) -> ServiceError:
    return ServiceError(message, error_code="invalid_multipart")


def _decode_header(raw: str) -> str:
    """Decode header text, which the parser decoded as Latin-1, as UTF-8."""
    return raw.encode("latin-1", "replace").decode("utf-8", "replace")


def _filename_of(part: Any) -> str:
    """Return the file name of a part, in either of the notations that clients use; "" without one."""
    if part.filename:
        return _decode_header(part.filename)
    extended = _EXTENDED_NAME.search(part.header("Content-Disposition", ""))
    return unquote_to_bytes(extended[1]).decode("utf-8", "replace") if extended else ""
