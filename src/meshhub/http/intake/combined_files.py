"""Files of a request that become one scene."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from meshhub.http.intake.conversion_requests import InputFile
from meshhub.http.intake.names import label, stem
from meshhub.http.intake.uploads import UploadedFile
from meshhub.registry import Registry


def combine_files(uploads: Sequence[UploadedFile], registry: Registry) -> InputFile:
    """Return the models of a form as one input, named after the first.

    Files that no reader reads by their extension are companions of all models.
    """
    readers = registry.declarations.readers
    extensions = {extension for reader in readers for extension in reader.capability.format.extensions}
    companions = {
        upload.name: upload.path for upload in uploads if PurePosixPath(upload.name.lower()).suffix not in extensions
    }
    models = [upload for upload in uploads if upload.name not in companions] or uploads
    first, *others = (
        InputFile(
            name=model.name,
            folder="",
            stem=stem(label(model.name)),
            path=model.path,
            companions={name: path for name, path in companions.items() if name != model.name},
        )
        for model in models
    )
    return replace(first, others=tuple(others))
