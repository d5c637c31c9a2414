"""Names of the outputs that commands derive from their inputs."""

from __future__ import annotations

import os
import string
import unicodedata
from pathlib import Path, PurePath

import click

from meshhub.errors import quote
from meshhub.model.capabilities import Format

NAME_FIELDS = {
    "stem": "name of the input without its extension",
    "extension": "extension of the input, without the dot",
    "format": "id of the target format",
}
"""Fields of `--name`, with their meanings."""

_UNSAFE = frozenset('<>:"/\\|?*')
"""Characters that separate folders, or that a file system rejects."""


def check_template(_: click.Context, __: click.Parameter, template: str | None) -> str | None:
    """Return a template of `--name`, or reject it."""
    if template is None:
        return None
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError as error:
        raise click.BadParameter(f"{quote(template)} has unbalanced braces: {error}") from None
    for literal, field, specification, conversion in parts:
        if field is not None and (field not in NAME_FIELDS or specification or conversion):
            known = ", ".join(f"{{{name}}}" for name in NAME_FIELDS)
            raise click.BadParameter(f"{quote(template)} has an unknown field {{{field}}}; known are {known}")
        unsafe = sorted(letter for letter in literal if letter in _UNSAFE or not letter.isprintable())
        if unsafe:
            raise click.BadParameter(f"{quote(template)} contains {quote(unsafe[0])}; folders belong to --output-dir")
    if template.startswith(".") or not template.strip():
        raise click.BadParameter(f"{quote(template)} is empty or names hidden files")
    return template


def derive_name(source: Path, target: Format, template: str | None) -> str:
    """Return the name of the output for an input, with the extension of the target format."""
    if source.name.startswith(".") and not source.suffix:
        # the output of an input named `.stl` would be hidden
        source = source.with_name("model" + source.name)
    if template is None:
        return source.with_suffix(target.extensions[0]).name
    name = template.format(stem=source.stem, extension=source.suffix[1:].lower(), format=target.id)
    return name if template.lower().endswith(target.extensions) else name + target.extensions[0]


class OutputNames:
    """Outputs in a folder, each for one input.

    Args:
        folder: Output folder.
        target: Target format.
        template: Template of `--name`, or None.
        is_numbered: Whether a second input with the same output gets `a-2.3mf`; otherwise it is rejected.
    """

    def __init__(self, folder: Path, target: Format, template: str | None, *, is_numbered: bool) -> None:
        self._folder = folder
        self._target = target
        self._template = template
        self._is_numbered = is_numbered
        self._sources: dict[str, Path] = {}

    def choose(self, source: Path, subfolder: PurePath) -> Path:
        """Return the output of an input. Raises click.UsageError: another input, which exists, has the same output."""
        first = candidate = self._folder / subfolder / derive_name(source, self._target, self._template)
        number = 1
        while (key := _comparison_key(candidate)) in self._sources:
            if not self._is_numbered:
                other = self._sources[key]
                if other == source or not other.exists():
                    break
                raise click.UsageError(f"{other} and {source} have one output, {first}; use other fields in --name")
            number += 1
            candidate = first.with_name(f"{first.stem}-{number}{first.suffix}")
        self._sources[key] = source
        return candidate


def _comparison_key(path: Path) -> str:
    """Return a text that is equal for two paths if any file system may treat them as one file."""
    return unicodedata.normalize("NFC", os.path.realpath(path).casefold())
