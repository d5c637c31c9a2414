"""Folders of data files in packages."""

from __future__ import annotations

import importlib
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


def package_folder(package: str) -> Path | Traversable:
    """Return the folder of a package, as `importlib.resources.files` does.

    For a package in a folder, that module is not imported, because it imports `zipfile` and `tempfile`.
    """
    module = importlib.import_module(package)
    loader = getattr(module.__spec__, "loader", None)
    if type(loader) is SourceFileLoader and loader.is_package(package):
        return Path(loader.path).parent
    from importlib import resources

    return resources.files(package)
