"""Names of the outputs that commands derive from their inputs."""

from __future__ import annotations

import itertools
import os
import string
import unicodedata
from collections.abc import Sequence
from pathlib import Path, PurePath

import click

from meshhub.errors import quote
from meshhub.model.capabilities import Format

NAME_FIELDS = {
    "stem": "name of the input without its extension",
    "extension": "extension of the input, without the dot",
    "folder": "name of the folder of the input",
    "format": "id of the target format",
}
"""Fields of `--name`, with their meanings."""

_UNSAFE = frozenset('<>:"/\\|?*')
"""Characters that separate folders, or that a file system rejects."""

_MAX_NAMED_COUNT = 20
"""Inputs that an error lists."""


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
    folder = source.absolute().parent.name
    name = template.format(stem=source.stem, extension=source.suffix[1:].lower(), folder=folder, format=target.id)
    return name if template.lower().endswith(target.extensions) else name + target.extensions[0]


class OutputNames:
    """Outputs in a folder, each for one input.

    Args:
        target: Target format.
        template: Template of `--name`, or None.
        keeps_existing: Whether inputs are skipped if their output exists.
    """

    def __init__(self, folder: Path, target: Format, template: str | None, *, keeps_existing: bool) -> None:
        self._folder = folder
        self._target = target
        self._template = template
        self._keeps_existing = keeps_existing
        self._sources: dict[str, Path] = {}

    def choose(self, source: Path, subfolder: PurePath) -> Path:
        """Return the output of an input. Raises click.UsageError: The output may be the result of another input."""
        output = self._derive(source, subfolder)
        other = self._sources.setdefault(_comparison_key(output), source)
        if other != source:
            # the other input may be gone, and its result would be mistaken for the result of this one
            if other.exists() or (self._keeps_existing and output.exists()):
                raise self._one_output(output, [other, source])
            self._sources[_comparison_key(output)] = source
        return output

    def choose_all(self, inputs: Sequence[tuple[Path, PurePath]]) -> list[Path]:
        """Return the output of each input of a command, in the same order; each input comes with its subfolder.

        Inputs that share an output are numbered in the order of their paths: `a.3mf`, `a-2.3mf`. The names depend
        neither on the order of the inputs nor on the files that exist.

        Raises:
            click.UsageError: Several inputs share an output and cannot be numbered, because of a template, or because
                of `keeps_existing`: numbers change with the inputs, and nothing names the input of an output.
        """
        groups: dict[str, list[int]] = {}
        rivals = []
        for index in sorted(range(len(inputs)), key=lambda index: inputs[index][0].as_posix()):
            group = groups.setdefault(_comparison_key(self._derive(*inputs[index])), [])
            if group:
                rivals.append(index)
            group.append(index)
        outputs = {group[0]: self._derive(*inputs[group[0]]) for group in groups.values()}
        taken = set(groups)
        for index in rivals:
            first = self._derive(*inputs[index])
            candidates = (first.with_name(f"{first.stem}-{number}{first.suffix}") for number in itertools.count(2))
            outputs[index] = next(path for path in candidates if _comparison_key(path) not in taken)
            taken.add(_comparison_key(outputs[index]))
        if self._keeps_existing or self._template is not None:
            for group in groups.values():
                if len(group) > 1:
                    raise self._one_output(outputs[group[0]], [inputs[index][0] for index in group])
        return [outputs[index] for index in range(len(inputs))]

    def _one_output(self, output: Path, sources: Sequence[Path]) -> click.UsageError:
        names = [str(source) for source in sources[:_MAX_NAMED_COUNT]]
        if len(sources) > _MAX_NAMED_COUNT:
            names.append(f"{len(sources) - _MAX_NAMED_COUNT} others")
        listed = f"{', '.join(names[:-1])} and {names[-1]}"
        return click.UsageError(f"{listed} have one output, {output}; {self._describe_remedy(sources)}")

    def _derive(self, source: Path, subfolder: PurePath) -> Path:
        return self._folder / subfolder / derive_name(source, self._target, self._template)

    def _describe_remedy(self, sources: Sequence[Path]) -> str:
        """Describe how inputs get outputs of their own."""
        if self._template is not None:
            return "use other fields in --name"
        for template in ("{stem}-{extension}", "{stem}-{folder}", "{stem}-{folder}-{extension}"):
            names = {derive_name(source, self._target, template).casefold() for source in sources}
            if len(names) == len(sources):
                return f"distinguish them with --name '{template}'"
        return "convert them into folders of their own"


def _comparison_key(path: Path) -> str:
    """Return a text that is equal for two paths if any file system may treat them as one file."""
    return unicodedata.normalize("NFC", os.path.realpath(path).casefold())
