"""Write a report in the format that its name asks for."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from datetime import date
from pathlib import PurePath

from msgspec import structs

from meshhub.errors import MissingDependency, UnsupportedTarget, describe_missing, quote
from meshhub.model.installing import describe_install
from meshhub.model.sentences import translate_message, translate_note
from meshhub.registry import Registry
from meshhub.reporting.collecting import CheckedModel
from meshhub.reporting.page import render_page
from meshhub.reporting.texts import load_texts


def check_report_name(name: str) -> None:
    """Check that a report of this name can be written.

    Raises:
        UnsupportedTarget: The extension is neither .html nor .pdf.
        MissingDependency: A PDF needs the extra `report`.
    """
    extension = PurePath(name).suffix.lower()
    if extension not in (".html", ".htm", ".pdf"):
        raise UnsupportedTarget(f"reports are HTML or PDF files: name {quote(name)} with .html or .pdf")
    if extension == ".pdf" and importlib.util.find_spec("reportlab") is None:
        remedy = f"install it with `{describe_install('meshhub[report]')}`, or name an .html file and print that"
        raise MissingDependency(describe_missing("a report as PDF", ["reportlab"], remedy))


def render_report(models: Sequence[CheckedModel], name: str, registry: Registry, language: str, day: date) -> bytes:
    """Return a report. Raises as `check_report_name` does.

    Args:
        models: Checked models, at least one.
        name: File name, whose extension chooses HTML or PDF.
        registry: Has the labels of checks.
        language: Language of the texts; messages that no catalog has stay English.
        day: Date of the report.
    """
    check_report_name(name)
    texts, catalog = load_texts(language), registry.texts(language)
    labels = {
        check.capability.id: text.label if (text := catalog.checks.get(check.capability.id)) else check.capability.label
        for check in registry.declarations.checks
    }
    models = [
        structs.replace(
            model,
            verdict=model.verdict
            and model.verdict.translated(
                lambda message: translate_message(message, catalog),
                lambda note: translate_note(note, catalog),
            ),
        )
        for model in models
    ]
    if PurePath(name).suffix.lower() != ".pdf":
        return render_page(models, texts, labels, day)
    # imported here, because HTML needs no extra
    from meshhub.reporting.pdf import render_pdf

    return render_pdf(models, texts, labels, day)
