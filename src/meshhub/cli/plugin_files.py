"""Files of a new plug-in distribution: text with placeholders such as `@name@`."""

from __future__ import annotations

import re
from typing import NamedTuple

from meshhub.model.api_version import API_VERSION


class NewPlugin(NamedTuple):
    """Content of a new plug-in.

    name:      name of the plug-in, such as "acme-tools"
    reader:    extension without dot, which is also the id of the format; None for no reader
    writer:    the same for a writer
    operation: id of an operation; None for no operation
    policy:    whether it has a plan, a review and a listener
    """

    name: str
    reader: str | None
    writer: str | None
    operation: str | None
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
        "pyproject.toml": _fill(_PYPROJECT, plugin),
        "README.md": _fill(_README, plugin) + _list_usage(plugin),
        "LICENSE": _LICENSE,
        ".gitignore": _GITIGNORE,
        ".github/workflows/test.yml": _CI,
        f"{package}/__init__.py": _declare(plugin),
        f"{package}/py.typed": "",
    }
    tests = []
    if plugin.reader:
        files[f"{package}/reader.py"] = _READER
        tests.append((_READER_TEST, plugin.reader))
    if plugin.writer:
        files[f"{package}/writer.py"] = _fill(_WRITER, plugin, plugin.writer)
        is_readable = plugin.reader == plugin.writer
        tests.append((_WRITER_TEST if is_readable else _WRITER_TEST + _READ_BACK, plugin.writer))
    if plugin.operation:
        files[f"{package}/operation.py"] = _fill(_OPERATION, plugin)
        tests.append((_OPERATION_TEST, plugin.operation))
    if tests:
        files["tests/test_conformance.py"] = _test_conformance(plugin, tests)
    if plugin.policy:
        files[f"{package}/policy.py"] = _fill(_POLICY, plugin)
        files["tests/test_policy.py"] = _fill(_POLICY_TEST, plugin)
    return files


def _fill(template: str, plugin: NewPlugin, format_id: str = "") -> str:
    """Replace the placeholders of a template."""
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
    }
    return re.sub(r"@(\w+)@", lambda match: values[match[1]], template)


def _declare(plugin: NewPlugin) -> str:
    """Return the module that declares the capabilities."""
    names = ["hookimpl"] if plugin.formats or plugin.operation else []
    names += ["Format", "Frame"] if plugin.formats else []
    names += ["Reader"] if plugin.reader else []
    names += ["Writer"] if plugin.writer else []
    names += ["Operation", "Stage"] if plugin.operation else []
    has_options = bool(plugin.writer or plugin.operation)
    blocks = [_fill('"""@title@ for meshhub: declarations. Keep this module light: import no numpy here."""', plugin)]
    imports = ["from __future__ import annotations", ""]
    imports += ["from typing import Annotated", ""] if has_options else []
    ordered = sorted(names, key=lambda name: (name[0].islower(), name))
    imports += [f"from meshhub import {', '.join(ordered)}"] if names else []
    imports += ["from msgspec import Meta, Struct"] if has_options else []
    if plugin.policy:
        hooks = "meshhub_finished, meshhub_plans, meshhub_review"
        imports += [*([""] if names else []), f"from {plugin.module}.policy import {hooks}"]
        imports += ["", '__all__ = ["meshhub_finished", "meshhub_plans", "meshhub_review"]']
    blocks.append("\n".join(imports))
    blocks.append(_fill('MESHHUB_API = "@api@"', plugin))
    blocks += [_fill(_FORMAT, plugin, format_id) for format_id in plugin.formats]
    text = "\n\n".join(blocks) + "\n"
    definitions = [_fill(_WRITER_OPTIONS, plugin, plugin.writer)] if plugin.writer else []
    definitions += [_fill(_OPERATION_OPTIONS, plugin)] if plugin.operation else []
    definitions += [_fill(_READER_HOOK, plugin, plugin.reader)] if plugin.reader else []
    definitions += [_fill(_WRITER_HOOK, plugin, plugin.writer)] if plugin.writer else []
    definitions += [_fill(_OPERATION_HOOK, plugin)] if plugin.operation else []
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
    lines += ["", _BRICK.rstrip()] if has_brick else []
    text = "\n".join(lines) + "\n"
    return text + "".join("\n\n" + _fill(template, plugin, format_id) for template, format_id in tests)


def _list_usage(plugin: NewPlugin) -> str:
    """Return the table of what the plug-in adds, and the commands that use it."""
    rows = [f"| reads | `.{plugin.reader}` |"] if plugin.reader else []
    rows += [f"| writes | `.{plugin.writer}`, with the option `{plugin.writer}_decimals` |"] if plugin.writer else []
    rows += [f"| operation | `{plugin.operation}`, with the option `{plugin.option}` |"] if plugin.operation else []
    rows += [f"| plan | `{plugin.name}` |"] if plugin.policy else []
    return "\n".join(["", "| | |", "| --- | --- |", *rows, ""])


