"""Files of a new plug-in distribution, from the templates."""

from __future__ import annotations

import re
from typing import NamedTuple

from meshhub.cli import plugin_templates as templates
from meshhub.model.api_version import API_VERSION


class NewPlugin(NamedTuple):
    """Content of a new plug-in.

    name:      name of the plug-in, such as "acme-tools"
    reader:    extension without dot, which is also the id of the format; None for no reader
    writer:    the same for a writer
    operation: id of an operation; None for no operation
    recipe:    id of a recipe; None for no recipe
    policy:    whether it has a plan, a review and a listener
    """

    name: str
    reader: str | None
    writer: str | None
    operation: str | None
    recipe: str | None
    policy: bool

    @property
    def module(self) -> str:
        """The module of the plug-in."""
        return f"meshhub_{self.name.replace('-', '_')}"

    @property
    def formats(self) -> list[str]:
        """The ids of the formats, each once."""
        return list(dict.fromkeys(name for name in (self.reader, self.writer) if name is not None))

    @property
    def option(self) -> str:
        """The option of the operation."""
        return f"{(self.operation or '').replace('-', '_')}_mm"


def list_files(plugin: NewPlugin) -> dict[str, str]:
    """Return the text of each file of the distribution by its path."""
    package = f"src/{plugin.module}"
    files = {
        "pyproject.toml": _fill(templates.PYPROJECT, plugin),
        "README.md": _fill(templates.README, plugin) + _list_usage(plugin),
        "LICENSE": templates.LICENSE,
        ".gitignore": templates.GITIGNORE,
        ".github/workflows/test.yml": templates.CI,
        f"{package}/__init__.py": _declare(plugin),
        f"{package}/py.typed": "",
    }
    tests = []
    if plugin.reader:
        files[f"{package}/reader.py"] = templates.READER
        tests.append((templates.READER_TEST, plugin.reader))
    if plugin.writer:
        files[f"{package}/writer.py"] = _fill(templates.WRITER, plugin, plugin.writer)
        is_readable = plugin.reader == plugin.writer
        tests.append(
            (
                templates.WRITER_TEST if is_readable else templates.WRITER_TEST + templates.READ_BACK,
                plugin.writer,
            )
        )
    if plugin.operation:
        files[f"{package}/operation.py"] = _fill(templates.OPERATION, plugin)
        tests.append((templates.OPERATION_TEST, plugin.operation))
    if tests:
        files["tests/test_conformance.py"] = _test_conformance(plugin, tests)
    if plugin.recipe:
        files[f"{package}/recipes/{plugin.recipe}.toml"] = _fill(templates.RECIPE, plugin)
        files["tests/test_recipe.py"] = _fill(templates.RECIPE_TEST, plugin)
    if plugin.policy:
        files[f"{package}/policy.py"] = _fill(templates.POLICY, plugin)
        files["tests/test_policy.py"] = _fill(templates.POLICY_TEST, plugin)
    return files


def _fill(template: str, plugin: NewPlugin, format_id: str = "") -> str:
    """Return a template with the values of its fields, such as `@name@`."""
    words = plugin.name.split("-")
    values = {
        "name": plugin.name,
        "title": " ".join(words).capitalize(),
        "class": "".join(word.capitalize() for word in words),
        "module": plugin.module,
        "api": API_VERSION,
        "format": format_id,
        "FORMAT": format_id.upper(),
        "Format": format_id.capitalize(),
        "operation": plugin.operation or "",
        "Operation": (plugin.operation or "").replace("-", " ").capitalize(),
        "OperationClass": "".join(word.capitalize() for word in (plugin.operation or "").split("-")),
        "option": plugin.option,
        "recipe": plugin.recipe or "",
        "Recipe": (plugin.recipe or "").replace("-", " ").capitalize(),
    }
    return re.sub(r"@(\w+)@", lambda match: values[match[1]], template)


