"""Plug-in with a storage of addresses shelf://name; its files are in the folder of the variable SHELF."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from meshhub import OutputExists, Storage, hookimpl

OPENED: list[str] = []
"""Every address that was opened in this process."""


@hookimpl
def meshhub_storages() -> list[Storage]:
    return [
        Storage(scheme="shelf", run="shelf_plugin:ShelfFile"),
        Storage(scheme="broken", run="shelf_plugin:open_broken"),
        Storage(scheme="absent", run="shelf_plugin:ShelfFile", needs=("no_such_module",), install="shelf[absent]"),
    ]


class ShelfFile:
    def __init__(self, address: str) -> None:
        OPENED.append(address)
        self.address = address
        self.path = Path(os.environ["SHELF"], address.partition("://")[2])

    def fetch(self, file: BinaryIO) -> None:
        if not self.path.is_file():
            raise FileNotFoundError(errno.ENOENT, "the shelf has no such file", self.address)
        file.write(self.path.read_bytes())

    def list_folder(self) -> dict[str, ShelfFile]:
        folder = self.path.parent
        paths = [path for path in folder.rglob("*") if path.is_file()]
        prefix = self.address.rpartition("/")[0]
        return {name: ShelfFile(f"{prefix}/{name}") for name in (path.relative_to(folder).as_posix() for path in paths)}

    def store(self, files: Sequence[Path], *, overwrite: bool) -> None:
        if self.path.exists() and not overwrite:
            raise OutputExists(f"{self.address} already exists and was not changed")
        shutil.copy(files[0], self.path)
        for file in files[1:]:
            shutil.copy(file, self.path.parent / file.name)


def open_broken(address: str) -> ShelfFile:
    raise KeyError(address)
