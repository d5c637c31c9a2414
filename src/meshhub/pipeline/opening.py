"""Open the inputs of a run as models: unpack archives, and join several inputs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import PurePath
from typing import cast

from meshhub.errors import quote
from meshhub.model.source import Assembly, Source
from meshhub.pipeline.archived_models import only_model, opened_models
from meshhub.pipeline.declarations import Declarations
from meshhub.pipeline.hooks import Hooks
from meshhub.pipeline.inputs import Input, Inputs, is_several, open_input


@contextmanager
def open_models(source: Input, declarations: Declarations, hooks: Hooks) -> Iterator[list[Source]]:
    """Yield the models of an input; see `Registry.open_models`."""
    with (
        open_input(source, declarations.storages) as opened,
        opened_models(opened, declarations, hooks.sniffing()) as models,
    ):
        yield models


@contextmanager
def open_model(
    source: Inputs, declarations: Declarations, hooks: Hooks, *, is_one_file: bool = False
) -> Iterator[Source]:
    """Yield the model of an input, or of several inputs as one; see `Registry.open_model`.

    Args:
        source: Input, or several.
        declarations: Storages and readers.
        hooks: Sniffers of the files of archives.
        is_one_file: Whether to leave archives closed, because the format of each input is known.
    """
    with ExitStack() as stack:
        if is_several(source):
            opened = (open_model(each, declarations, hooks, is_one_file=is_one_file) for each in source)
            yield Assembly([stack.enter_context(each) for each in opened])
            return
        single = cast(Input, source)
        if is_one_file:
            yield stack.enter_context(open_input(single, declarations.storages))
        else:
            yield only_model(stack.enter_context(open_models(single, declarations, hooks)), _describe(single))


def _describe(value: Input) -> str:
    """Return the name of an archive for messages."""
    if isinstance(value, Source):
        return quote(value.name)
    return quote(PurePath(value).name) if isinstance(value, str | os.PathLike) else "the archive"