def _declare(plugin: NewPlugin) -> str:
    """Return the module that declares the capabilities."""
    names = ["hookimpl"] if plugin.formats or plugin.operation or plugin.recipe else []
    names += ["Format", "Frame"] if plugin.formats else []
    names += ["Reader"] if plugin.reader else []
    names += ["Writer"] if plugin.writer else []
    names += ["Operation", "Stage"] if plugin.operation else []
    names += ["Recipe"] if plugin.recipe else []
    has_options = bool(plugin.writer or plugin.operation)
    blocks = [_fill('"""@title@ for meshhub: declarations. Keep this module light: import no numpy here."""', plugin)]
    imports = ["from __future__ import annotations", ""]
    imports += ["from importlib.resources import files"] if plugin.recipe else []
    imports += ["from typing import Annotated"] if has_options else []
    imports += [""] if has_options or plugin.recipe else []
    ordered = sorted(names, key=lambda name: (name[0].islower(), name))
    imports += [f"from meshhub import {', '.join(ordered)}"] if names else []
    imports += ["from meshhub.toolkit.recipes import read_recipes"] if plugin.recipe else []
    imports += ["from msgspec import Meta, Struct"] if has_options else []
    if plugin.policy:
        hooks = "meshhub_finished, meshhub_plans, meshhub_review"
        imports += [*([""] if names else []), f"from {plugin.module}.policy import {hooks}"]
        imports += ["", '__all__ = ["meshhub_finished", "meshhub_plans", "meshhub_review"]']
    blocks.append("\n".join(imports))
    blocks.append(_fill('MESHHUB_API = "@api@"', plugin))
    blocks += [_fill(templates.FORMAT, plugin, format_id) for format_id in plugin.formats]
    text = "\n\n".join(blocks) + "\n"
    definitions = [_fill(templates.WRITER_OPTIONS, plugin, plugin.writer)] if plugin.writer else []
    definitions += [_fill(templates.OPERATION_OPTIONS, plugin)] if plugin.operation else []
    definitions += [_fill(templates.READER_HOOK, plugin, plugin.reader)] if plugin.reader else []
    definitions += [_fill(templates.WRITER_HOOK, plugin, plugin.writer)] if plugin.writer else []
    definitions += [_fill(templates.OPERATION_HOOK, plugin)] if plugin.operation else []
    definitions += [templates.RECIPE_HOOK] if plugin.recipe else []
    return "".join([text, *(f"\n\n{definition}" for definition in definitions)])


def _test_conformance(plugin: NewPlugin, tests: list[tuple[str, str]]) -> str:
    """Return the module of tests that inherits the contracts."""
    has_brick = plugin.reader is not None
    reads_back = plugin.writer is not None and plugin.writer != plugin.reader
    contracts = ["OperationContract"] if plugin.operation else []
    contracts += ["ReaderContract"] if plugin.reader else []
    contracts += ["WriterContract"] if plugin.writer else []
    lines = ['"""The contracts of meshhub, run against the installed plug-in."""', ""]
    lines += ["from __future__ import annotations", ""]
    lines += ["import numpy as np"] if reads_back else []
    names = (["Mesh", "Part", "Scene"] if reads_back else []) + (["Source"] if has_brick else [])
    names += ["Target"] if reads_back else []
    lines += [f"from meshhub import {', '.join(names)}"] if names else []
    lines += [f"from meshhub.testing import {', '.join(contracts)}"]
    lines += ["from meshhub.toolkit.geometry import weld"] if reads_back else []
    lines += ["", templates.BRICK.rstrip()] if has_brick else []
    text = "\n".join(lines) + "\n"
    return text + "".join("\n\n" + _fill(template, plugin, format_id) for template, format_id in tests)


def _list_usage(plugin: NewPlugin) -> str:
    """Return the table of what the plug-in adds, and the commands that use it."""
    rows = [f"| reads | `.{plugin.reader}` |"] if plugin.reader else []
    rows += [f"| writes | `.{plugin.writer}`, with the option `{plugin.writer}_decimals` |"] if plugin.writer else []
    rows += [f"| operation | `{plugin.operation}`, with the option `{plugin.option}` |"] if plugin.operation else []
    rows += [f"| recipe | `{plugin.recipe}` |"] if plugin.recipe else []
    rows += [f"| plan | `{plugin.name}` |"] if plugin.policy else []
    return "\n".join(["", "| | |", "| --- | --- |", *rows, ""])
