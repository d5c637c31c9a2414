"""Companions of models that a service converts: sent with the model, and written beside the result."""

from __future__ import annotations

import io
import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import TypeGuard, cast

import msgspec
from msgspec import Struct

from meshhub.errors import RequestError, ServiceUnreachable, quote
from meshhub.model.report import Report
from meshhub.pipeline.companion_mentions import find_companions
from meshhub.pipeline.existing_files import Replacing
from meshhub.pipeline.outputs import open_output
from meshhub.service.jobs.job import UploadField

ModelInput = str | Path | tuple[str, bytes]
"""Path of a file, or its name and content."""

ModelInputs = ModelInput | Sequence[ModelInput]
"""A model, or several."""

_TARGETS = frozenset(("obj", "dae"))
"""Extensions of the formats that store materials or textures in separate files."""

_REPORT_NAME = "report.json"
"""Entry of a result with the report of each file."""


class Upload(Struct, frozen=True):
    """Files to send.

    Attributes:
        field: Field of the form.
        files: Names and contents.
    """

    field: UploadField
    files: tuple[tuple[str, bytes], ...]


class _Converted(Struct):
    """Row of a converted model in the report of an archive."""

    output: str
    report: Report


class _ArchiveReport(Struct):
    """Report of an archive; the model is its first file."""

    files: list[msgspec.Raw]


def is_several(source: ModelInputs) -> TypeGuard[Sequence[ModelInput]]:
    """Return whether a program passes several models; a name with its content is one."""
    return isinstance(source, list | tuple) and not (len(source) == 2 and isinstance(source[1], bytes))


def read_models(source: ModelInputs) -> Upload:
    """Return the upload of a model, or of several, without companions. Raises OSError, ValueError if there is none."""
    if not is_several(source):
        return Upload("file", (_read(cast(ModelInput, source)),))
    if not source:
        raise ValueError("the list of models is empty")
    return Upload("files", tuple(map(_read, source)))


def read_with_shared_companions(models: Sequence[ModelInput]) -> Upload:
    """Return the upload of models that become one file, with their companions, which the service finds by name.

    Raises:
        RequestError: Two companions have the same name and different contents.
        OSError, ValueError: A file cannot be read, or there is none.
    """
    upload = read_models(models)
    companions: dict[str, bytes] = {}
    paths = (path for model in models if not isinstance(model, tuple) for path in find_companions(Path(model)).values())
    for path in paths:
        content = path.read_bytes()
        if companions.setdefault(path.name, content) != content:
            raise RequestError(
                f"the models need different files that are named {quote(path.name)}; rename one, or convert each model"
            )
    return msgspec.structs.replace(upload, files=(*upload.files, *companions.items()))


def read_with_companions(source: ModelInput, target: str) -> Upload:
    """Return the upload of a model with its companions, for a result in the format `target`. Raises OSError."""
    name, content = _read(source)
    companions = {} if isinstance(source, tuple) else find_companions(Path(source))
    if companions:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            archive.writestr(name, content)
            for companion, path in companions.items():
                archive.write(path, companion)
        return Upload("archive", ((f"{Path(name).stem}.zip", buffer.getvalue()),))
    return Upload("files" if target.lower().lstrip(".") in _TARGETS else "file", ((name, content),))


def _read(source: ModelInput) -> tuple[str, bytes]:
    return source if isinstance(source, tuple) else (Path(source).name, Path(source).read_bytes())


def unpack_result(archive: Path, target: Path, replacing: Replacing) -> Report:
    """Write the converted model of an archive to a path, with its companions beside it; return its report.

    Raises:
        OutputExists: The file exists and must stay.
        FileExistsError: A companion has the name of another file, which stays.
    """
    try:
        with zipfile.ZipFile(archive) as result, open_output(target, {}, replacing) as output:
            rows = msgspec.json.decode(result.read(_REPORT_NAME), type=_ArchiveReport).files
            converted = msgspec.json.decode(rows[0], type=_Converted)
            with result.open(converted.output) as source, output.open() as file:
                shutil.copyfileobj(source, file)
            for name in result.namelist():
                if name not in (converted.output, _REPORT_NAME):
                    output.companion(PurePosixPath(name).name, result.read(name))
    except (zipfile.BadZipFile, LookupError, msgspec.MsgspecError) as error:
        raise ServiceUnreachable(f"the archive of the result cannot be read: {error}; check the address") from error
    return converted.report
