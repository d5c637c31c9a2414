"""The plug-ins that come with meshhub. Each is an ordinary plug-in: a folder that uses only the public hooks.

Operations run in the order of their stages, and within a stage in the order of their ids.
"""

# why formats are read by our own code: docs/decisions/0030-own-readers.md
from __future__ import annotations

from meshhub.toolkit.package_files import package_folder


def list_builtins() -> list[str]:
    """Return the names of the folders of built-in plug-ins, sorted. It imports none of them."""
    # not pkgutil, whose import takes longer than the list
    folders = package_folder(__name__).iterdir()
    return sorted(folder.name for folder in folders if folder.is_dir() and (folder / "__init__.py").is_file())
