"""Templates of the files of a new plug-in distribution, with fields such as `@name@`."""

from __future__ import annotations

PYPROJECT = """\
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

README = """\
# meshhub-@name@

@title@, a plug-in for meshhub.

```console
$ pip install meshhub-@name@
$ meshhub plugins
```

To work on it: `pip install -e . pytest ruff mypy`, then `pytest`, `ruff check`, `mypy`.
"""

LICENSE = """\
All rights reserved.

Replace this text with the license of your choice, and name the license in pyproject.toml.
"""

GITIGNORE = """\
__pycache__/
*.egg-info/
.mypy_cache/
.pytest_cache/
.ruff_cache/
.venv/
dist/
"""

CI = """\
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

FORMAT = """\
@FORMAT@ = Format(
    id="@format@",
    label="@FORMAT@",
    extensions=(".@format@",),
    media_types=("model/x-@format@", "text/plain"),
    specification="Nine numbers on a line: the corners of a triangle, counter-clockwise seen from outside",
)"""

WRITER_OPTIONS = '''\
class @Format@WriterOptions(Struct, frozen=True, kw_only=True):
    """Options of the writer."""

    @format@_decimals: Annotated[
        int,
        Meta(title="Decimals", description="Digits after the decimal point.", ge=0, le=12),
    ] = 6
'''

OPERATION_OPTIONS = '''\
Height = Annotated[
    float,
    Meta(title="Lift by mm", description="Move the whole model up.", ge=0, le=1000),
]


class @OperationClass@Options(Struct, frozen=True, kw_only=True):
    """Options of the operation, which runs if one of them is set."""

    @option@: Height | None = None
'''

READER_HOOK = '''\
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

WRITER_HOOK = '''\
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

OPERATION_HOOK = '''\
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

RECIPE_HOOK = '''\
@hookimpl
def meshhub_recipes() -> list[Recipe]:
    """Declare the recipes of the folder `recipes`."""
    return read_recipes(files(__name__) / "recipes")
'''

RECIPE = """\
label = "@Recipe@"
description = "A valid, closed mesh on the print bed, 80 mm tall."

[options]
repair = true
target_height_mm = 80
place_on_bed = true
"""

RECIPE_TEST = '''\
"""The recipe, in a registry with the installed plug-in."""

from __future__ import annotations

import pytest
from meshhub import Mesh, Part, Registry, Scene, Target

TETRAHEDRON = Scene(
    (Mesh([[0, 0, 0], [10, 0, 0], [0, 10, 0], [0, 0, 5]], [[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]]),), (Part(0),)
)


def test_the_recipe_is_listed_and_converts() -> None:
    with Registry() as registry:
        assert "@recipe@" in registry.recipes
        assert not registry.faults
        report = registry.convert(TETRAHEDRON, Target(), to="stl", recipe="@recipe@")
    assert report.target.size_mm is not None
    assert report.target.size_mm[2] == pytest.approx(80)
'''

READER = '''\
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

WRITER = '''\
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

OPERATION = '''\
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

POLICY = '''\
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

BRICK = '''\
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

READER_TEST = """\
class TestReader(ReaderContract):
    format_id = "@format@"
    brick = Source.from_bytes(BRICK, "brick.@format@")
"""

WRITER_TEST = """\
class TestWriter(WriterContract):
    format_id = "@format@"
"""

READ_BACK = '''
    def read_back(self, target: Target) -> Scene:
        """Read a written file, since the format has no reader."""
        rows = np.array([line.split() for line in target.read().decode().splitlines()], np.float64)
        corners = rows.reshape(-1, 3)
        first, index = weld(corners)
        return Scene((Mesh(corners[first], index.reshape(-1, 3)),), (Part(0),))
'''

OPERATION_TEST = """\
class TestOperation(OperationContract):
    operation_id = "@operation@"
"""

POLICY_TEST = '''\
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
