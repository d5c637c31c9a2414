"""Recipes: built-in ones, those of plug-ins, and TOML files, in Python and on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from meshhub import InvalidOption, Registry, Source, Target, hookimpl
from meshhub.cli import root
from meshhub.model.chain import Chain, Request
from meshhub.model.plans import LOCAL
from meshhub.model.recipes import Recipe
from meshhub.supported import supported
from meshhub.toolkit.recipes import read_recipe, read_recipes
from models import brick, scene_of
from test_cli import meshhub_cli, write_stl

pytestmark = pytest.mark.once

REGISTRY = Registry(entry_points=False)
BRICK = Source.from_bytes(REGISTRY.convert_bytes(scene_of(brick()), "stl"), "brick.stl")

MINE = 'label = "Mine"\n[options]\nplace_on_bed = true\ntarget_height_mm = 60\nobj_up = "y"\n'


class Shop:
    """Plug-in with recipes, two of which are invalid."""

    @hookimpl
    def meshhub_recipes(self) -> list[Recipe]:
        return [
            Recipe(id="tall", label="Tall", options={"target_height_mm": 90}),
            Recipe(id="unknown-option", label="", options={"no_such_option": 1}),
            Recipe(id="out-of-bounds", label="", options={"target_height_mm": -1}),
            Recipe(id="print", label="a second one", options={"repair": True}),
            Recipe(id="nested", label="", options={"recipe": "print"}),
        ]


def resolve(registry: Registry, **options: Any) -> Chain:
    return registry.resolve(Request(target="3mf", options=options), BRICK)


def values(chain: Chain) -> dict[str, object]:
    return {name: value for step in chain.steps for name, value in step.options.items()}


@pytest.mark.parametrize("name", REGISTRY.recipes)
def test_each_built_in_recipe_converts(name: str) -> None:
    report = REGISTRY.convert(BRICK, Target(), target="3mf", options={"recipe": name})
    assert report.target.size_mm is not None
    assert not [note for note in report.notes if note.code == "option_unused"]


def test_the_recipe_for_resin_makes_a_hollow_model_that_drains() -> None:
    block = Source.from_bytes(REGISTRY.convert_bytes(scene_of(brick(30, 30, 30)), "stl"), "block.stl")
    target = Target()
    report = REGISTRY.convert(block, target, target="stl", recipe="resin")
    figures = {name: value for step in report.steps for name, value in step.figures.items()}
    assert (figures["cavities"], figures["holes"]) == (1, 2)
    model = REGISTRY.inspect(Source.from_bytes(target.read(), "result.stl")).model
    assert (model.watertight, model.bodies) == (True, 1)
    assert 27_000 - 26**3 * 1.05 < (model.volume_mm3 or 0) < 27_000 - 26**3 * 0.95


def test_explicit_options_take_precedence() -> None:
    assert values(resolve(REGISTRY, recipe="print")) == {"repair": True, "place_on_bed": True}
    assert values(resolve(REGISTRY, recipe="print", repair="false")) == {"place_on_bed": True}
    # empty text is an absent option
    assert values(resolve(REGISTRY, recipe="print", repair="")) == {"repair": True, "place_on_bed": True}
    assert values(resolve(REGISTRY, recipe="")) == {}


def test_a_requested_option_replaces_those_of_the_recipe_that_it_excludes() -> None:
    class Workshop:
        @hookimpl
        def meshhub_recipes(self) -> list[Recipe]:
            return [Recipe(id="workshop", label="", options={"print_volume_mm": "40x40x40", "print_nozzle_mm": 0.6})]

    with Registry([Workshop()], entry_points=False) as registry:
        for options, printed in (({}, "does_not_fit"), ({"print_printer": "prusa-xl"}, "")):
            verdict = registry.check(scene_of(brick(60, 20, 20)), checks="size", recipe="workshop", options=options)
            assert "".join(finding.code for finding in verdict.findings) == printed


def test_the_chain_names_the_recipe() -> None:
    chain = resolve(REGISTRY, recipe="print", target_height_mm=40)
    assert [step.because for step in chain.steps[1:-1]] == [
        "stage repair, recipe print",
        "stage resize",
        "stage place, recipe print",
    ]


def test_an_unknown_recipe_is_rejected_and_a_path_is_not_a_name(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(MINE)
    for name in ("prin", str(tmp_path / "mine.toml")):
        with pytest.raises(InvalidOption, match=f"known are {', '.join(sorted(REGISTRY.recipes))}"):
            resolve(REGISTRY, recipe=name)


def test_plugins_declare_recipes_and_invalid_ones_are_faults() -> None:
    registry = Registry([Shop()], entry_points=False)
    assert values(resolve(registry, recipe="tall")) == {"target_height_mm": 90.0}
    assert supported(registry, LOCAL)["recipes"]["tall"]["options"] == {"target_height_mm": 90}
    messages = [fault.message for fault in registry.faults]
    assert len(messages) == 4
    for part in ("no_such_option", "target_height_mm", "already declared", "cannot name another"):
        assert any(part in message for message in messages), part


def test_inspection_takes_only_the_options_of_readers() -> None:
    registry = Registry([Shop()], entry_points=False)
    chain = registry.resolve(Request(purpose="inspect", options={"recipe": "tall"}), BRICK)
    assert [step.kind for step in chain.steps] == ["read"]


def test_the_user_folder_adds_recipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("meshhub.builtin_plugins.recipes.own_folder", lambda: tmp_path)
    (tmp_path / "mine.toml").write_text(MINE)
    (tmp_path / "broken.toml").write_text("[options")
    (tmp_path / "print.toml").write_text("[options]\nrepair = true\n")
    recipes = Registry(entry_points=False).recipes
    assert set(recipes) == {*REGISTRY.recipes, "mine"}
    assert recipes["print"].options == {"repair": True}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.toml", b"[options", "a.toml"),
        ("a.toml", b"x = 1\n[options]\n", "unknown key 'x'"),
        ("a.toml", b"label = 'a'\n", "options"),
        ("a.toml", b"[options]\nrepair = [1]\n", "options"),
        ("a.toml", b"\xff", "a.toml"),
        ("a.toml", b"[options]\nreduce_colors = " + b"9" * 5000, "a.toml"),
        ("a.toml", b"[options]\nreduce_colors = " + b"[" * 60_000, "a.toml"),
        ("a.toml", b"[options]\nrepair = true\n" + b"#" * 65_536, "longer than 65536 bytes"),
        ("a.toml", b"[options]\nrecipe = 'print'\n", "names another recipe"),
        ("a.toml", b"[options]\nrecipe = '/etc/b.toml'\n", "names another recipe"),
        ("A b.toml", b"[options]\n", "kebab-case"),
    ],
)
def test_the_error_of_an_invalid_file_says_why(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidOption, match=message) as caught:
        read_recipes(tmp_path)
    assert len(caught.value.message) < 160
    with pytest.raises(InvalidOption, match="cannot be read"):
        read_recipe(tmp_path / "absent.toml")


def test_the_command_line_takes_names_and_paths(tmp_path: Path) -> None:
    write_stl(tmp_path / "a.stl")
    (tmp_path / "mine.toml").write_text(MINE)
    done = meshhub_cli("convert", "a.stl", "a.ply", "--recipe", "mine.toml", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["target"]["size_mm"][2] == pytest.approx(60)
    done = meshhub_cli("convert", "a.stl", "b.ply", "--recipe", "mine.toml", "--target-height-mm", "70", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert REGISTRY.inspect(tmp_path / "b.ply").model.size_mm[2] == pytest.approx(70)
    done = meshhub_cli("inspect", "a.stl", "--recipe", "mine.toml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (tmp_path / "typo.toml").write_text("[options]\nrepare = true\n")
    done = meshhub_cli("convert", "a.stl", "c.ply", "--recipe", "typo.toml", cwd=tmp_path)
    assert done.returncode != 0
    assert b"did you mean 'repair'" in done.stderr


def test_the_command_line_lists_recipes(tmp_path: Path) -> None:
    listed = json.loads(meshhub_cli("recipes", "--json", cwd=tmp_path).stdout)
    assert listed["print"]["options"] == {"repair": True, "place_on_bed": True}
    table = meshhub_cli("recipes", cwd=tmp_path).stdout.decode()
    assert "repair=true place_on_bed=true" in table
    assert "True surfaces" in table


@pytest.mark.parametrize(
    ("line", "message"), [("print_fillaments = 2", "unknown option"), ('print_volume_mm = "9x9"', "print_volume_mm")]
)
def test_a_wrong_option_of_a_file_has_its_line(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "mine.toml").write_text(f"[options]\nprint_filaments = 2\n{line}\n")
    result = CliRunner().invoke(root, ["check", "box.stl", "--recipe", str(tmp_path / "mine.toml")])
    option = line.partition(" ")[0]
    assert f"recipe file 'mine.toml:3': options.{option}: " in f"{result.exception} {result.output}"
    assert message in f"{result.exception} {result.output}"
