"""Watching code for what plug-ins must not do: warn, print, leave files."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path


def require(true: object, message: str) -> None:
    """Fail with a message, under `python -O` too."""
    if not true:
        raise AssertionError(message)


@contextlib.contextmanager
def watched(what: str) -> Iterator[None]:
    """Fail when the code inside warns, prints, or leaves a file in the working folder or among temporary files."""
    before, temporary, said = Path.cwd(), tempfile.tempdir, io.StringIO()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        os.chdir(folder)
        tempfile.tempdir = folder
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                yield
        finally:
            os.chdir(before)
            tempfile.tempdir = temporary
        left = sorted(path.name for path in Path(folder).iterdir())
    require(not warned, f"{what} warns: {', '.join(sorted({str(one.message) for one in warned}))}")
    require(not said.getvalue(), f"{what} prints {said.getvalue()[:200]!r}")
    require(not left, f"{what} leaves files behind: {', '.join(left)}")
