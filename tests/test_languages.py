"""Results in the language of the locale: findings, remedies, quotes, chains and listings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from meshhub import Registry
from meshhub.builtin_plugins import print as print_checks
from meshhub.cli import main, root
from meshhub.model.capabilities import Stage
from meshhub.model.sentences import translate_message
from meshhub.model.translations import Catalog
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
    texts = Catalog(sentences=SENTENCES, marks={"thousands": ".", "decimals": ","})
    assert translate_message(message, texts) == expected


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


def test_every_text_of_a_finding_has_a_translation() -> None:
    english = "\n".join(Registry(entry_points=False).texts("de").sentences)
    fragments = set(list_fragments())
    assert len(fragments) > 60
    assert [each for each in fragments if each[1].replace("{{", "'").replace("}}", "'") not in english] == []


def test_every_stage_has_a_translation() -> None:
    sentences = Registry(entry_points=False).texts("de").sentences
    for stage in Stage:
        assert {f"stage {stage.name.lower()}", f"stage {stage.name.lower()}, recipe {{recipe}}"} <= sentences.keys()


@pytest.mark.parametrize(
    ("locale", "arguments", "expected"),
    [
        (
            "de_DE",
            ("check", str(EXAMPLE), "--checks", "mesh"),
            (
                "nicht druckbar",
                "Fehler: 16 Kanten sind offen; Slicer schließen das Loch nach Belieben oder lassen das Teil weg; "
                "--repair behebt es, oder eine Korrektur im Programm,",
                "bei 9,205 / 3,315 / 0 (3);",
                "Abhilfe: meshhub convert",
            ),
        ),
        (
            "de_DE",
            ("quote", str(EXAMPLE), "--rates", str(RATES), "--quantity", "12"),
            ("  Gewicht  17,5 g pla", "nach Modell", "Maschinenzeit              96,01 EUR", ", je 10,00"),
        ),
        (
            "de_DE",
            ("explain", str(EXAMPLE), "out.3mf", "--repair"),
            ("STL in mm, Z oben", "Stufe Reparieren", "Ziel .3mf", "nichts geht verloren"),
        ),
        ("de_DE", ("explain", str(EXAMPLE.with_name("bracket-clean.stl")), "stl"), ("Inhalt sieht aus wie STL (",)),
        ("de_DE", ("formats",), ("Endungen", "GLB (binäres glTF)", "Texturkoordinaten", "w: beim Schreiben")),
        ("de_DE", ("operations",), ("was sie tut", "Höhe in mm")),
        ("de_DE", ("recipes",), ("Rezept", "Webseite")),
        ("de_DE", ("inspect", "missing.stl"), ("Fehler: Die Datei lässt sich nicht lesen: missing.stl",)),
        (
            "fr_FR",
            ("check", str(EXAMPLE)),
            (
                "ne s’imprime pas",
                "16 arêtes sont ouvertes ; les trancheurs ferment le trou à leur gré, ou omettent la pièce ; utilisez",
                "  erreur : 16",
                "remède : meshhub convert",
                "demande 17,5 g de pla ; environ 2 h 17 min (± 13 %)",
            ),
        ),
        ("fr_FR", ("explain", str(EXAMPLE), "out.3mf", "--repair"), ("STL en mm, Z vers le haut", "phase Réparer")),
        ("fr_FR", ("inspect", "missing.stl"), ("erreur : Le fichier est illisible : missing.stl",)),
        (
            "es_ES",
            ("quote", str(EXAMPLE), "--rates", str(RATES), "--quantity", "12"),
            ("  peso     17,5 g de pla", "según modelo", "tiempo de máquina          96,01 EUR", ", 10,00 por pieza"),
        ),
        ("es_ES", ("formats",), ("coordenadas de textura", "w: al escribir")),
        ("es_ES", ("recipes",), ("receta", "50000 triángulos como máximo")),
    ],
    ids=lambda value: " ".join(value[:1]) if isinstance(value, tuple) else None,
)
def test_results_are_in_the_language_of_the_locale(
    monkeypatch: pytest.MonkeyPatch, locale: str, arguments: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    monkeypatch.setenv("LANG", f"{locale}.UTF-8")
    monkeypatch.setenv("COLUMNS", "160")
    result = CliRunner().invoke(root, arguments)
    output = result.output
    for text in expected:
        assert text in output


@pytest.mark.parametrize(
    ("locale", "arguments", "expected"),
    [
        (
            "de_DE",
            ("convert", "a.stl", "--forse"),
            "Fehler: Die Option '--forse' gibt es nicht. (Meinten Sie '--force', ",
        ),
        ("de_DE", ("app", "gone.stl"), "Fehler: Ungültiger Wert für '[FILE]...': Pfad 'gone.stl' gibt es nicht."),
        (
            "de_DE",
            ("convert", "a.stl", "b.3mf", "--timeout", "-3"),
            "muss eine Zahl von Sekunden sein; 0 für keine Grenze",
        ),
        ("de_DE", ("konvert",), "Fehler: Den Befehl 'konvert' gibt es nicht. Meinten Sie 'convert'?"),
        # a message without a translation
        ("de_DE", ("convert", "a.stl", "a.stl"), "Fehler: Falscher Aufruf: a.stl is the input itself"),
        ("fr_FR", ("convert",), "erreur : indiquez un INPUT, ou un dossier avec --watch"),
        ("fr_FR", ("check",), "Aide : 'meshhub check --help'"),
        ("es_ES", ("formats", "x", "y"), "error: Sobran los argumentos x y"),
        ("en_US", ("convert",), "Error: give an INPUT, or a folder with --watch"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_wrong_uses_are_explained_in_the_language_of_the_locale(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    locale: str,
    arguments: tuple[str, ...],
    expected: str,
) -> None:
    monkeypatch.setenv("LANG", f"{locale}.UTF-8")
    monkeypatch.setattr("sys.argv", ["meshhub", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert expected in capsys.readouterr().err


@pytest.mark.usefixtures("small_pictures")
def test_the_lines_of_a_report_are_in_the_language_of_the_locale(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    result = CliRunner().invoke(
        root, ("check", str(EXAMPLE), "--checks", "mesh", "--report", str(tmp_path / "report.html"))
    )
    assert "report.html: 1 geprüft, " in " ".join(result.output.split())
