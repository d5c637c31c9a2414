"""What a command reports about a conversion, as a person would say it."""

from __future__ import annotations

from pathlib import Path

import pytest

from meshhub import Registry
from meshhub.cli import report_text
from meshhub.model.notes import Note
from meshhub.model.report import FileReport, Loss, Report, StepReport
from meshhub.service.jobs.description import read_summary, summarize_report
from test_cli import EXAMPLE, meshhub_cli

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry(entry_points=False)


REPORT = Report(
    source=FileReport(format="glb", bytes=70_100, faces=1400, size_mm=(62.4, 40, 50)),
    target=FileReport(format="stl", bytes=16_800, faces=1396, size_mm=(48, 32, 40)),
    steps=(
        StepReport("glb", "read", 0.1, {"solids": 3}),
        StepReport("repair", "operation", 0.5, {"holes_closed": 2, "faces_flipped": 1, "watertight": True}),
        StepReport("copies", "operation", 0.1, {"parts_before": 1, "parts_after": 4}),
        StepReport("other", "operation", 0.1, {"wall_mm": 1.5, "nothing": 0}),
        StepReport("place-on-bed", "operation", 0.1),
        StepReport("stl", "write", 0.1),
    ),
    losses=(Loss("names", "stl"), Loss("colors", "stl")),
    notes=(
        Note("names_dropped", "names of parts cannot be kept", "stl"),
        Note("colors_dropped", "colors cannot be kept", "stl"),
        Note("frame_converted", "read in m, Y up; converted to mm, Z up", "glb"),
        Note("strays_removed", "Mesh 1 is smaller; omit 'repair'", "repair", ("repair",)),
        Note("strays_removed", "Mesh 2 is smaller; omit 'repair'", "repair", ("repair",)),
    ),
    seconds=1.234,
)


def test_sizes_faces_and_bytes_have_a_before_and_an_after() -> None:
    assert (
        report_text.summarize(REPORT) == "62.4 × 40 × 50 → 48 × 32 × 40 mm, 1,400 → 1,396 faces, 70.1 → 16.8 kB, 1.23 s"
    )


def test_equal_values_are_listed_once() -> None:
    report = Report(source=REPORT.target, target=REPORT.target, seconds=0.1)
    assert report_text.summarize(report) == "48 × 32 × 40 mm, 1,396 faces, 16.8 kB, 0.10 s"


def test_actions_are_sentences_and_states_follow_a_colon(registry: Registry) -> None:
    assert report_text.list_actions(REPORT, registry) == [
        "closed 2 holes, turned 1 face: now watertight",
        "parts 1 → 4",
        "other: wall 1.5 mm",
        "Place on bed",
    ]


def test_a_sentence_needs_all_its_figures_and_a_change() -> None:
    sentences = {"after": "{before} → {}", "count": "{} hole|{} holes", "closed": "closed"}
    for figures, text in (
        ({"before": 1, "after": 2}, "1 → 2"),
        ({"before": 2, "after": 2}, ""),
        ({"after": 2}, ""),
        ({"count": 1}, "1 hole"),
        ({"count": 1500, "closed": False}, "1,500 holes"),
        ({"closed": True}, "closed"),
    ):
        assert report_text.describe_figures(figures, sentences) == text


def test_notes_are_grouped_and_usual_ones_left_out(registry: Registry) -> None:
    assert report_text.list_notes(REPORT.notes, REPORT.losses, registry) == [
        "STL keeps no names, colors",
        "note: Mesh 1 is smaller; omit --repair (and 1 more of this kind) [strays_removed]",
    ]


def test_the_summary_of_a_service_makes_the_same_report(registry: Registry) -> None:
    copy = read_summary(summarize_report(REPORT, REPORT.notes))
    assert report_text.summarize(copy) == report_text.summarize(REPORT)
    assert report_text.list_actions(copy, registry)[:3] == report_text.list_actions(REPORT, registry)[:3]
    assert report_text.list_notes(copy.notes, copy.losses, registry) == report_text.list_notes(
        REPORT.notes, REPORT.losses, registry
    )


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"LANG": "de_DE.UTF-8"}, "2 Löcher geschlossen, 3 Fragmente entfernt"),
        ({"LANG": "de_AT", "LC_ALL": "C"}, "closed 2 holes, removed 3 fragments"),
        ({"LANG": "en_US.UTF-8", "LANGUAGE": "nl:de"}, "2 Löcher geschlossen"),
        ({"LANG": "nl_NL", "LC_MESSAGES": "del_US"}, "closed 2 holes"),
        ({"LANG": "fr_FR.UTF-8"}, "2 trous fermés, 3 fragments enlevés"),
        ({"LANG": "es_ES.UTF-8"}, "2 agujeros cerrados, 3 fragmentos quitados"),
    ],
)
def test_the_report_is_in_the_language_of_the_locale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    done = meshhub_cli("convert", EXAMPLE, tmp_path / "a.ply", "--repair", "--target-height-mm", "40.5")
    assert done.returncode == 0, done.stderr
    text = done.stderr.decode()
    assert expected in text
    sizes = {
        "Löcher": "40,5 mm, 1.400 Dreiecke",
        "trous": "40,5 mm, 1 400 faces",
        "agujeros": "40,5 mm, 1.400 caras",
    }
    assert next((size for word, size in sizes.items() if word in expected), "40.5 mm, 1,400 faces") in text
    note = {
        "Löcher": "entlang X 4 % kleiner [",
        "trous": "4 % plus petite le long de X [",
        "agujeros": "4 % menor a lo",
    }
    assert next((text for word, text in note.items() if word in expected), "smaller along X without") in text
