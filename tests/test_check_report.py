"""Reports of checks: pictures with numbers, findings and remedies, as HTML and PDF, in every language."""

from __future__ import annotations

import base64
import io
import sys
from datetime import date
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner, Result
from numpy.typing import NDArray
from PIL import Image as Pillow

from meshhub import Finding, InvalidOption, Mesh, MissingDependency, Place, Registry, Scene
from meshhub.cli import root
from meshhub.model.report import FileReport
from meshhub.model.verdict import Verdict
from meshhub.reporting.collecting import CheckedModel, collect_model
from meshhub.reporting.texts import LANGUAGES, ReportTexts, load_texts
from meshhub.reporting.writing import render_report
from meshhub.toolkit.rendering.options import RenderOptions, parse_marks
from meshhub.toolkit.rendering.picture import render
from models import assert_valid, brick, move_mesh, scene_of

pytestmark = pytest.mark.once

MARK_INK = (176, 0, 58)


class Page(HTMLParser):
    """Elements and visible text of a page."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._is_style = False
        self.feed(data.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._is_style = tag == "style"

    def handle_data(self, data: str) -> None:
        self.text += "" if self._is_style else f"{data}\n"

    def list_tags(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag == name]

    def pictures(self) -> list[NDArray[np.uint8]]:
        result = []
        for image in self.list_tags("img"):
            head, _, data = str(image["src"]).partition(",")
            assert head == "data:image/png;base64"
            with Pillow.open(io.BytesIO(base64.b64decode(data))) as picture:
                result.append(np.asarray(picture.convert("RGB")))
        return result


def lidless() -> Scene:
    mesh = brick(20, 20, 20)
    is_lid = mesh.vertices[mesh.faces][..., 2].min(axis=1) > 19.9
    return scene_of(Mesh(mesh.vertices, mesh.faces[~is_lid]))


def write(path: Path, scene: Scene) -> Path:
    with Registry(entry_points=False) as registry:
        registry.write(scene, path)
    return path


def check(*arguments: object) -> Result:
    return CliRunner().invoke(root, ["check", *map(str, arguments)])


def test_a_page_has_verdict_pictures_findings_and_remedies(tmp_path: Path) -> None:
    model = write(tmp_path / "box.stl", lidless())
    result = check(model, "--report", tmp_path / "box.html")
    assert result.exit_code == 1, result.output
    page = Page((tmp_path / "box.html").read_bytes())
    for text in ("box.stl", "Will not print", "20 × 20 × 20 mm", "none (open)", "20 cm²", "edges are open"):
        assert text in page.text
    assert "meshhub convert box.stl box-fixed.3mf --repair" in page.text.replace("\n", "")
    assert "--repair" in page.text.split("Findings")[1].split("Remedies")[0]
    pictures = page.pictures()
    assert [picture.shape for picture in pictures] == [(540, 720, 3)] * 4
    # numbers in every picture; the last one marks the open edges
    assert all((picture == MARK_INK).all(axis=2).sum() > 100 for picture in pictures)
    edges = [(picture == (213, 94, 0)).all(axis=2).sum() for picture in pictures]
    assert edges[:3] == [0, 0, 0] and edges[3] > 500


@pytest.mark.usefixtures("small_pictures")
def test_a_page_loads_nothing_and_shows_names_as_text(tmp_path: Path) -> None:
    name = '<img src="http:x" onerror=alert(1)>&amp;.stl'
    model = write(tmp_path / "plain.stl", scene_of(brick(20, 20, 20))).rename(tmp_path / name)
    assert check(model, "--checks", "mesh", "--report", tmp_path / "a.html").exit_code == 0
    page = Page((tmp_path / "a.html").read_bytes())
    assert page.text.count(name) >= 2
    assert "The checks found nothing." in page.text
    assert len(page.list_tags("img")) == 4
    assert not page.list_tags("script") + page.list_tags("link") + page.list_tags("a")
    assert all(not name.startswith("on") for _, attributes in page.elements for name in attributes)
    assert b"url(" not in (tmp_path / "a.html").read_bytes()


HOSTILE = '"><script>alert(1)</script><b onclick="x">'


@pytest.mark.usefixtures("small_pictures")
@pytest.mark.parametrize("name", ["a.html", "a.pdf"])
def test_texts_of_findings_and_errors_are_not_markup(name: str) -> None:
    finding = Finding(
        code="odd", severity="info", message=HOSTILE, unit=HOSTILE, amount=1.0, check=HOSTILE,
        places=(Place(position_mm=(0, 0, 0), amount=2.0),), places_found=70, remedy={"name": HOSTILE},
    )  # fmt: skip
    verdict = Verdict(verdict="ready", source=FileReport(format="stl"), findings=(finding,), checks=())
    with Registry(entry_points=False) as registry:
        model = collect_model(registry, scene_of(brick()), HOSTILE, verdict)
    models = [model, CheckedModel(name="b" * 300, error=HOSTILE + " 語")]
    if name == "a.pdf":
        pytest.importorskip("reportlab", reason="PDF needs the extra report")
    data = render_report(models, name, Registry(entry_points=False), "en", date(2030, 1, 2))
    assert data == render_report(models, name, Registry(entry_points=False), "en", date(2030, 1, 2))
    if name == "a.html":
        page = Page(data)
        assert page.text.count(HOSTILE) >= 6
        assert "1 and 69 more" in page.text
        assert {tag for tag, _ in page.elements}.isdisjoint({"script", "b"})


@pytest.mark.usefixtures("small_pictures")
@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("de", ("Nicht druckbar", "Fehler", "Netz", "Abhilfe", "10,00", "4 Kanten sind offen; Slicer")),
        ("fr", ("Ne s’imprime pas", "Erreur", "Maillage", "Remèdes", "10,00", "4 arêtes sont ouvertes ; les")),
        ("es", ("No se imprime", "Error", "Malla", "Soluciones", "10,00", "4 aristas están abiertas; los")),
    ],
)
def test_a_page_in_another_language(tmp_path: Path, language: str, expected: tuple[str, ...]) -> None:
    model = write(tmp_path / "box.stl", lidless())
    assert check(model, "--checks", "mesh", "--report", tmp_path / "box.html", "--language", language).exit_code == 1
    page = Page((tmp_path / "box.html").read_bytes())
    assert page.list_tags("html") == [{"lang": language}]
    for text in expected:
        assert text in page.text


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_has_every_text(language: str) -> None:
    texts, english = msgspec.to_builtins(load_texts(language)), msgspec.to_builtins(ReportTexts())
    assert texts["language"] == language
    assert all(texts[name].keys() == value.keys() for name, value in english.items() if isinstance(value, dict))
    assert load_texts("de").more.format(count=3) == "und 3 weitere"
    same = {name for name, value in texts.items() if value == english[name]}
    # some words are spelled alike in French
    assert language == "en" or same <= {"volume", "area", "triangles", "file_format", "thousands_mark"}


def test_a_report_is_about_the_model_after_operations(tmp_path: Path) -> None:
    model = write(tmp_path / "box.stl", lidless())
    assert check(model, "--repair", "--print-process", "resin", "--report", tmp_path / "box.html").exit_code == 0
    page = Page((tmp_path / "box.html").read_bytes())
    assert "Ready" in page.text and "8 cm³" in page.text
    # one model in each picture, in the middle
    for picture in page.pictures()[:3]:
        columns = np.flatnonzero((picture != picture[0, 0]).any(axis=(0, 2)))
        assert abs(columns.min() - (719 - columns.max())) <= 3


@pytest.mark.usefixtures("small_pictures")
def test_several_models_are_sections_and_failures_are_shown(tmp_path: Path) -> None:
    write(tmp_path / "a.stl", lidless())
    write(tmp_path / "b.3mf", scene_of(brick(20, 20, 20)))
    (tmp_path / "c.stl").write_bytes(b"solid x\nendsolid x\n")
    result = check(tmp_path, "--checks", "mesh", "--report", tmp_path / "all.html", "--fail-on", "never")
    assert result.exit_code == 1
    page = Page((tmp_path / "all.html").read_bytes())
    assert len(page.list_tags("section")) == 3 and len(page.list_tags("img")) == 8
    assert "Could not be checked" in page.text


@pytest.mark.usefixtures("small_pictures")
def test_a_pdf(tmp_path: Path) -> None:
    pytest.importorskip("reportlab", reason="PDF needs the extra report")
    mesh = brick(10, 20, 30)
    model = write(tmp_path / "box.stl", scene_of(Mesh(mesh.vertices, mesh.faces[1:])))
    assert check(model, "--checks", "mesh", "--report", tmp_path / "box.pdf").exit_code == 1
    data = (tmp_path / "box.pdf").read_bytes()
    assert data.startswith(b"%PDF-") and data.rstrip().endswith(b"%%EOF")
    assert data.count(b"/Subtype /Image") == 4 and b"595.2756 841.8898" in data


def test_a_pdf_without_its_extra_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "reportlab", None)
    result = check(write(tmp_path / "box.stl", lidless()), "--report", tmp_path / "box.pdf")
    assert isinstance(result.exception, MissingDependency)
    assert 'pip install "reportlab' in str(result.exception) and ".html" in str(result.exception)
    assert not (tmp_path / "box.pdf").exists()


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("a.txt", [], ".html or .pdf"),
        ("a.html", ["--server", "http://127.0.0.1:9"], "leave out --server"),
        ("a.html", ["--marked", "a.docx"], "docx"),
        ("a.html", ["--marked", "a.stl"], "STL does not keep; choose one of"),
        ("a.html", ["--marked", "."], "extension"),
        ("kept.html", [], "--force"),
        ("missing/a.html", [], "create it first"),
    ],
)
def test_reports_that_cannot_be_written(tmp_path: Path, name: str, arguments: list[str], message: str) -> None:
    model = write(tmp_path / "box.stl", lidless())
    (tmp_path / "kept.html").write_text("old")
    result = check(model, "--report", tmp_path / name, *arguments)
    # nothing was checked
    assert message in f"{result.exception} {result.output}" and "edges" not in result.output
    assert (tmp_path / "kept.html").read_text() == "old"


@pytest.mark.usefixtures("small_pictures")
def test_a_report_is_replaced_on_request(tmp_path: Path) -> None:
    model, report = write(tmp_path / "box.stl", lidless()), tmp_path / "kept.html"
    report.write_text("old")
    flags = ("--checks", "mesh", "--force", "--fail-on", "never")
    assert check(model, "--report", report, *flags).exit_code == 0
    assert report.read_text() != "old"


def test_marked_overhangs_of_a_body_that_is_inside_out_are_below_it(tmp_path: Path) -> None:
    parts = brick(2, 20, 20), move_mesh(brick(20, 20, 2), 0, 0, 20)
    model = write(tmp_path / "table.glb", scene_of(*(Mesh(mesh.vertices, mesh.faces[:, ::-1]) for mesh in parts)))
    check(model, "--checks", "overhangs", "--marked", tmp_path / "marked.glb")
    with Registry(entry_points=False) as registry:
        scene = registry.read(tmp_path / "marked.glb")
    heights = []
    for mesh in scene.meshes:
        if mesh.face_material is not None:
            is_marked = [scene.materials[number].name == "warning" for number in mesh.face_material]
            heights += mesh.vertices[mesh.faces[is_marked]][:, :, 2].ravel().tolist()
    assert len(heights) == 6
    assert heights == pytest.approx([20] * 6)


def test_findings_are_balls_in_a_file_for_viewers(tmp_path: Path) -> None:
    model = write(tmp_path / "box.stl", lidless())
    assert check(model, "--checks", "mesh", "--marked", tmp_path / "box.glb").exit_code == 1
    with Registry(entry_points=False) as registry:
        scene = registry.read(tmp_path / "box.glb")
        verdict = registry.check(model, checks="mesh")
    names = {part.name: part for part in scene.parts}
    ball = names["open_edges 1"]
    mesh = scene.meshes[ball.mesh]
    placed = mesh.vertices @ ball.transform[:3, :3].T + ball.transform[:3, 3]
    assert (placed.min(axis=0) + placed.max(axis=0)) / 2 == pytest.approx(
        verdict.findings[0].places[0].position_mm, abs=0.01
    )
    assert_valid(scene_of(mesh))
    assert ball.path == ("findings", "mesh")
    box = next(part for part in scene.parts if part is not ball)
    mesh = scene.meshes[box.mesh]
    assert mesh.face_material is not None
    colors = [scene.materials[number].name for number in mesh.face_material]
    # the rim, at which the lid is missing, is on one triangle of each wall
    assert sorted(set(colors)) == ["error", "no finding"]
    assert colors.count("error") == 4
    assert check(model, "--marked", tmp_path / "box.glb").exit_code != 0
    assert check(model, model, "--marked", tmp_path / "b.glb").exit_code == 2


def test_numbers_are_at_their_places() -> None:
    options = RenderOptions(size="400x400", view="top", edges="none", marks="5,5,10; 15, 15, -1")
    picture = render(scene_of(brick(20, 20, 10)), options)
    rows, columns = np.nonzero((picture[..., :3] == MARK_INK).all(axis=2))
    for is_first, place in ((columns < 200, 0.25), (columns >= 200, 0.75)):
        # the model fills all but a margin of 6 % on each side
        expected = 400 * (0.06 + 0.88 * place)
        assert (columns[is_first].min() + columns[is_first].max()) / 2 == pytest.approx(expected, abs=2)
        assert (rows[is_first].min() + rows[is_first].max()) / 2 == pytest.approx(400 - expected, abs=2)
    # a number behind the surface is on white
    assert (columns < 200).sum() > 1.5 * (columns >= 200).sum()


def test_numbers_at_one_place_do_not_cover_each_other() -> None:
    options = RenderOptions(size="400x400", view="top", edges="none", marks=";".join(["10,10,10"] * 9))
    picture = render(scene_of(brick(20, 20, 10)), options)
    single = render(
        scene_of(brick(20, 20, 10)), RenderOptions(size="400x400", view="top", edges="none", marks="10,10,10")
    )
    ink = [(each[..., :3] == MARK_INK).all(axis=2).sum() for each in (picture, single)]
    assert ink[0] > 8.5 * ink[1]


@pytest.mark.parametrize("marks", ["1,2", "1,2,3,4", "a,b,c", "nan,0,0", "1,2,inf", ";".join(["0,0,0"] * 100)])
def test_wrong_marks_are_errors(marks: str) -> None:
    with pytest.raises(InvalidOption, match="marks"):
        parse_marks(marks)