_PYPROJECT = """\
[build-system]
requires = ["hatchling>=1.25"]
build-backend = "hatchling.build"

[project]
name = "meshhub-@name@"
version = "0.1.0"
description = "@title@ for meshhub"
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["meshhub>=0.1", "msgspec>=0.19", "numpy>=2.0"]

# the name of the plug-in and its module
[project.entry-points.meshhub]
@name@ = "@module@"

[dependency-groups]
test = ["meshhub[testing]", "pytest>=8.2"]
lint = ["ruff>=0.9"]
types = ["mypy>=1.13"]

[tool.hatch.build.targets.wheel]
packages = ["src/@module@"]

[tool.pytest.ini_options]
testpaths = ["tests"]
addopts = "-ra --strict-markers --strict-config"
filterwarnings = ["error"]

[tool.ruff]
line-length = 120
src = ["src", "tests"]

[tool.ruff.lint]
select = ["B", "C4", "E", "F", "I", "N", "NPY", "PIE", "RUF", "SIM", "UP", "W"]

[tool.ruff.lint.isort]
known-third-party = ["meshhub"]
known-first-party = ["@module@"]

[tool.mypy]
strict = true
files = ["src"]
"""

_README = """\
# meshhub-@name@

@title@, a plug-in for meshhub.

```console
$ pip install meshhub-@name@
$ meshhub plugins
```

To work on it: `pip install -e . --group test --group lint --group types`, then `pytest`, `ruff check`, `mypy`.
"""

_LICENSE = """\
All rights reserved.

Replace this text with the license of your choice, and name the license in pyproject.toml.
"""

_GITIGNORE = """\
__pycache__/
*.egg-info/
.mypy_cache/
.pytest_cache/
.ruff_cache/
.venv/
dist/
"""

_CI = """\
name: test
on: [push, pull_request]
jobs:
  test:
    runs-on: ubuntu-latest
    strategy:
      matrix:
        python: ["3.11", "3.13"]
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: ${{ matrix.python }}
      - run: python -m pip install --upgrade pip
      - run: python -m pip install -e . --group test --group lint --group types
      - run: ruff check && ruff format --check
      - run: mypy
      - run: pytest
"""

_FORMAT = """\
@FORMAT@ = Format(
    id="@format@",
    label="@FORMAT@",
    extensions=(".@format@",),
    media_types=("model/x-@format@", "text/plain"),
    specification="Nine numbers on a line: the corners of a triangle, counter-clockwise seen from outside",
)"""

_WRITER_OPTIONS = '''\
class @Format@WriterOptions(Struct, frozen=True, kw_only=True):
    """Options of the writer."""

    @format@_decimals: Annotated[
        int,
        Meta(title="Decimals", description="Digits after the decimal point.", ge=0, le=12),
    ] = 6
'''

_OPERATION_OPTIONS = '''\
Height = Annotated[
    float,
    Meta(title="@Operation@ by mm", description="Move the whole model up.", ge=0, le=1000),
]


class @OperationClass@Options(Struct, frozen=True, kw_only=True):
    """Options of the operation, which runs if one of them is set."""

    @option@: Height | None = None
'''

_READER_HOOK = '''\
@hookimpl
def meshhub_readers() -> list[Reader]:
    """Declare the reader."""
    return [
        Reader(
            format=@FORMAT@,
            run="@module@.reader:read",
            frame=Frame("mm", "z"),
        )
    ]
'''

_WRITER_HOOK = '''\
@hookimpl
def meshhub_writers() -> list[Writer]:
    """Declare the writer."""
    return [
        Writer(
            format=@FORMAT@,
            run="@module@.writer:write",
            options=@Format@WriterOptions,
            frame=Frame("mm", "z"),
        )
    ]
'''

_OPERATION_HOOK = '''\
@hookimpl
def meshhub_operations() -> list[Operation]:
    """Declare the operation."""
    return [
        Operation(
            id="@operation@",
            label="@Operation@",
            stage=Stage.PLACE,
            options=@OperationClass@Options,
            run="@module@.operation:run",
        )
    ]
'''

_READER = '''\
"""Read triangles as text."""

from __future__ import annotations

from meshhub import EmptyModel, Mesh, NoOptions, Part, Scene, Source, UnreadableFile, did
from meshhub.toolkit.columns import Irregular, read_numbers
from meshhub.toolkit.geometry import weld


def read(source: Source, options: NoOptions) -> Scene:
    """Read a file.

    Returns:
        Scene in the frame that the reader declares.
    Raises:
        UnreadableFile: A line does not hold nine numbers.
        EmptyModel: The file has no triangles.
    """
    try:
        numbers, per_line = read_numbers(source.read(), "f8")
    except Irregular as error:
        raise UnreadableFile(f"invalid number in the file: {error}; export it again") from None
    is_invalid = (per_line != 0) & (per_line != 9)
    if is_invalid.any():
        raise UnreadableFile(f"line {int(is_invalid.argmax()) + 1} does not hold nine numbers; export the file again")
    if len(numbers) == 0:
        raise EmptyModel("the file has no triangles; export the model again")
    corners = numbers.reshape(-1, 3)
    first, index = weld(corners)
    did(triangles=len(index) // 3)
    return Scene((Mesh(corners[first], index.reshape(-1, 3)),), (Part(0),))
'''

