"""Translations: catalogs of built-in and other plug-ins, the choice of a language, and faults."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from meshhub import LOCAL, Registry
from meshhub.model.translations import OptionTexts, RecipeTexts
from meshhub.pipeline.catalogs import MAX_BYTES
from meshhub.supported import supported
from translated_plugin import PACKAGE, translated

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry(entry_points=False)


@pytest.mark.parametrize("language", ["de", "fr", "es"])
def test_every_built_in_text_is_translated(registry: Registry, language: str) -> None:
    texts = registry.texts(language)
    catalog = f"translations/{language}.toml of its plug-in"
    for name, field in registry.options.items():
        option = texts.options.get(name, OptionTexts())
        assert option.title, f"{name}: add it to {catalog}"
        assert option.description or not field.description, f"{name}: add its description to {catalog}"
        assert set(option.choices) == set(field.choices) - set(field.titles), f"{name}: add its choices to {catalog}"
    for recipe in registry.recipes.values():
        assert texts.recipes.get(recipe.id, RecipeTexts()).label, f"{recipe.id}: add it to {catalog}"
        assert texts.recipes[recipe.id].description or not recipe.description
    assert texts.formats.keys() == registry.formats.keys()
    assert texts.operations.keys() == registry.operations.keys()
    assert texts.plans.keys() == registry.plans.keys()
    # the command line prints them, which speaks English and German
    for name, sentence in registry.declarations.figures().items() if language == "de" else ():
        # a form for 1 where English has one, and the same figures
        assert ("|" in texts.figures[name]) == ("|" in sentence), name
        assert set(re.findall(r"{.*?}", texts.figures[name])) == set(re.findall(r"{.*?}", sentence)), name
    for declared in registry.declarations.checks:
        assert texts.checks[declared.capability.id].label
        assert texts.checks[declared.capability.id].description
    for name, field in registry.declarations.check_fields().items():
        option = texts.options[name]
        assert option.title and option.description, name
        # names of printers are the same in every language
        assert set(option.choices) in (set(field.choices), set()), name


def test_no_built_in_catalog_translates_what_does_not_exist(registry: Registry) -> None:
    for language in ("de", "fr", "es"):
        registry.texts(language)
    assert registry.faults == ()


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
