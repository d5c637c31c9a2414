"""The table of other tools in the documentation: what each makes of the example, where it is installed."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from meshhub import Registry
from meshhub.model.report import ModelInspection

pytestmark = pytest.mark.once

ROOT = Path(__file__).parent.parent
EXAMPLE = ROOT / "examples" / "bracket.stl"
PAGES = ROOT / "docs" / "compare"


def read_rows() -> dict[str, list[str]]:
    """Return the cells of the table by the first word of the tool."""
    text = (PAGES / "index.md").read_text(encoding="utf-8").partition("| tool |")[2]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")
    ]
    return {row[0].split()[0]: row[2:] for row in rows if "---" not in row[0]}


def run(program: str, *arguments: object) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    subprocess.run([program, *map(str, arguments)], check=True, capture_output=True, timeout=100)


def use_trimesh(target: Path) -> None:
    trimesh = importlib.import_module("trimesh")
    mesh = trimesh.load(EXAMPLE)
    mesh.process(validate=True)
    mesh.fill_holes()
    mesh.fix_normals()
    mesh.export(target)


def use_pymeshlab(target: Path) -> None:
    meshes = pytest.importorskip("pymeshlab").MeshSet()
    meshes.load_new_mesh(str(EXAMPLE))
    meshes.meshing_merge_close_vertices()
    meshes.meshing_remove_duplicate_faces()
    meshes.meshing_repair_non_manifold_edges()
    meshes.meshing_repair_non_manifold_vertices()
    meshes.meshing_close_holes(maxholesize=100)
    meshes.meshing_re_orient_faces_coherently()
    meshes.save_current_mesh(str(target))


TOOLS = {
    "meshhub": lambda target: Registry().convert(EXAMPLE, target, repair=True),
    "admesh": lambda target: run("admesh", "-b", target, EXAMPLE),
    "PrusaSlicer": lambda target: run("prusa-slicer", "--export-stl", "--repair", "-o", target, EXAMPLE),
    "trimesh": use_trimesh,
    "pymeshlab": use_pymeshlab,
    "assimp": lambda target: run("assimp", "export", EXAMPLE, target),
}


def describe(model: ModelInspection) -> list[str]:
    size = " × ".join(f"{side:.4g}" for side in model.size_mm)
    return ["yes" if model.watertight else "no", str(model.open_edges), str(model.bodies), size]


def test_the_table_lists_these_tools() -> None:
    assert read_rows().keys() == TOOLS.keys()


@pytest.mark.parametrize("tool", TOOLS)
def test_the_table_says_what_the_tool_makes_of_the_example(tool: str, tmp_path: Path) -> None:
    target = tmp_path / "result.stl"
    TOOLS[tool](target)
    assert describe(Registry().inspect(target).model) == read_rows()[tool]


def test_every_page_has_a_command_and_what_is_better_there() -> None:
    pages = sorted(PAGES.glob("*.md"))
    linked = re.findall(r"\]\(([\w-]+\.md)\)", (PAGES / "index.md").read_text(encoding="utf-8"))
    assert {page.name for page in pages} == {"index.md", *linked}
    for page in pages:
        if page.name != "index.md":
            text = page.read_text(encoding="utf-8")
            assert re.search(r"^```(console|python)$", text, re.MULTILINE), page
            assert "**Better there:**" in text, page
