"""Help texts: short ones, complete ones, by topic, in every language, and on narrow terminals."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Annotated, get_args

import click
import msgspec
import pytest
from msgspec import Meta

import meshhub.cli
from meshhub import Operation, Registry, Stage, hookimpl
from meshhub.cli.catalogs import CommandLineTexts
from meshhub.cli.exits import EXIT_HELP
from meshhub.cli.flags import ReadingCommand, RegistryCommand
from meshhub.cli.topics import list_topics
from meshhub.error_codes import ERROR_CODES
from meshhub.model.report import StepKind
from meshhub.model.translations import Catalog
from meshhub.pipeline.catalogs import find_catalogs, read_texts
from test_cli import EXAMPLE, meshhub_cli, write_stl
from test_cli_verbosity import COMMANDS

pytestmark = pytest.mark.once

CLI = Path(meshhub.cli.__file__).parent

LANGUAGES = sorted(find_catalogs("meshhub.cli"))


def read_help(*arguments: str, columns: int = 80) -> str:
    done = meshhub_cli(*arguments, columns=columns)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def test_the_help_of_convert_fits_a_screen() -> None:
    text = read_help("convert", "--help")
    assert text.count("\n") <= 50
    for flag in ("--repair", "--target-height-mm", "--reduce-colors N", "--output-dir", "--help-all"):
        assert flag in text
    for flag in ("--repair-solid", "--step-reading", "--skip-existing", "Exit status"):
        assert flag not in text


def test_the_complete_help_has_every_option_once_below_its_topic() -> None:
    text = read_help("convert", "--help-all")
    sections = dict(re.findall(r"^(\S[^\n]*):\n(.*?)(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL))
    for title, flag in (
        ("Input", "--input-unit"),
        ("Repair and reduce", "--repair-solid"),
        ("Position and size", "--target-height-mm"),
        ("Shape", "--hollow-wall-mm"),
        ("Divide and combine", "--split-for-bed"),
        ("Colors", "--reduce-colors"),
        ("STEP", "--step-surfaces"),
        ("Output", "--each-bed"),
    ):
        assert re.search(rf"^  {flag}\b", sections[title], re.MULTILINE), (title, flag)
    for field in Registry(entry_points=False).options.values():
        assert len(re.findall(rf"^  {field.flag}(?![\w-])", text, re.MULTILINE)) == 1, field.flag
    assert "Exit status: 0 success" in text
    assert "meshhub convert --combine IN... OUT" in text


@pytest.mark.parametrize("command", ["check", "quote", "render", "inspect", "explain"])
def test_the_help_of_commands_that_take_options_fits_a_screen(command: str) -> None:
    assert read_help(command, "--help").count("\n") <= 50
    assert read_help(command, "--help-all").count("\n  --") > read_help(command, "--help").count("\n  --")


def test_each_option_belongs_to_one_topic() -> None:
    registry = Registry(entry_points=False)
    fields = ReadingCommand("check", purpose="check").fields(registry)
    listed = [field.name for topic in list_topics(registry, fields, "Checks") for field in topic.fields]
    assert sorted(listed) == sorted(fields)


@pytest.mark.parametrize("stage", Stage)
def test_operations_of_each_stage_have_a_topic(stage: Stage) -> None:
    class Plugin:
        @hookimpl
        def meshhub_operations(self) -> list[Operation]:
            options = msgspec.defstruct("Options", [("toy", Annotated[bool, Meta(title="Toy")], False)], frozen=True)
            return [Operation(id="toy", label="Toy", stage=stage, options=options, run="toys:spin")]

    registry = Registry([Plugin()], entry_points=False)
    topics = list_topics(registry, registry.options, "Checks")
    assert [field.name for topic in topics if "toy" in topic.ids for field in topic.fields if field.name == "toy"]


@pytest.mark.parametrize(
    ("topic", "expected", "other"),
    [
        ("repair", "--repair-wrap-mm", "--optimize"),
        ("Repair and reduce", "--optimize-target-faces", "--lay-flat"),
        ("reduce_colors", "--reduce-colors-dither", "--repair"),
        ("--reduce-colors-wall-mm", "--reduce-colors-wall-mm", "--reduce-colors-dither"),
        ("STEP", "--step-surfaces", "--stl-ascii"),
        ("input", "--input-unit", "--each-bed"),
        ("check", "--print-printer", "--repair-"),
        ("render", "--color-by", "--repair"),
    ],
)
def test_the_options_of_a_topic_are_explained(topic: str, expected: str, other: str) -> None:
    text = read_help("options", topic)
    assert re.search(rf"^{expected}\b", text, re.MULTILINE)
    assert not re.search(rf"^{other}", text, re.MULTILINE)


def test_topics_are_listed_and_the_nearest_is_suggested() -> None:
    text = read_help("options")
    assert re.search(r"^reduce-colors +--reduce-colors", text, re.MULTILINE)
    listed = msgspec.json.decode(read_help("options", "--json"))
    assert listed["fit"]["fit_mm"]["title"] == "Fit into a box, mm"
    assert set(msgspec.json.decode(read_help("options", "fit", "--json"))) == {"fit_mm"}
    done = meshhub_cli("options", "hallow")
    assert done.returncode == 2
    assert b"did you mean 'hollow'?" in done.stderr


def test_a_path_instead_of_a_command_converts(tmp_path: Path) -> None:
    write_stl(tmp_path / "part.stl")
    assert meshhub_cli("part.stl", "part.3mf", "--place-on-bed", cwd=tmp_path).returncode == 0
    assert (tmp_path / "part.3mf").is_file()
    assert meshhub_cli("-q", "part.stl", "ply", cwd=tmp_path).returncode == 0
    assert (tmp_path / "part.ply").is_file()
    assert b"give an OUTPUT" in meshhub_cli("part.stl", cwd=tmp_path).stderr
    missing = meshhub_cli("no.stl", "no.3mf", cwd=tmp_path)
    assert missing.returncode == 3
    assert b"no.stl" in missing.stderr
    assert b"Did you mean 'convert'?" in meshhub_cli("convrt", cwd=tmp_path).stderr


def read_catalog(language: str) -> CommandLineTexts:
    return read_texts("meshhub.cli", language, CommandLineTexts)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_text_of_every_command_is_translated(language: str) -> None:
    texts, registry = read_catalog(language), Registry(entry_points=False)
    commands = {" ".join(path): command for path, command in COMMANDS}
    assert texts.commands.keys() == {"", *commands}
    assert (EXIT_HELP.count(" · "), EXIT_HELP.count("\n")) == (texts.epilog.count(" · "), texts.epilog.count("\n"))
    used = set()
    for path, command in commands.items():
        own = texts.commands[path].flags
        options = {
            param.name for param in command.params if isinstance(param, click.Option) and param.help and param.name
        }
        if isinstance(command, RegistryCommand):
            options -= command.fields(registry).keys()
        assert options <= own.keys() | texts.flags.keys(), path
        assert own.keys() <= options, path
        used |= options - own.keys()
    assert used == texts.flags.keys()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_word_of_the_command_line_is_translated(language: str) -> None:
    words = read_catalog(language).words
    constants = set(get_args(StepKind))
    for file in CLI.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant):
                constants.add(node.value)
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in ("tr", "count", "headings", "labeled")
            ):
                literals = [each.value for each in node.args if isinstance(each, ast.Constant)]
                assert words.keys() >= set(literals), file
    # click has these
    assert words.keys() - constants == {"Show this message and exit.", "Show the version and exit."}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_error_code_is_translated(language: str) -> None:
    assert read_texts("meshhub", language, Catalog).errors.keys() == ERROR_CODES.keys()


@pytest.mark.parametrize(
    ("locale", "expected"),
    [
        (
            "de_DE",
            (
                (("--help",), "convert     Wandelt Modelle um."),
                (("convert", "--help"), "--target-height-mm NUMBER       Höhe in mm"),
                (("convert", "--help-all"), "höchstens 100000)"),
                (("keys", "create", "--help"), "Tarif des Schlüssels"),
                (("options", "fit"), "In einen Quader einpassen"),
                (("inspect", str(EXAMPLE)), "wasserdicht                 nein: mit --repair umwandeln"),
            ),
        ),
        (
            "fr_FR",
            (
                (("--help",), "convert     Convertit des modèles."),
                (("convert", "--help"), "Usage : meshhub convert"),
                (("convert", "--help-all"), "au plus 100000)"),
                (("check", "--help-all"), "Langue du rapport."),
                (("inspect", str(EXAMPLE)), "étanche              non : convertir avec --repair"),
            ),
        ),
        (
            "es_ES",
            (
                (("--help",), "convert     Convierte modelos."),
                (("convert", "--help"), "Uso: meshhub convert"),
                (("convert", "--help-all"), "como máximo 100000)"),
                (("keys", "create", "--help"), "Plan de la clave"),
                (("inspect", str(EXAMPLE)), "estanco               no: convertir con --repair"),
            ),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_help_and_listings_are_in_the_language_of_the_locale(
    monkeypatch: pytest.MonkeyPatch, locale: str, expected: tuple[tuple[tuple[str, ...], str], ...]
) -> None:
    # an English call before does not change the texts
    assert "Scale in percent" in read_help("convert", "--help")
    monkeypatch.setenv("LANG", f"{locale}.UTF-8")
    for arguments, part in expected:
        text = read_help(*arguments)
        # the longest row decides the width of a column
        assert re.sub(" +", " ", part) in re.sub(" +", " ", text)
        assert max(map(len, text.splitlines())) <= 80, arguments
    monkeypatch.setenv("LANG", "C.UTF-8")
    assert "Convert model files." in read_help("convert", "--help")


@pytest.mark.parametrize("arguments", [("--help",), ("convert", "--help"), ("keys", "create", "--help"), ("formats",)])
def test_lines_wrap_at_words_on_a_terminal_of_40_columns(arguments: tuple[str, ...]) -> None:
    lines = read_help(*arguments, columns=40).splitlines()
    assert [line for line in lines if len(line) > 40 and " " in line.strip()] == []
    words = set(re.findall(r"\S+", read_help(*arguments, columns=200)))
    assert {word for word in re.findall(r"\S+", "\n".join(lines)) if word.isalpha()} - words <= {"yes", "no"}
