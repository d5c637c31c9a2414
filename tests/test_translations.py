"""Translations: catalogs of built-in and other plug-ins, the choice of a language, and faults."""

from __future__ import annotations

import ast
import importlib
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from meshhub import LOCAL, Registry
from meshhub.cli.catalogs import CommandLineTexts
from meshhub.model.capabilities import Stage
from meshhub.model.options import option_fields
from meshhub.model.translations import OptionTexts, RecipeTexts
from meshhub.pipeline.catalogs import MAX_BYTES, find_catalogs, read_texts
from meshhub.supported import supported
from translated_plugin import PACKAGE, translated

pytestmark = pytest.mark.once


LANGUAGES = sorted(find_catalogs("meshhub"))

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "meshhub"

FOLDERS = [*sorted(SOURCE.rglob("translations")), *sorted(ROOT.glob("plugins/*/src/*/translations"))]
"""Folders of catalogs: of the host, its command line and reports, and of plug-ins."""

TITLED = [folder for folder in FOLDERS if (folder / "en.toml").is_file()]
"""Folders of the plug-ins whose choices have titles in English, too; others show the choices themselves."""


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry(entry_points=False)


@pytest.fixture(scope="module")
def emissions() -> dict[str, Any]:
    """Notes of the source by code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "docs"))
        from reference_pages.notes import find_emissions

        return find_emissions()


def list_texts(table: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the texts of a catalog by their path."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from list_texts(value, (*path, key))
        else:
            yield (*path, key), str(value)


def list_values(text: str) -> list[str]:
    """Return the values in a text, which have braces, and the options, which have quotes."""
    return sorted(set(re.findall(r"\{\w*\}|'\w+", text)))


def read_toml(file: Path) -> dict[str, Any]:
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_each_language_has_the_texts_of_the_others_with_the_same_values(folder: Path) -> None:
    first, *others = (dict(list_texts(read_toml(folder / f"{language}.toml"))) for language in LANGUAGES)
    for texts in others:
        assert texts.keys() == first.keys()
        for key, text in texts.items():
            assert list_values(text) == list_values(first[key]), key
            assert ("|" in text) == ("|" in first[key]), key


@contextmanager
def imported(folder: Path) -> Iterator[ModuleType]:
    """Import the package of a folder of catalogs, and the distributions in `plugins/` until the block ends."""
    source = next(parent for parent in folder.parents if parent.name == "src")
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        for path in ROOT.glob("plugins/*/src"):
            patch.syspath_prepend(str(path))
        yield importlib.import_module(".".join(folder.parent.relative_to(source).parts))
    # other tests find them only where they are installed
    for name in sys.modules.keys() - before:
        if name.startswith("meshhub_"):
            del sys.modules[name]


def list_choices(package: ModuleType) -> Iterator[tuple[str, str]]:
    """Yield the option and the value of each choice that a plug-in declares without a title."""
    for hook in ("meshhub_readers", "meshhub_writers", "meshhub_operations", "meshhub_checks"):
        for capability in getattr(package, hook, tuple)():
            for field in option_fields(capability.options):
                yield from ((field.name, choice) for choice in field.choices if choice not in field.titles)


@pytest.mark.parametrize("folder", TITLED, ids=lambda folder: folder.parent.name)
def test_each_choice_has_a_title_in_english_and_each_language(folder: Path) -> None:
    with imported(folder) as package:
        declared = set(list_choices(package))
    for language in ("en", *LANGUAGES):
        options = read_toml(folder / f"{language}.toml")["options"]
        titled = {(name, choice) for name, texts in options.items() for choice in texts.get("choices", ())}
        assert titled == declared, f"{language}.toml"


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_text_of_a_declaration_is_translated(registry: Registry, language: str) -> None:
    texts, declarations = registry.texts(language), registry.declarations
    for name, field in registry.options.items():
        option = texts.options.get(name, OptionTexts())
        assert option.title, name
        assert option.description or not field.description, name
        assert set(option.choices) == set(field.choices) - set(field.titles), name
    for recipe in registry.recipes.values():
        assert texts.recipes.get(recipe.id, RecipeTexts()).label, recipe.id
        assert texts.recipes[recipe.id].description or not recipe.description
    assert texts.formats.keys() == registry.formats.keys()
    assert texts.operations.keys() == registry.operations.keys()
    assert texts.plans.keys() == registry.plans.keys()
    assert texts.figures.keys() == declarations.figures().keys()
    for name, sentence in declarations.figures().items():
        # a form for 1 where English has one
        assert ("|" in texts.figures[name]) == ("|" in sentence), name
        assert list_values(texts.figures[name]) == list_values(sentence), name
    for declared in declarations.checks:
        assert texts.checks[declared.capability.id].label
        assert texts.checks[declared.capability.id].description
    for name, field in declarations.check_fields().items():
        option = texts.options[name]
        assert option.title and option.description, name
        # names of printers are the same in every language
        assert set(option.choices) in (set(field.choices), set()), name


def test_no_built_in_catalog_translates_what_does_not_exist(registry: Registry) -> None:
    for language in LANGUAGES:
        registry.texts(language)
    assert registry.faults == ()


@pytest.mark.parametrize(
    "folder", [SOURCE, *sorted((SOURCE / "builtin_plugins").iterdir())], ids=lambda path: path.name
)
def test_notes_and_findings_are_translated_beside_their_meaning(folder: Path, emissions: dict[str, Any]) -> None:
    notes = read_toml(folder / "notes.toml")
    findings = {code for check in read_toml(folder / "findings.toml").values() for code in check["codes"]}
    for language in LANGUAGES:
        catalog = read_toml(folder / "translations" / f"{language}.toml")
        assert catalog.get("notes", {}).keys() == notes.keys()
        assert catalog.get("findings", {}).keys() == findings
        for code, text in catalog.get("notes", {}).items():
            assert set(list_values(text)) == {f"{{{name}}}" for name in emissions[code].values or ()}, code


@pytest.mark.parametrize("language", LANGUAGES)
def test_sentences_have_the_values_of_the_english_message(registry: Registry, language: str) -> None:
    for english, text in registry.texts(language).sentences.items():
        assert list_values(english) == list_values(text), english


@pytest.mark.parametrize("language", LANGUAGES)
def test_messages_about_wrong_uses_have_the_values_of_the_english_ones(language: str) -> None:
    for english, text in read_texts("meshhub.cli", language, CommandLineTexts).usage_errors.items():
        assert list_values(english) == list_values(text), english


def test_every_sentence_is_a_message_of_the_source(registry: Registry) -> None:
    files = (file.read_text(encoding="utf-8") for file in SOURCE.rglob("*.py"))
    nodes = (node for text in files for node in ast.walk(ast.parse(text)))
    constants = "\n".join(
        [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        + [f"stage {stage.name.lower()}, recipe" for stage in Stage]
    )
    for english in registry.texts(LANGUAGES[0]).sentences:
        # a number chooses between some words, such as "edge is" and "edges are"
        parts = [part.split() for part in re.split(r"\{\w+\}|'\w+\S*'", english)]
        runs = [" ".join(words[at : at + 2]) for words in parts for at in range(max(1, len(words) - 1))]
        assert any(run and run in constants for run in runs), english


def test_texts_are_english_by_default(registry: Registry) -> None:
    listed = supported(registry, LOCAL)
    assert listed["language"] == "en"
    assert listed["recipes"]["web"]["label"] == "Web page"
    for name, schema in listed["formats"]["step"]["options"]["properties"].items():
        field = registry.options[name]
        assert (schema["title"], schema["description"]) == (field.title, field.description)
    colors = listed["formats"]["step"]["options"]["properties"]["step_colors"]
    assert colors["oneOf"] == [{"const": choice, "title": choice} for choice in colors["enum"]]
    processes = listed["checks"][0]["options"]["properties"]["print_process"]["oneOf"]
    assert {"const": "resin", "title": "Resin"} in processes


def test_listings_are_german_on_request(registry: Registry) -> None:
    listed = supported(registry, LOCAL, language="de")
    assert listed["language"] == "de"
    assert listed["formats"]["glb"]["label"] == "GLB (binäres glTF)"
    assert listed["operations"][0]["label"] == "Reparieren"
    assert listed["recipes"]["web"]["label"] == "Webseite"
    assert listed["options"]["properties"]["input_unit"]["title"] == "Einheit der Datei"
    colors = listed["formats"]["step"]["options"]["properties"]["step_colors"]
    assert colors["enum"] == ["file", "surface"]
    assert colors["default"] == "file"
    assert colors["oneOf"][0] == {"const": "file", "title": "der Datei"}
    assert [item["const"] for item in colors["oneOf"]] == colors["enum"]


@pytest.mark.parametrize(
    ("requested", "language"),
    [
        ("de", "de"),
        ("DE", "de"),
        ("de-AT", "de"),
        ("de-Latn-AT-1996", "de"),
        ("nl, de;q=0.5", "de"),
        ("en;q=0.3 , de ; q=0.8", "de"),
        ("de;q=0.2,en-US;q=0.8", "en"),
        ("en, de", "en"),
        ("de;q=0", "en"),
        ("nl", "en"),
        ("", "en"),
        ("*", "en"),
        ("deutsch", "en"),
        ("de;q=high", "en"),
        (";=,,ö;q=1;", "en"),
    ],
)
def test_the_preferred_language_is_chosen(registry: Registry, requested: str, language: str) -> None:
    assert registry.texts(requested).language == language


def test_a_plugin_translates_its_texts(tmp_path: Path) -> None:
    with translated(tmp_path) as plugin:
        registry = Registry([plugin], entry_points=False)
    texts = registry.texts("de")
    assert texts.operations["tint"] == "Tönen"
    assert texts.options["tint"].choices["cold"] == "kalte Farben"
    assert texts.options["repair"].title == "Reparieren"
    assert registry.faults == ()


def test_a_plugin_translates_others_but_replaces_no_text(tmp_path: Path) -> None:
    catalog = '[operations]\nrepair = "Réparer"\n'.encode()
    for language, expected in (("fr-CA", "Réparer"), ("de", "Reparieren")):
        with translated(tmp_path / language, catalog, language) as plugin:
            texts = Registry([plugin], entry_points=False).texts(language)
        assert (texts.language, texts.operations["repair"]) == (language, expected)


@pytest.mark.parametrize(
    ("catalog", "message"),
    [
        (b"[options", "de.toml: Expected ']'"),
        (b"\xff", "de.toml: 'utf-8' codec can't decode"),
        (b"x = " + b"[" * 100_000, "de.toml: "),
        (b"#" * (MAX_BYTES + 1), f"de.toml is longer than {MAX_BYTES} bytes"),
        (b"[opshuns]", "unknown field `opshuns`"),
        (b"[options]\ntint = 'Farbe'", "Expected `object`, got `str`"),
        (b"[options.tint]\nhelp = 'Farbe'", "unknown field `help`"),
        (b"[options.tint]\ntitle = 3", "Expected `str`, got `int`"),
        (b"[operations]\ntint = ''", "length >= 1"),
        (b"[options.tints]\ntitle = 'Farbe'", "no plug-in declares the option 'tints'"),
        (b"[options.tint.choices]\nhot = 'x'", "no plug-in declares the choice 'hot' of the option 'tint'"),
        (b"[plans]\ngold = 'Gold'", "no plug-in declares the plan 'gold'"),
        (b"[figures]\ntinted = '{} rot'", "no plug-in declares the figure 'tinted'"),
    ],
)
def test_a_broken_catalog_is_a_fault_when_it_is_read(tmp_path: Path, catalog: bytes, message: str) -> None:
    with translated(tmp_path, catalog) as plugin:
        registry = Registry([plugin], entry_points=False)
    assert registry.texts("en").language == "en"
    assert registry.faults == ()
    listed = supported(registry, LOCAL, language="de")
    (fault,) = listed["faults"]
    assert fault["plugin"] == PACKAGE
    assert fault["message"].startswith("translation to 'de': ")
    assert message in fault["message"]
    labels = {operation["id"]: operation["label"] for operation in listed["operations"]}
    assert (labels["tint"], labels["repair"]) == ("Tint", "Reparieren")
    assert len(supported(registry, LOCAL, language="de")["faults"]) == 1


def test_a_catalog_without_a_language_is_a_fault(tmp_path: Path) -> None:
    with translated(tmp_path, language="Deutsch!") as plugin:
        registry = Registry([plugin], entry_points=False)
    (fault,) = registry.faults
    assert fault.plugin == PACKAGE
    assert fault.message == (
        "translations: 'Deutsch!.toml' must be named after a language, such as de.toml or pt-BR.toml"
    )
