"""Commands that install missing packages."""

from __future__ import annotations

import re
from collections.abc import Collection

_REQUIREMENT = re.compile(r"\s*([\w.-]+)\s*(\[[^\]]*\])?\s*\(?([^;()]*)\)?\s*(?:;(.*))?", re.ASCII)
"""Name, extras, versions and marker of a requirement (PEP 508)."""

_EXTRA = re.compile(r"extra\s*==\s*['\"]([\w.-]+)['\"]", re.ASCII)


def describe_install(requirement: str, missing: Collection[str] | None = None) -> str:
    """Return the command that installs what a requirement such as meshhub[step] adds to this installation.

    The command names the packages that the distribution needs, not the distribution: it may come from a clone, and an
    index may have another one of this name. A distribution that is not installed is named as it is.

    Args:
        requirement: Requirement of a declaration.
        missing: Names of the missing packages; default: those that are not installed.
    """
    match = _REQUIREMENT.fullmatch(requirement)
    packages = _list_packages(match[1], _split_extras(match[2])) if match else {}
    if missing is None:
        missing = [name for name in packages if not _is_installed(name)]
    chosen = [packages[name] for name in packages if name in missing] or list(packages.values())
    return " ".join(["pip install", *(f'"{package}"' for package in chosen or [requirement])])


def _split_extras(text: str | None) -> frozenset[str]:
    return frozenset(name.strip() for name in (text or "").strip("[]").split(",")) - {""}


def _list_packages(distribution: str, extras: frozenset[str]) -> dict[str, str]:
    """Return the requirements of extras of a distribution by name, or those of its base without extras."""
    # imported here, because only an error needs it
    from importlib import metadata

    try:
        requirements = metadata.requires(distribution) or []
    except metadata.PackageNotFoundError:
        return {}
    packages: dict[str, str] = {}
    for requirement in requirements:
        match = _REQUIREMENT.fullmatch(requirement)
        if match is None:
            continue
        extra = _EXTRA.search(match[4] or "")
        if (extra[1] not in extras) if extra else bool(extras):
            continue
        if match[1] == distribution:
            packages |= _list_packages(distribution, _split_extras(match[2]))
        else:
            packages[match[1]] = f"{match[1]}{match[2] or ''}{match[3].strip()}"
    return packages


def _is_installed(name: str) -> bool:
    from importlib import metadata

    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True
