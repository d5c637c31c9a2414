"""Every benchmark can be imported, its results are linked, and STEP files of any size can be damaged."""

from __future__ import annotations

import csv
import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from manifold3d import Manifold, Mesh64

from meshhub import Memory, Registry
from meshhub.model.options import option_fields

pytestmark = pytest.mark.once

ROOT = Path(__file__).parent.parent
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "benchmarks").rglob("*.py")
    # other interpreters run these
    if path.parent.name != "programs"
)
OPTIONAL = set("OCP fastapi httpx litestar meshhub_gcode playwright procrastinate psycopg sqlalchemy uvicorn".split())
"""Packages of extras, dependency groups and distributions that benchmarks import."""

SMALL_STEP = b"ISO-10303-21;\nHEADER;\nENDSEC;\nDATA;\n#1=DIRECTION('',(0.,1.,0.));\nENDSEC;\nEND-ISO-10303-21;\n"

DECLARATIONS = Registry(entry_points=False).declarations

WITHOUT_MEASURED_MEMORY = {"check slicer"}
"""Kinds that `memory.py` does not measure: the slicer is another process, and not installed everywhere."""


@pytest.fixture(autouse=True)
def _import_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """Import the benchmarks as `python -m` and `python benchmarks/…` do."""
    monkeypatch.setattr(sys, "path", [str(ROOT), str(ROOT / "benchmarks"), str(ROOT / "docs"), *sys.path])


@pytest.mark.parametrize("module", MODULES)
def test_every_benchmark_can_be_imported(module: str) -> None:
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in OPTIONAL:
            raise
        pytest.skip(f"{package} is not installed")


def test_a_wrong_job_of_the_benchmark_of_speed_is_an_error_of_use(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["speed.py", "no-job"])
    with pytest.raises(SystemExit):
        importlib.import_module("benchmarks.speed").main()
    assert "unknown job 'no-job'" in capsys.readouterr().err


@pytest.mark.parametrize("data", [SMALL_STEP, b"ISO-10303-21;", b"?"])
def test_a_file_of_any_size_can_be_damaged(data: bytes) -> None:
    mutations = importlib.import_module("benchmarks.step_mutations").mutations
    results = list(mutations([data], 400, seed=1))
    assert len({kind for kind, _ in results}) == 8
    assert len({content for _, content in results}) > 4


def test_the_page_links_every_result_and_names_existing_commands() -> None:
    page = (ROOT / "docs" / "explanation" / "performance.md").read_text(encoding="utf-8")
    results = {path.name: path for path in (ROOT / "benchmarks" / "results").iterdir()}
    assert set(re.findall(r"\(\.\./\.\./benchmarks/results/(\S+?)\)", page)) == results.keys()
    for name, path in results.items():
        header, *rows = csv.reader(path.read_text(encoding="utf-8").splitlines())
        assert header[:2] == ["machine", "recorded"], name
        assert rows and {len(row) for row in rows} == {len(header)}, name
    assert all((ROOT / script).is_file() for script in re.findall(r"python (benchmarks/\w+\.py)", page))


def test_a_page_or_a_decision_names_every_benchmark() -> None:
    texts = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md"))
    texts += (ROOT / "tox.ini").read_text(encoding="utf-8")
    scripts = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "benchmarks").glob("*.py")}
    for name, script in scripts.items():
        # others are imported or run by a benchmark
        is_part = any(re.search(rf"\b{name}\b", text) for other, text in scripts.items() if other != name)
        if "__main__" in script and not is_part:
            assert re.search(rf"\b{name}\b", texts), name


