"""Report as PDF on A4, drawn by ReportLab."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from datetime import date
from xml.sax.saxutils import escape

from reportlab.lib.colors import HexColor, white
from reportlab.lib.enums import TA_RIGHT
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Flowable, Image, KeepTogether, PageBreak, Paragraph, SimpleDocTemplate, Spacer, Table

from meshhub.errors import printable
from meshhub.model.verdict import Severity
from meshhub.reporting.collecting import CheckedModel
from meshhub.reporting.rows import Labels, caption_of, list_figures, list_findings, list_places
from meshhub.reporting.texts import ReportTexts

WIDTH = A4[0] - 28 * mm
"""Width between the margins."""

_INK, _GRAY, _LINE = HexColor("#1d232b"), HexColor("#5b6573"), HexColor("#d5dae1")
_VERDICTS = {
    "ready": HexColor("#1e7a46"),
    "check_this": HexColor("#8a5a00"),
    "incomplete": HexColor("#8a5a00"),
    "will_not_print": HexColor("#b0203a"),
}

_TEXT = ParagraphStyle("text", fontName="Helvetica", fontSize=8.5, leading=11, textColor=_INK)
_RIGHT = ParagraphStyle("right", _TEXT, alignment=TA_RIGHT)
_SMALL = ParagraphStyle("small", _TEXT, fontSize=7.5, leading=10, textColor=_GRAY)
_SMALL_RIGHT = ParagraphStyle("small-right", _SMALL, alignment=TA_RIGHT)
_STRONG = ParagraphStyle("strong", _TEXT, fontName="Helvetica-Bold")
_VERDICT = ParagraphStyle("verdict", _STRONG, fontSize=11, leading=14, textColor=white)
_SEVERITIES: dict[Severity, ParagraphStyle] = {
    "error": ParagraphStyle("error", _STRONG, textColor=HexColor("#b0203a")),
    "warning": ParagraphStyle("warning", _STRONG, textColor=HexColor("#8a5a00")),
    "info": ParagraphStyle("info", _STRONG, textColor=HexColor("#1c3f66")),
}
_NAME = ParagraphStyle("name", _STRONG, fontSize=16, leading=19)
_HEADING = ParagraphStyle("heading", _STRONG, fontSize=11, leading=14, spaceBefore=4 * mm, spaceAfter=1 * mm)
_COMMAND = ParagraphStyle(
    "command", _TEXT, fontName="Courier", fontSize=8, backColor=HexColor("#f1f3f6"), borderPadding=(3, 4, 3, 4),
    spaceBefore=5, spaceAfter=5,
)  # fmt: skip


def render_pdf(models: Sequence[CheckedModel], texts: ReportTexts, labels: Labels, day: date) -> bytes:
    """Return the report as PDF. Takes the arguments of `page.render_page`.

    The fonts of PDF have Western European letters; others become question marks.
    """
    stream = io.BytesIO()
    title = f"{texts.title}: {models[0].name}" if len(models) == 1 else texts.title
    document = SimpleDocTemplate(
        stream, pagesize=A4, leftMargin=14 * mm - 6, rightMargin=14 * mm - 6, topMargin=12 * mm, bottomMargin=14 * mm,
        title=_spell(title), lang=texts.language, creator="meshhub", invariant=1,
    )  # fmt: skip
    # the frame of a page has a padding of 6 points
    story: list[Flowable] = []
    for model in models:
        story += [PageBreak()] if story else []
        story += _describe_model(model, texts, labels, day)

    def number_page(canvas: Canvas, _: object) -> None:
        canvas.setFont("Helvetica", 7.5)
        canvas.setFillColor(_GRAY)
        canvas.drawRightString(A4[0] - 14 * mm, 8 * mm, str(canvas.getPageNumber()))

    document.build(story, onFirstPage=number_page, onLaterPages=number_page)
    return stream.getvalue()


def _describe_model(model: CheckedModel, texts: ReportTexts, labels: Labels, day: date) -> list[Flowable]:
    word = "will_not_print" if model.verdict is None else model.verdict.verdict
    verdict = texts.unreadable if model.verdict is None else texts.verdicts[model.verdict.verdict]
    created = f"{texts.title}, {texts.created} {day.isoformat()}"
    badge = Table([[_write(verdict, _VERDICT)]], colWidths=[58 * mm])
    badge.setStyle([("BACKGROUND", (0, 0), (-1, -1), _VERDICTS[word]), ("ROUNDEDCORNERS", [5, 5, 5, 5])])
    head = Table([[[_write(model.name, _NAME), _write(created, _SMALL)], badge]], colWidths=[WIDTH - 60 * mm, 60 * mm])
    head.setStyle(
        [("VALIGN", (0, 0), (-1, -1), "MIDDLE"), ("LEFTPADDING", (0, 0), (-1, -1), 0),
         ("RIGHTPADDING", (0, 0), (-1, -1), 0), ("LINEBELOW", (0, 0), (-1, -1), 1.2, _INK)]
    )  # fmt: skip
    story: list[Flowable] = [head, Spacer(0, 2 * mm)]
    if model.error:
        story.append(_write(model.error, _TEXT))
    if model.verdict is None:
        return story
    figures = list_figures(model, texts)
    table = Table(
        [[[_write(name, _SMALL), _write(value, _STRONG)] for name, value in figures]],
        colWidths=[WIDTH * share for share in (0.26, 0.17, 0.13, 0.13, 0.1, 0.1, 0.11)],
    )
    table.setStyle([("LEFTPADDING", (0, 0), (-1, -1), 0), ("VALIGN", (0, 0), (-1, -1), "TOP")])
    story += [table, Spacer(0, 1 * mm), *_show_pictures(model, texts, labels), *_list_findings(model, texts, labels)]
    if model.fix:
        command = _write(model.fix, _COMMAND)
        story.append(KeepTogether([_write(texts.remedies, _HEADING), command, _write(texts.remedy_advice, _SMALL)]))
    places = list_places(model, texts, labels)
    if places:
        heads = (texts.numbered, texts.check, "X, mm", "Y, mm", "Z, mm", texts.value, texts.part)
        story.append(_write(texts.places, _HEADING))
        cells = [
            [_write(value, _RIGHT if column >= 2 else _TEXT) for column, value in enumerate(row)] for row in places
        ]
        story.append(_make_table(heads, cells, (0.08, 0.26, 0.14, 0.14, 0.14, 0.14, 0.1), right_from=2))
    if model.verdict.notes:
        story.append(_write(texts.notes, _HEADING))
        story += [_write(note.message, _TEXT) for note in model.verdict.notes]
    checks = ", ".join(labels.get(step.step, step.step) for step in model.verdict.checks)
    return [*story, Spacer(0, 2 * mm), _write(f"{texts.checks}: {checks}.", _SMALL)]


def _show_pictures(model: CheckedModel, texts: ReportTexts, labels: Labels) -> list[Flowable]:
    width = WIDTH / 2 - 2 * mm
    cells = [
        [
            Image(io.BytesIO(picture.png), width, width * 3 / 4),
            _write(caption_of(picture, texts, labels), _SMALL),
        ]
        for picture in model.pictures
    ]
    table = Table([cells[:2], cells[2:]], colWidths=[WIDTH / 2] * 2)
    table.setStyle(
        [("BOX", (column, row), (column, row), 0.5, _LINE) for column in (0, 1) for row in (0, 1)]
        + [(f"{side}PADDING", (0, 0), (-1, -1), 1 * mm) for side in ("LEFT", "RIGHT", "TOP", "BOTTOM")]
    )
    advice = [_write(texts.numbers, _SMALL)] if list_places(model, texts, {}) else []
    return [table, Spacer(0, 1 * mm), *advice]


def _list_findings(model: CheckedModel, texts: ReportTexts, labels: Labels) -> list[Flowable]:
    rows = list_findings(model, texts, labels)
    heading = _write(texts.findings, _HEADING)
    if not rows:
        return [heading, _write(texts.no_findings, _TEXT)]
    head = (texts.severity, texts.check, texts.finding, texts.worst, texts.limit, texts.places)
    cells = [
        (
            _write(texts.severities[row.severity], _SEVERITIES[row.severity]),
            *(_write(value, _TEXT) for value in (row.check, row.message, row.worst, row.limit, row.numbers)),
        )
        for row in rows
    ]
    return [heading, _make_table(head, cells, (0.1, 0.12, 0.43, 0.12, 0.1, 0.13))]


def _make_table(
    head: Sequence[str], rows: Iterable[Sequence[Paragraph]], shares: Sequence[float], right_from: int = 99
) -> Table:
    """Return a table whose head repeats on each page; `right_from` is the first head that is aligned to the right."""
    names = [_write(name, _SMALL_RIGHT if column >= right_from else _SMALL) for column, name in enumerate(head)]
    table = Table([names, *map(list, rows)], colWidths=[WIDTH * share for share in shares], repeatRows=1)
    table.setStyle(
        [("VALIGN", (0, 0), (-1, -1), "TOP"), ("LEFTPADDING", (0, 0), (-1, -1), 0),
         ("LINEBELOW", (0, 0), (-1, -1), 0.4, _LINE), ("TOPPADDING", (0, 0), (-1, -1), 2),
         ("BOTTOMPADDING", (0, 0), (-1, -1), 3)]
    )  # fmt: skip
    return table


def _write(text: str, style: ParagraphStyle) -> Paragraph:
    """Return a paragraph of plain text, in which nothing is markup."""
    return Paragraph(_escape(text), style)


def _escape(text: str) -> str:
    return escape(_spell(text))


def _spell(text: str) -> str:
    """Return a text in the letters that the fonts of PDF have."""
    return printable(text).encode("cp1252", "replace").decode("cp1252")
