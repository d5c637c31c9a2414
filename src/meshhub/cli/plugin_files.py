"""Files of a new plug-in distribution, from the templates in `new_plugin`."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import NamedTuple

from meshhub.model.api_version import API_VERSION


class NewPlugin(NamedTuple):
    """Content of a new plug-in.

    name:      name of the plug-in, such as "acme-tools"
    reader:    extension without dot, which is also the id of the format; None for no reader
    writer:    the same for a writer
    operation: id of an operation; None for no operation
    check:     id of a check; None for no check
    recipe:    id of a recipe; None for no recipe
    policy:    whether it has a plan, a review and a listener
    """

    name: str
    reader: str | None
    writer: str | None
    operation: str | None
    check: str | None
    recipe: str | None
    policy: bool

    @property
    def module(self) -> str:
        """The module of the plug-in."""
        return f"meshhub_{self.name.replace('-', '_')}"

    @property
    def title(self) -> str:
        """The name for people."""
        return self.name.replace("-", " ").capitalize()

    @property
    def formats(self) -> list[str]:
        """The ids of the formats, each once."""
        return list(dict.fromkeys(name for name in (self.reader, self.writer) if name is not None))

    @property
    def option(self) -> str:
        """The option of the operation."""
        return f"{(self.operation or '').replace('-', '_')}_mm"

    @property
    def check_option(self) -> str:
        """The option of the check."""
        return f"{(self.check or '').replace('-', '_')}_limit_mm"


def list_files(plugin: NewPlugin) -> dict[str, str]:
    """Return the text of each file of the distribution by its path."""
    package = f"src/{plugin.module}"
    texts = {
        "pyproject.toml": _fill("pyproject.toml", plugin),
        "README.md": _fill("README.md", plugin) + _list_usage(plugin),
        "LICENSE": _fill("LICENSE", plugin),
        ".gitignore": _fill("gitignore", plugin),
        ".github/workflows/test.yml": _fill("test.yml", plugin),
        f"{package}/__init__.py": _declare(plugin),
        f"{package}/py.typed": "",
    }
    tests = []
    if plugin.reader:
        texts[f"{package}/reader.py"] = _fill("reader.py", plugin)
        tests.append(_fill("test_reader.py", plugin, plugin.reader))
    if plugin.writer:
        texts[f"{package}/writer.py"] = _fill("writer.py", plugin, plugin.writer)
        read_back = "" if plugin.reader == plugin.writer else _fill("read_back.py", plugin)
        tests.append(_fill("test_writer.py", plugin, plugin.writer) + read_back)
    if plugin.operation:
        texts[f"{package}/operation.py"] = _fill("operation.py", plugin)
        tests.append(_fill("test_operation.py", plugin))
    if plugin.check:
        texts[f"{package}/check.py"] = _fill("check.py", plugin)
        tests.append(_fill("test_check.py", plugin))
    if tests:
        texts["tests/test_conformance.py"] = _test_conformance(plugin, tests)
    if plugin.recipe:
        texts[f"{package}/recipes/{plugin.recipe}.toml"] = _fill("recipe.toml", plugin)
        texts["tests/test_recipe.py"] = _fill("test_recipe.py", plugin)
    if plugin.policy:
        texts[f"{package}/policy.py"] = _fill("policy.py", plugin)
        texts["tests/test_policy.py"] = _fill("test_policy.py", plugin)
    return texts


def _fill(template: str, plugin: NewPlugin, format_id: str = "") -> str:
    """Return a template with the values of its fields, such as `@name@`."""
    text = (files("meshhub.cli") / "new_plugin" / f"{template}.in").read_text("utf-8")
    values = {
        "name": plugin.name,
        "title": plugin.title,
        "module": plugin.module,
        "format": format_id,
        "FORMAT": format_id.upper(),
        "Format": format_id.capitalize(),
        "operation": plugin.operation or "",
        "Operation": _label(plugin.operation),
        "OperationClass": _name_class(plugin.operation),
        "option": plugin.option,
        "check": plugin.check or "",
        "Check": _label(plugin.check),
        "CheckClass": _name_class(plugin.check),
        "check_option": plugin.check_option,
        "recipe": plugin.recipe or "",
        "Recipe": _label(plugin.recipe),
    }
    return re.sub(r"@(\w+)@", lambda match: values[match[1]], text)


def _label(id_: str | None) -> str:
    return (id_ or "").replace("-", " ").capitalize()


def _name_class(id_: str | None) -> str:
    return "".join(word.capitalize() for word in (id_ or "").split("-"))


def _declare(plugin: NewPlugin) -> str:
    """Return the module that declares the capabilities."""
    names = ["hookimpl"] if plugin.formats or plugin.operation or plugin.check or plugin.recipe else []
    names += ["Format", "Frame"] if plugin.formats else []
    names += ["Reader"] if plugin.reader else []
    names += ["Writer"] if plugin.writer else []
    names += ["Operation", "Stage"] if plugin.operation else []
    names += ["Check"] if plugin.check else []
    names += ["Recipe"] if plugin.recipe else []
    has_options = bool(plugin.writer or plugin.operation or plugin.check)
    blocks = [f'"""{plugin.title} for meshhub: declarations. Keep this module light: import no numpy here."""']
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
    blocks.append(f'MESHHUB_API = "{API_VERSION}"')
    blocks += [_fill("format.py", plugin, format_id).rstrip() for format_id in plugin.formats]
    text = "\n\n".join(blocks) + "\n"
    definitions = [_fill("writer_options.py", plugin, plugin.writer)] if plugin.writer else []
    definitions += [_fill("operation_options.py", plugin)] if plugin.operation else []
    definitions += [_fill("check_options.py", plugin)] if plugin.check else []
    definitions += [_fill("reader_hook.py", plugin, plugin.reader)] if plugin.reader else []
    definitions += [_fill("writer_hook.py", plugin, plugin.writer)] if plugin.writer else []
    definitions += [_fill("operation_hook.py", plugin)] if plugin.operation else []
    definitions += [_fill("check_hook.py", plugin)] if plugin.check else []
    definitions += [_fill("recipe_hook.py", plugin)] if plugin.recipe else []
    return "".join([text, *(f"\n\n{definition}" for definition in definitions)])


def _test_conformance(plugin: NewPlugin, tests: list[str]) -> str:
    """Return the module of tests that inherits the contracts."""
    has_brick = plugin.reader is not None
    reads_back = plugin.writer is not None and plugin.writer != plugin.reader
    contracts = ["CheckContract"] if plugin.check else []
    contracts += ["OperationContract"] if plugin.operation else []
    contracts += ["ReaderContract"] if plugin.reader else []
    contracts += ["WriterContract"] if plugin.writer else []
    lines = ['"""The contracts of meshhub, run against the installed plug-in."""', ""]
    lines += ["from __future__ import annotations", ""]
    lines += ["from typing import ClassVar", ""] if plugin.check else []
    needs_scenes = reads_back or plugin.check is not None
    lines += ["import numpy as np"] if needs_scenes else []
    names = (["Mesh"] if reads_back else []) + (["Part", "Scene"] if needs_scenes else [])
    names += ["Source"] if has_brick else []
    names += ["Target"] if reads_back else []
    lines += [f"from meshhub import {', '.join(names)}"] if names else []
    lines += [f"from meshhub.testing import {', '.join(contracts)}"]
    lines += ["from meshhub.testing.sample_scenes import brick"] if plugin.check else []
    lines += ["from meshhub.toolkit.geometry import weld"] if reads_back else []
    lines += ["", _fill("brick.py", plugin).rstrip()] if has_brick else []
    text = "\n".join(lines) + "\n"
    return text + "".join("\n\n" + test for test in tests)


def _list_usage(plugin: NewPlugin) -> str:
    """Return a table of the features of the plug-in, and the commands that use it."""
    rows = [f"| reads | `.{plugin.reader}` |"] if plugin.reader else []
    rows += [f"| writes | `.{plugin.writer}`, with the option `{plugin.writer}_decimals` |"] if plugin.writer else []
    rows += [f"| operation | `{plugin.operation}`, with the option `{plugin.option}` |"] if plugin.operation else []
    rows += [f"| check | `{plugin.check}`, with the option `{plugin.check_option}` |"] if plugin.check else []
    rows += [f"| recipe | `{plugin.recipe}` |"] if plugin.recipe else []
    rows += [f"| plan | `{plugin.name}` |"] if plugin.policy else []
    return "\n".join(["", "| | |", "| --- | --- |", *rows, ""])
