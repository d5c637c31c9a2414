"""POST /check with a report for people."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from http_serving import Running, check_error
from meshhub import Registry

BRACKET = Path(__file__).parents[2] / "examples" / "bracket.stl"
pytestmark = pytest.mark.usefixtures("small_pictures")

FAST = {"checks": "mesh,size"}


def check(running: Running, name: str = "part.stl", query: str = "", headers: Any = None, **fields: str) -> Any:
    return running.post(f"/check{query}", {"file": (name, BRACKET.read_bytes())}, FAST | fields, headers=headers)


def test_a_report_is_a_page_in_the_language_of_the_request(service: Running) -> None:
    english = check(service, "<b>&.stl", report="html")
    assert english.status_code == 200, english.text
    assert english.headers["content-type"] == "text/html; charset=utf-8"
    assert english.headers["content-language"] == "en"
    assert english.headers["content-disposition"].startswith("attachment")
    assert english.headers["x-content-type-options"] == "nosniff"
    assert "Print check" in english.text
    assert english.text.count("data:image/png;base64,") == 4
    assert "<b>&.stl" not in english.text
    german = [
        check(service, report="HTML", headers={"Accept-Language": "de-AT"}),
        check(service, "x.stl", "?language=de", report="html"),
    ]
    for answer in german:
        assert answer.headers["content-language"] == "de"
        assert "Druckprüfung" in answer.text
    spanish = check(service, report="html", headers={"Accept-Language": "nl, es;q=0.5"})
    assert spanish.headers["content-language"] == "es"
    assert "Comprobación de impresión" in spanish.text


def test_a_report_is_about_the_model_after_operations(isolated: Running) -> None:
    assert "open_edges" in {finding["code"] for finding in check(isolated).json()["findings"]}
    before, after = (check(isolated, report="html", repair=repair) for repair in ("false", "true"))
    assert before.status_code == after.status_code == 200
    assert ("Will not print" in before.text, "Will not print" in after.text) == (True, False)


def test_a_report_is_a_pdf(service: Running) -> None:
    answer = check(service, report="pdf")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/pdf"
    assert 'filename="part-check.pdf"' in answer.headers["content-disposition"]
    assert answer.content.startswith(b"%PDF-")
    assert answer.content.rstrip().endswith(b"%%EOF")


def test_a_report_is_the_model_in_the_colors_of_its_findings(service: Running, tmp_path: Path) -> None:
    answer = check(service, report="glb")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "model/gltf-binary"
    assert 'filename="part-check.glb"' in answer.headers["content-disposition"]
    (tmp_path / "marked.glb").write_bytes(answer.content)
    with Registry(entry_points=False) as registry:
        scene = registry.read(tmp_path / "marked.glb")
    assert "open_edges 1" in {part.name for part in scene.parts}
    assert {"error", "no finding"} <= {material.name for material in scene.materials}


def test_reports_that_do_not_exist_are_errors(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    error = check_error(check(service, report="docx"), 400, "invalid_option")["error"]
    assert "html, pdf, glb" in error
    quoting = service.post("/quote", {"file": ("part.stl", BRACKET.read_bytes())}, {"report": "html"})
    check_error(quoting, 400, "invalid_option")
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "reportlab" else found(name, *more)
    )
    error = check_error(check(service, report="pdf"), 400, "invalid_option")["error"]
    assert 'pip install "reportlab' in error


def test_an_unreadable_model_has_no_report(service: Running) -> None:
    answer = service.post("/check", {"file": ("part.stl", b"solid x\nendsolid")}, {"report": "html"})
    check_error(answer, 422, "empty_model")


def test_reports_are_cached_by_format_and_language(serve: Callable[..., Running]) -> None:
    running = serve(cache_bytes=10_000_000)
    requests: list[tuple[str, dict[str, str]]] = [
        ("", {"report": "html"}), ("", {"report": "html"}), ("?language=de", {"report": "html"}),
        ("", {"report": "pdf"}), ("", {"report": ""}), ("?language=de", {"report": "html"}),
    ]  # fmt: skip
    answers = [check(running, query=query, **fields) for query, fields in requests]
    states = [answer.headers["x-meshhub-cache"] for answer in answers]
    assert states == ["miss", "hit", "miss", "miss", "miss", "hit"]
    assert answers[0].content == answers[1].content
    assert answers[2].content == answers[5].content
