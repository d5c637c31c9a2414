"""Temporary folder of a process of the service."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from multiprocessing.util import Finalize

from msgspec import structs

from meshhub.engine.scratch import Scratch, sweep
from meshhub.service.settings import Settings

_MAX_TEMPORARY_PATH_LENGTH = 60
"""Maximum characters of the path; the path of a Unix socket is limited to about 100, and Python appends some 30."""


@contextlib.contextmanager
def own_temporary_folder(settings: Settings) -> Iterator[Settings]:
    """Remove the folders of killed services, and put Python's own temporary files into such a folder.

    The socket of the fork server is one of these files, and `kill -9` leaves it behind. The yielded settings name the
    folder for uploads.
    """
    try:
        system_folder = tempfile.gettempdir()
        sweep()
        if settings.temporary_folder:
            sweep(settings.temporary_folder)
        scratch = Scratch("service")
    except OSError:
        # create_app reports a folder that is not writable
        yield settings
        return
    # remove it at exit, after multiprocessing (priority -100) has removed its own folder inside
    Finalize(None, scratch.remove, exitpriority=-200)
    previous = tempfile.tempdir
    if len(str(scratch.path)) <= _MAX_TEMPORARY_PATH_LENGTH:
        tempfile.tempdir = str(scratch.path)
    try:
        yield structs.replace(settings, temporary_folder=settings.temporary_folder or system_folder)
    finally:
        tempfile.tempdir = previous
