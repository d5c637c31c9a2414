"""What a conversion request asks for, and the files it asks it for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from meshhub.errors import InvalidOption, MeshhubError, quote
from meshhub.http.errors import ServiceError
from meshhub.http.intake.uploads import MAIN_FIELDS, Form, MainField, wrong_field
from meshhub.model.chain import Request
from meshhub.model.options import FALSE, TRUE
from meshhub.model.plans import Caller
from meshhub.model.report import Report
from meshhub.model.source import Source, Target
from meshhub.pipeline.resolve import check_request
from meshhub.registry import Registry

_WHERE = {"file": "/convert or /inspect", "files": "/convert-many", "archive": "/convert-batch"}


@dataclass(frozen=True)
class Order:
    """A target format (None: only look), options as text, and what was said about `report.json`."""

    request: Request
    caller: Caller
    report: str = ""


@dataclass(frozen=True)
class Item:
    """One file of a batch.

    name:         how the caller knows it
    folder, stem: where its result goes in the ZIP
    refused:      why it is not even tried
    """

    name: str
    folder: str
    stem: str
    path: Path
    companions: Mapping[str, Path] = field(default_factory=dict)
    refused: MeshhubError | None = None

    def source(self) -> Source:
        """What the reader gets."""
        return Source(self.name, path=self.path, companions=self.companions)


@dataclass(frozen=True)
class Outcome:
    """What became of one file: a report and the target, or an error."""

    item: Item
    report: Report | None = None
    target: Target | None = None
    error_code: str = ""
    error: str = ""

    def failure(self) -> dict[str, str]:
        """The row of `errors.json`."""
        return {"file": self.item.name, "error": self.error, "error_code": self.error_code}


def order_from(form: Form, main: MainField, caller: Caller, *, converts: bool) -> Order:
    """The order of a form. Raises ServiceError for missing fields."""
    texts = dict(form.texts)
    if not form.files and form.stray_files:
        raise wrong_field(form.stray_files[0], main)
    if not form.files:
        strays = [name for name in MAIN_FIELDS if name in texts]
        hint = f"; {strays[0]!r} belongs to {_WHERE[strays[0]]}" if strays else f" (curl -F {main}=@model.stl)"
        raise ServiceError(f"the field {main!r} with the file is missing{hint}", code="missing_field")
    target = None
    report = ""
    if converts:
        target = texts.pop("target", "").strip()
        if not target:
            raise ServiceError(
                "the field 'target' is missing: say the format to convert to (target=3mf)", code="missing_field"
            )
        report = texts.pop("report", "")
    return Order(Request(target=target, options=texts), caller, report)


def check(registry: Registry, order: Order) -> bool:
    """Check the target, the entitlements and the options of a request, which do not depend on its files.

    Return whether `report.json` is requested. Raises what `check_request` raises. Calls no hook: this runs on the
    event loop, and the caller's entitlements are complete already.
    """
    check_request(registry.declarations, order.request, order.caller)
    return _flag("report", order.report)


def _flag(name: str, text: str) -> bool:
    word = text.strip().lower()
    if word in TRUE:
        return True
    if not word or word in FALSE:
        return False
    raise InvalidOption(f"option {name!r} must be true, 1, yes or on, or their opposites, got {quote(text)}")
