"""Folders of requests, below a temporary folder of this service."""

from __future__ import annotations

import os
import shutil
import tempfile
from functools import partial
from pathlib import Path

from meshhub.engine.scratch import Scratch, sweep
from meshhub.errors import InvalidSettings
from meshhub.http.admission.threads import Threads
from meshhub.http.context import Context


class Folders:
    """Folders of requests; each is removed when its request ends."""

    def __init__(self, parent: str | None, threads: Threads) -> None:
        """Create no folder before the first request; remove folders in `threads`.

        `parent` is the setting `temporary_folder`. Raises InvalidSettings.
        """
        try:
            folder = parent or tempfile.gettempdir()
        except OSError as error:
            raise InvalidSettings("temporary_folder: the system has no writable one; set this setting") from error
        if not (Path(folder).is_dir() and os.access(folder, os.W_OK | os.X_OK)):
            raise InvalidSettings(f"temporary_folder: {folder!r} is not a writable folder; create it first")
        self._parent = parent
        self._threads = threads
        self._scratch: Scratch | None = None

    @property
    def root(self) -> Path:
        """Folder that has the folders of the requests; created if necessary."""
        if self._scratch is not None and not self._scratch.path.is_dir():
            # a program that cleans temporary folders may have removed it
            self._scratch.remove()
            self._scratch = None
        if self._scratch is None:
            sweep(self._parent)
            self._scratch = Scratch("service", self._parent)
        return self._scratch.path

    def create(self, context: Context) -> Path:
        """Create a folder for one request."""
        path = Path(tempfile.mkdtemp(prefix="job-", dir=self.root))
        # in a thread: some disks need milliseconds for each folder
        context.cleanup.callback(self._threads.run_unobserved, partial(shutil.rmtree, path, ignore_errors=True))
        return path

    def close(self) -> None:
        """Remove all folders."""
        if self._scratch is not None:
            self._scratch.remove()
