"""Files of a request that become one scene."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from meshhub.http.intake.conversion_requests import InputFile
from meshhub.http.intake.names import label, stem
from meshhub.http.intake.uploads import UploadedFile
from meshhub.pipeline.archived_models import sort_files
from meshhub.registry import Registry


def combine_files(uploads: Sequence[UploadedFile], registry: Registry) -> InputFile:
    """Return the models of a form as one input, named after the first.

    Files that no reader reads by their extension or content are companions of all models. Reads the files.
    """
    # several uploads may have one name
    paths = {f"{number}/{upload.name}": upload.path for number, upload in enumerate(uploads)}
    contents = sort_files(paths, registry.declarations, registry.hooks.sniffing())
    companions = {PurePosixPath(key).name: path for key, path in contents.companions.items()}
    models = [upload for key, upload in zip(paths, uploads, strict=True) if key in contents.models] or uploads
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
