"""Report as one HTML page without external resources, which prints on A4."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterable, Sequence
from datetime import date
from importlib.resources import files

from meshhub.errors import printable
from meshhub.model.verdict import VerdictWord
from meshhub.reporting.collecting import CheckedModel
from meshhub.reporting.rows import Labels, caption_of, list_figures, list_findings, list_places
from meshhub.reporting.texts import ReportTexts

_FLAG, _MARKED_FLAG = re.compile(r"--[a-z0-9-]+", re.ASCII), r"<code>\g<0></code>"
"""Flags in messages, at whose hyphens no line may end."""

SYMBOLS: dict[VerdictWord | str, str] = {"ready": "✓", "check_this": "!", "incomplete": "?", "will_not_print": "✕"}
"""Signs of verdicts, for people who do not distinguish their colors."""


def render_page(models: Sequence[CheckedModel], texts: ReportTexts, labels: Labels, day: date) -> bytes:
    """Return the report as HTML in UTF-8. Every text is escaped, because names come from untrusted files.

    Args:
        models: Checked models, each with its pictures.
        texts: Headings in the language of the report.
        labels: Labels of checks by id.
        day: Date of the report.
    """
    style = (files("meshhub.reporting") / "page.css").read_text(encoding="utf-8")
    title = f"{texts.title}: {models[0].name}" if len(models) == 1 else texts.title
    body = "\n".join(_describe_model(model, texts, labels, day) for model in models)
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    return (
        f'<!DOCTYPE html>\n<html lang="{_escape(texts.language)}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    ).encode()


def _describe_model(model: CheckedModel, texts: ReportTexts, labels: Labels, day: date) -> str:
    word = "will_not_print" if model.verdict is None else model.verdict.verdict
    verdict = texts.unreadable if model.verdict is None else texts.verdicts[model.verdict.verdict]
    created = f"{texts.title}, {texts.created} {day.isoformat()}"
    parts = [
        f'<section>\n<header><div><h1>{_escape(model.name)}</h1><p class="created">{_escape(created)}</p></div>'
        f'<p class="verdict {word}"><span>{SYMBOLS[word]}</span> {_escape(verdict)}</p></header>'
    ]
    if model.error:
        parts.append(f'<p class="failure">{_escape(model.error)}</p>')
    figures = list_figures(model, texts)
    if figures:
        cells = "".join(f"<div><dt>{_escape(name)}</dt><dd>{_escape(value)}</dd></div>" for name, value in figures)
        parts.append(f'<dl class="figures">{cells}</dl>')
    parts += [_show_pictures(model, texts, labels), _list_findings(model, texts, labels), _show_fix(model, texts)]
    parts += [_list_places(model, texts, labels), _list_remarks(model, texts, labels)]
    return "\n".join(part for part in parts if part) + "\n</section>"


def _show_pictures(model: CheckedModel, texts: ReportTexts, labels: Labels) -> str:
    figures = []
    for picture in model.pictures:
        caption = _escape(caption_of(picture, texts, labels))
        data = base64.b64encode(picture.png).decode("ascii")
        image = f'<img src="data:image/png;base64,{data}" alt="{caption}">'
        figures.append(f"<figure>{image}<figcaption>{caption}</figcaption></figure>")
    if not figures:
        return ""
    advice = f'<p class="advice">{_escape(texts.numbers)}</p>' if list_places(model, texts, {}) else ""
    return f'<div class="pictures">{"".join(figures)}</div>{advice}'


def _list_findings(model: CheckedModel, texts: ReportTexts, labels: Labels) -> str:
    if model.verdict is None:
        return ""
    rows = [
        f'<tr class="{row.severity}"><td class="severity"><span>{_escape(texts.severities[row.severity])}</span></td>'
        f"<td>{_escape(row.check)}</td><td>{_FLAG.sub(_MARKED_FLAG, _escape(row.message))}</td>"
        + _make_cells((row.worst, row.limit, row.numbers))
        for row in list_findings(model, texts, labels)
    ]
    if not rows:
        return f'<h2>{_escape(texts.findings)}</h2><p class="none">{_escape(texts.no_findings)}</p>'
    head = (texts.severity, texts.check, texts.finding, texts.worst, texts.limit, texts.places)
    return _make_table("findings", texts.findings, head, rows)


def _show_fix(model: CheckedModel, texts: ReportTexts) -> str:
    if not model.fix:
        return ""
    command = f"<pre>{_FLAG.sub(_MARKED_FLAG, _escape(model.fix))}</pre>"
    return f'<h2>{_escape(texts.remedies)}</h2>{command}<p class="advice">{_escape(texts.remedy_advice)}</p>'


def _list_places(model: CheckedModel, texts: ReportTexts, labels: Labels) -> str:
    rows = [f"<tr>{_make_cells(row)}" for row in list_places(model, texts, labels)]
    if not rows:
        return ""
    head = (texts.numbered, texts.check, "X, mm", "Y, mm", "Z, mm", texts.value, texts.part)
    return _make_table("places", texts.places, head, rows)


def _list_remarks(model: CheckedModel, texts: ReportTexts, labels: Labels) -> str:
    if model.verdict is None:
        return ""
    notes = "".join(f"<li>{_escape(note.message)}</li>" for note in model.verdict.notes)
    result = f"<h2>{_escape(texts.notes)}</h2><ul>{notes}</ul>" if notes else ""
    checks = ", ".join(labels.get(step.step, step.step) for step in model.verdict.checks)
    return f'{result}<p class="advice">{_escape(texts.checks)}: {_escape(checks)}.</p>'


def _make_table(kind: str, title: str, head: Iterable[str], rows: Iterable[str]) -> str:
    cells = "".join(f"<th>{_escape(name)}</th>" for name in head)
    body = "".join(f"{row}</tr>" for row in rows)
    return (
        f'<h2>{_escape(title)}</h2><table class="{kind}"><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>'
    )


def _make_cells(values: Iterable[str]) -> str:
    return "".join(f"<td>{_escape(value)}</td>" for value in values)


def _escape(text: str) -> str:
    return html.escape(printable(text))