def test_a_reader_is_right_if_another_one_finds_the_same_shape() -> None:
    readers = importlib.import_module("readers")
    shape = importlib.import_module("corpus_check").shape
    triangle = [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    one, far = shape(triangle, "one"), shape([[9, 9, 9], *triangle[1:]], "far")
    verdicts = {"a": "right", "b": "right", "c": "different", "d": "rejected"}
    assert readers.judge({"a": one, "b": one, "c": far, "d": None}) == verdicts
    assert readers.judge({"a": one, "c": far, "d": None}) == {}


def test_a_constant_is_halved_and_doubled_as_its_unit_asks() -> None:
    vary = importlib.import_module("constants").vary
    assert [vary(5, "MAX_COUNT", factor) for factor in (0.5, 2.0)] == [2, 10]
    assert vary(1, "MAX_COUNT", 0.5) == 1
    assert vary(1.0, "MIN_MM", 2.0) == 2.0
    assert vary(1.25, "MAX_RATIO", 2.0) == 1.5
    assert vary(-0.875, "MAX_COSINE", 2.0) == -0.75
    assert vary({"fdm": (0.25, 4)}, "LAYERS_RATIO", 2.0) == {"fdm": (0.5, 8)}


def test_a_constant_is_read_by_functions_that_use_what_derives_from_it() -> None:
    constants = importlib.import_module("constants")
    bodies = constants.SOURCE / "builtin_plugins" / "print" / "bodies.py"
    readers = constants.Readers().find(bodies, "ROUNDING_RATIO")
    assert {(str(bodies), "find_cavities"), (str(bodies.with_name("walls.py")), "_find_regions")} <= readers


def test_a_chain_is_right_only_if_its_result_is_as_predicted() -> None:
    predictions = importlib.import_module("chain_predictions")
    block = Manifold.cube((20.0, 10.0, 8.0))
    figures = predictions.measure([block], block.volume(), block.num_tri())

    def judge(chain: str, *solids: Manifold) -> str:
        prediction = predictions.predict(tuple(chain.split(" + ")), figures, lambda: block)
        return str(predictions.judge(prediction, list(solids)))

    top, bottom = block.split_by_plane((0, 0, 1), 4.0)
    assert judge("cut-plane", top, bottom) == ""
    assert "volume" in judge("cut-plane", top)
    assert judge("scale", block.scale((0.9, 0.9, 0.9))) == ""
    assert "volume" in judge("scale", block)
    assert "sides" in judge("mirror", Manifold.cube((10.0, 20.0, 8.0)))
    assert judge("rotate + place-on-bed", block.rotate((30, 0, 0)).translate((0, 0, 5))) == "lowest point at 5"
    assert "bodies" in judge("repair", top, bottom)
    inner = predictions.make_block(figures)
    assert judge("scale + difference", (block - inner).scale((0.9, 0.9, 0.9))) == ""
    assert "volume" in judge("scale + difference", block.scale((0.9, 0.9, 0.9)))
    assert judge("flatten-base", block.trim_by_plane((0, 0, 1), 0.5)) == ""
    assert "volume" in judge("flatten-base", block)
    assert judge("hollow", block - Manifold.cube((17.0, 7.0, 5.0)).translate((1.5, 1.5, 1.5))) == ""
    assert "wall" in judge("hollow", block - Manifold.cube((17.0, 7.0, 5.0)).translate((1.5, 1.5, 0.5)))
    mesh = block.to_mesh64()
    faces = np.array(mesh.tri_verts[1:], np.uint64)
    assert "NotManifold" in judge("repair", Manifold(Mesh64(np.array(mesh.vert_properties), faces)))


def test_each_operation_has_a_picture() -> None:
    pytest.importorskip("PIL")
    cases = importlib.import_module("make_pictures").CASES
    assert set(cases) == {each.capability.id for each in DECLARATIONS.operations}, "CASES of docs/make_pictures.py"


def test_each_operation_has_a_prediction() -> None:
    predictions = importlib.import_module("chain_predictions")
    block = Manifold.cube((20.0, 10.0, 8.0))
    figures = predictions.measure([block], block.volume(), block.num_tri())
    owners = {
        field.name: each.capability.id
        for each in DECLARATIONS.operations
        for field in option_fields(each.capability.options)
    }
    predicted = {owners[name] for row in predictions.OPERATIONS.values() for name in row.options(figures)}
    assert predicted == set(owners.values()), "OPERATIONS of benchmarks/chain_predictions.py"


def test_the_memory_of_what_declares_more_than_a_conversion_is_measured() -> None:
    declared = [
        *((each.capability.id, each.capability.memory) for each in DECLARATIONS.operations),
        *((f"check {each.capability.id}", each.capability.memory) for each in DECLARATIONS.checks),
        *((each.capability.format.id, each.capability.memory) for each in DECLARATIONS.writers),
    ]
    measured = set(importlib.import_module("memory").KINDS)
    missing = {name for name, memory in declared if memory != Memory()} - measured
    assert missing == WITHOUT_MEASURED_MEMORY, "KINDS of benchmarks/memory.py"
