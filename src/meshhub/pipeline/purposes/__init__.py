"""Purposes of requests: a file for each, with its `PURPOSE`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from meshhub.model.options import INTERFACE_NAMES, HostOptions, option_fields
from meshhub.pipeline.purpose import Purpose
from meshhub.toolkit.package_files import package_folder

_FILES = sorted(path.name for path in package_folder(__name__).iterdir() if path.name.endswith(".py"))

PURPOSES: Mapping[str, Purpose] = {
    name: import_module(f"{__name__}.{name}").PURPOSE
    for name in (file.removesuffix(".py") for file in _FILES)
    if name != "__init__"
}
"""Every purpose by its id."""

RESERVED = INTERFACE_NAMES.union(
    field.name
    for struct in (HostOptions, *(purpose.options for purpose in PURPOSES.values()))
    for field in option_fields(struct)
)
"""Names that the options of plug-ins may not have."""


def purpose_of(name: str) -> Purpose:
    """Return a purpose. Raises ValueError."""
    if name not in PURPOSES:
        raise ValueError(f"unknown purpose {name!r}; known are {', '.join(PURPOSES)}")
    return PURPOSES[name]