_WRITER = '''\
"""Write triangles as text."""

from __future__ import annotations

import numpy as np
from meshhub import Scene, Target
from meshhub.toolkit.columns import write_rows
from meshhub.toolkit.geometry import soup

from @module@ import @Format@WriterOptions


def write(scene: Scene, target: Target, options: @Format@WriterOptions) -> None:
    """Write a scene, which has at least one triangle, in the frame that the writer declares."""
    vertices, faces = soup(scene)
    # adding zero makes negative zeros positive
    rows = np.round(vertices[faces].reshape(-1, 9), options.@format@_decimals) + 0.0
    with target.open() as file:
        file.write(write_rows(["", *[" "] * 8, "\\n"], list(rows.T)))
'''

_OPERATION = '''\
"""Move the model up."""

from __future__ import annotations

import numpy as np
from meshhub import Scene, did
from meshhub.toolkit.geometry import moved

from @module@ import @OperationClass@Options


def run(scene: Scene, options: @OperationClass@Options) -> Scene:
    """Return the scene, in millimeters and Z up, above its old place."""
    height_mm = options.@option@ or 0.0
    matrix = np.eye(4)
    matrix[2, 3] = height_mm
    did(lifted_mm=height_mm)
    return moved(scene, matrix)
'''

_POLICY = '''\
"""Rules of the house: a plan, a review of requests, and a listener."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from meshhub import Caller, Chain, Limits, Objection, Plan, Report, hookimpl

log = logging.getLogger("meshhub.@name@")


@hookimpl
def meshhub_plans() -> list[Plan]:
    """Declare a plan for the holders of its keys."""
    return [
        Plan(
            id="@name@",
            label="@title@",
            grants=frozenset({"@name@"}),
            limits=Limits(max_batch_files=10),
        )
    ]


@hookimpl
def meshhub_review(chain: Chain, caller: Caller) -> Iterator[Objection]:
    """Object to more than three operations in one request of a caller with the plan."""
    operations = sum(step.kind == "operation" for step in chain.steps)
    if caller.plan.id == "@name@" and operations > 3:
        yield Objection(code="too_many_operations", message="the plan allows three operations", remedy="use fewer")


@hookimpl
def meshhub_finished(report: Report) -> None:
    """Log every conversion."""
    log.info("%s: %s", report.target.format, "done" if report.error is None else report.error.error_code)
'''

_BRICK = '''\
BRICK = b"""\\
0 0 0  0 20 0  10 20 0
0 0 0  10 20 0  10 0 0
0 0 30  10 0 30  10 20 30
0 0 30  10 20 30  0 20 30
0 0 0  10 0 0  10 0 30
0 0 0  10 0 30  0 0 30
10 0 0  10 20 0  10 20 30
10 0 0  10 20 30  10 0 30
10 20 0  0 20 0  0 20 30
10 20 0  0 20 30  10 20 30
0 20 0  0 0 0  0 0 30
0 20 0  0 0 30  0 20 30
"""
'''

_READER_TEST = """\
class TestReader(ReaderContract):
    format_id = "@format@"
    brick = Source.from_bytes(BRICK, "brick.@format@")
"""

_WRITER_TEST = """\
class TestWriter(WriterContract):
    format_id = "@format@"
"""

_READ_BACK = '''
    def read_back(self, target: Target) -> Scene:
        """Read a written file, since the format has no reader."""
        rows = np.array([line.split() for line in target.read().decode().splitlines()], np.float64)
        corners = rows.reshape(-1, 3)
        first, index = weld(corners)
        return Scene((Mesh(corners[first], index.reshape(-1, 3)),), (Part(0),))
'''

_OPERATION_TEST = """\
class TestOperation(OperationContract):
    operation_id = "@operation@"
"""

_POLICY_TEST = '''\
"""The rules of the house, asked by a registry."""

from __future__ import annotations

import pytest
from meshhub import Caller, Mesh, Part, Registry, RequestRefused, Scene, Target

TRIANGLE = Scene((Mesh([[0, 0, 0], [10, 0, 0], [0, 10, 5]], [[0, 1, 2]]),), (Part(0),))


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry()


def test_the_plan_is_declared(registry: Registry) -> None:
    assert "@name@" in registry.plans


def test_more_than_three_operations_are_rejected(registry: Registry) -> None:
    caller = Caller(plan=registry.plans["@name@"])
    registry.convert(TRIANGLE, Target(), to="stl", caller=caller, place_on_bed=True, target_height_mm=5)
    with pytest.raises(RequestRefused, match="three operations") as raised:
        registry.convert(
            TRIANGLE,
            Target(),
            to="stl",
            caller=caller,
            repair=True,
            optimize_target_faces=4,
            target_height_mm=5,
            place_on_bed=True,
        )
    assert raised.value.code == "too_many_operations"


def test_conversions_are_logged(registry: Registry, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "meshhub.@name@"):
        registry.convert(TRIANGLE, Target(), to="stl")
    assert caplog.messages == ["stl: done"]
'''
