"""German of results: findings, remedies, quotes, chains and listings, by the locale."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from meshhub import Registry
from meshhub.builtin_plugins import print as print_checks
from meshhub.cli import root
from meshhub.model.capabilities import Stage
from meshhub.model.sentences import translate_message
from test_cli import EXAMPLE

pytestmark = pytest.mark.once

RATES = EXAMPLE.with_name("rates.toml")

SENTENCES = {
    " and ": " und ",
    "{count} edges": "{count} Kanten",
    "{count} edges are open": "{count} offene Kanten",
    "{a} before {b}": "{b} nach {a}",
    "use {options}": "{options} hilft",
    "it is made of {material}": "aus {material}",
    "resin": "Harz",
    "a wall (ray; ball)": "eine Wand (Strahl; Kugel)",
}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("1,200.5 edges", "1.200,5 Kanten"),
        ("3 edges are open", "3 offene Kanten"),
        ("x before y; 2 edges", "y nach x; 2 Kanten"),
        ("a wall (ray; ball); 2 edges", "eine Wand (Strahl; Kugel); 2 Kanten"),
        ("use 'repair' and 'fit_mm'", "'repair' und 'fit_mm' hilft"),
        ("use 'repair'", "'repair' hilft"),
        ("it is made of resin", "aus Harz"),
        ("it is made of fish and chips", "aus fish and chips"),
        # a message is in one language
        ("2 edges; nobody has translated this", "2 edges; nobody has translated this"),
        ("", ""),
    ],
)
def test_parts_of_a_message_are_translated_with_their_values(message: str, expected: str) -> None:
    marks = {ord(","): ".", ord("."): ","}
    assert translate_message(message, SENTENCES, lambda numbers: numbers.translate(marks)) == expected


def list_fragments() -> Iterator[tuple[str, str]]:
    """Yield the words of findings in the code of checks: texts that no error and no docstring has."""
    for file in Path(print_checks.__file__).parent.glob("*.py"):
        if file.name == "slicer.py":
            # it reads the texts of a slicer, and its findings are those of the estimate
            continue
        tree = ast.parse(file.read_text(encoding="utf-8"))
        others = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Raise)
            or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
            or (
                isinstance(node, ast.Call)
                and getattr(node.func, "id", "") in ("Meta", "_declare", "Operation", "Printer", "compile")
            )
        ]
        skipped = {id(child) for node in others for child in ast.walk(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
                for fragment in re.split(r"; ?|\{\w*\}", node.value):
                    if re.search("[a-z]{3} [a-z]", fragment):
                        yield file.name, fragment.strip(" ,}")


def test_every_text_of_a_finding_is_in_the_german_catalog() -> None:
    english = "\n".join(Registry(entry_points=False).texts("de").sentences)
    fragments = set(list_fragments())
    assert len(fragments) > 60
    assert [each for each in fragments if each[1].replace("{{", "'").replace("}}", "'") not in english] == []


def test_sentences_have_the_same_values_and_options_in_both_languages() -> None:
    for english, german in Registry(entry_points=False).texts("de").sentences.items():
        for pattern in (r"\{\w+\}", r"'\w+"):
            assert sorted(re.findall(pattern, english)) == sorted(re.findall(pattern, german)), english


def test_every_stage_is_german() -> None:
    sentences = Registry(entry_points=False).texts("de").sentences
    for stage in Stage:
        assert {f"stage {stage.name.lower()}", f"stage {stage.name.lower()}, recipe {{recipe}}"} <= sentences.keys()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ("check", str(EXAMPLE)),
            (
                "nicht druckbar",
                "Fehler: 16 Kanten sind offen; Slicer schließen das Loch nach Belieben oder lassen das Teil weg; "
                "--repair behebt es, oder eine Korrektur im Programm,",
                "bei 62,2 / 1,2 / 1 (9);",
                "Abhilfe: meshhub convert",
                "braucht 17,5 g pla; etwa 2 h 19 min (± 12 %)",
            ),
        ),
        (
            ("quote", str(EXAMPLE), "--rates", str(RATES), "--quantity", "12"),
            ("  Gewicht  17,5 g pla", "nach Modell", "Maschinenzeit              96,99 EUR", ", je 10,09"),
        ),
        (
            ("explain", str(EXAMPLE), "out.3mf", "--repair"),
            ("STL in mm, Z oben", "Stufe Reparieren", "Ziel .3mf", "nichts geht verloren"),
        ),
        (("explain", str(EXAMPLE.with_name("bracket-clean.stl")), "stl"), ("Inhalt sieht aus wie STL (",)),
        (("formats",), ("Endungen", "GLB (binäres glTF)", "Texturkoordinaten", "w: beim Schreiben")),
        (("operations",), ("was sie tut", "Höhe in mm")),
        (("recipes",), ("Rezept", "Webseite")),
        (("inspect", "missing.stl"), ("Fehler: Die Datei lässt sich nicht lesen: missing.stl",)),
    ],
    ids=lambda value: " ".join(value[:1]) if isinstance(value, tuple) else None,
)
def test_results_are_german_in_a_german_locale(
    monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    monkeypatch.setenv("COLUMNS", "160")
    result = CliRunner().invoke(root, arguments)
    output = result.output
    for text in expected:
        assert text in output
