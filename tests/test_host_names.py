"""The host knows no built-in plug-in: no format, operation, option, recipe or plan by its name.

What it needs to know is a field of a declaration, so that plug-ins of others are treated alike.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import meshhub
from meshhub import Registry, hookspecs
from meshhub.builtin_plugins import list_builtins
from meshhub.model.options import HostOptions, flag_of, option_fields

pytestmark = pytest.mark.once

SOURCE = Path(meshhub.__file__).parent

GENERATED = "model/convert_options.py"
"""File with the names of all options, for type checkers."""

EXCEPTIONS: Mapping[str, tuple[str, set[str]]] = {
    "cli/diagnosis.py": (
        "an extra of this distribution, and a conversion that checks the installation",
        {"step", "ply"},
    ),
    "cli/explain.py": ("a column with the step of a chain", {"step"}),
    "client/companions.py": ("a client has no registry, and asks the service nothing before it sends", {"obj"}),
    "http/conversions/check_reports.py": ("the format of marked models", {"glb", "model/gltf-binary"}),
    "engine/preload.py": ("a conversion that loads what each format needs", {".stl"}),
    "http/conversions/probe.py": ("a conversion that shows that the engine works", {"stl", ".stl"}),
    "http/endpoints/preview.py": ("the format of previews", {"model/gltf-binary"}),
    "http/intake/conversion_requests.py": ("an example in an error", {".stl"}),
    "http/intake/explanation_requests.py": ("an example in an error", {".stl"}),
    "http/intake/uploads.py": ("an example in an error", {".stl"}),
    "http/description/forms.py": ("a type of JSON Schema", {"boolean"}),
    "http/endpoints/printers.py": ("a type of JSON Schema", {"boolean"}),
    "model/options.py": ("a type of JSON Schema", {"boolean"}),
    "model/scene.py": ("how a texture repeats", {"mirror"}),
    "pipeline/execute.py": ("the format of previews", {"glb"}),
    "pipeline/preview.py": ("the format of previews", {"glb"}),
    "pipeline/purposes/preview.py": ("the format of previews", {"glb"}),
    "toolkit/face_offsets.py": ("errors of the operations that need solids", {"repair"}),
    "toolkit/print_materials.py": ("a process of printing", {"resin"}),
    "toolkit/reshaping.py": ("errors of the operations that need solids", {"repair"}),
    "toolkit/validity.py": ("notes of the operations that make solids", {"repair"}),
    "reporting/collecting.py": ("the file of the command that a report advises", {".3mf"}),
    "toolkit/rendering/analysis.py": ("what a picture shows", {"islands"}),
    "toolkit/rendering/options.py": ("what a picture shows", {"islands"}),
    "toolkit/rendering/picture.py": ("what a picture shows", {"islands"}),
    "service/jobs/job.py": ("the format of marked models", {"glb"}),
    "service/jobs/description.py": ("the step of a chain in the progress of a job", {"step"}),
    "service/settings.py": ("the default of a setting", {"free"}),
    "toolkit/rendering/shading.py": ("how a texture repeats", {"mirror"}),
    "toolkit/surface_colors.py": ("how a texture repeats", {"mirror"}),
}
"""Names that a file may have, and why."""

_COMMON_WORDS = {"mesh", "size", "slicer"}
"""Ids of checks that the host uses in other meanings."""


class Names:
    """Names that the built-in plug-ins declare.

    Attributes:
        whole: Names that a text must not be; they may be words in a longer one.
        parts: Names that no text may contain: options with several words, flags, extensions (also at the end of the
            name of a file), media types.
        words: Ids and extensions of formats that no identifier may contain.
    """

    def __init__(self) -> None:
        registry = Registry(entry_points=False)
        declarations = registry.declarations
        formats = declarations.formats.values()
        options = {*declarations.fields()} - {field.name for field in option_fields(HostOptions)}
        extensions = {extension for format_ in formats for extension in format_.extensions}
        media_types = {name for format_ in formats for name in format_.media_types} - {"application/octet-stream"}
        operations = {operation.capability.id for operation in declarations.operations}
        hooks = {name.removeprefix("meshhub_") for name in vars(hookspecs)}
        self.words = {*declarations.formats, *(extension.removeprefix(".") for extension in extensions)}
        self.words -= {name.lower() for name in meshhub.__all__}
        self.parts = (
            {option for option in options if "_" in option} | {*map(flag_of, options)} | extensions | media_types
        )
        self.whole = {*declarations.formats, *operations, *declarations.recipes, *registry.plans, *options, *self.parts}
        self.whole |= {check.capability.id for check in declarations.checks} - _COMMON_WORDS
        self.whole |= self.words | {*list_builtins()} - hooks
        longest_first = sorted(self.parts, key=len, reverse=True)
        starts = (
            re.escape(part) if part.startswith(".") else rf"(?<![\w-]){re.escape(part)}" for part in longest_first
        )
        self._pattern = re.compile(rf"(?:{'|'.join(starts)})(?![\w-])")

    def find_in(self, tree: ast.Module) -> Iterator[str]:
        """Yield the names in the texts and identifiers of a module, without its docstrings."""
        docstrings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes) and node not in docstrings:
                text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
                yield from {*self._pattern.findall(text), *({text} & self.whole)}
            for field in ("id", "attr", "arg", "name"):
                identifier = getattr(node, field, None)
                if isinstance(identifier, str):
                    yield from {*self.words} & {*identifier.lower().split("_")} | {identifier} & self.parts


def test_the_host_names_no_builtin_plugin() -> None:
    names = Names()
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path in SOURCE.rglob("*.py"):
        name = path.relative_to(SOURCE).as_posix()
        if not name.startswith("builtin_plugins/") and name != GENERATED:
            for hit in names.find_in(ast.parse(path.read_text(encoding="utf-8"))):
                found[name].add(hit)
    assert found == {name: expected for name, (_, expected) in EXCEPTIONS.items()}


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("PLUGINS = {'step'}", {"step"}),
        ("message = 'set {reduce_colors} or --repair'", {"reduce_colors", "--repair"}),
        ("suffixes = ('.3MF'.lower(), b'.3mf')", {".3mf"}),
        ("name, check = 'a-fixed.obj', 'overhangs'", {".obj", "overhangs"}),
        ("def read_stl(options): return options.obj_up", {"stl", "obj", "obj_up"}),
        ("'''STL files.'''\nstep = 'a free step repairs it'", set()),
    ],
)
def test_names_are_found(code: str, expected: set[str]) -> None:
    assert {*Names().find_in(ast.parse(code))} == expected
