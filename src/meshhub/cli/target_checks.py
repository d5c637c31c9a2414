"""Check the target of a conversion: its format, and whether it may be written."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from meshhub.errors import OutputExists
from meshhub.model.capabilities import Format
from meshhub.model.chain import Chain, Request
from meshhub.pipeline.inputs import Inputs
from meshhub.pipeline.outputs import check_output
from meshhub.pipeline.resolve import unsupported_target
from meshhub.registry import Registry


def find_format(registry: Registry, to: str) -> Format:
    """Return the target format with an id or extension. Raises UnsupportedTarget."""
    target = registry.declarations.format_of(to)
    if target is None:
        raise unsupported_target(to, registry.declarations)
    return target


def preview(
    registry: Registry, model: Inputs, target: Path, request: Request, *, overwrite: bool, creates_folder: bool
) -> Chain:
    """Return the chain of a conversion that could be written now, without running it.

    Raises:
        MeshhubError: The request is invalid.
        OSError: The target cannot be written.
    """
    with registry.open_model(model, request.options) as opened:
        chain = registry.resolve(request, opened)
    # the folders of derived outputs are created
    if not creates_folder or os.path.lexists(target.parent):
        check_output(target, overwrite=overwrite)
    return chain


@contextlib.contextmanager
def suggesting_overwrite(flags: str) -> Iterator[None]:
    """Add the names of the flags that overwrite an existing output to the error about it."""
    try:
        yield
    except OutputExists as error:
        raise OutputExists(f"{error.message}; use {flags} to overwrite it") from error
