"""Verdict of a check: will the model print, what is wrong with it, where, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from msgspec import Struct, structs

from meshhub.model.estimate import Estimate
from meshhub.model.html import format_table, list_rows
from meshhub.model.notes import Note, spell_message
from meshhub.model.options import Value
from meshhub.model.report import FileReport, Inspection, Report, StepReport

Severity: TypeAlias = Literal["error", "warning", "info"]
"""How bad a finding is: the print fails, the print may fail or look bad, or a fact that a person decides about."""

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
"""Every severity, the worst first."""

VerdictWord: TypeAlias = Literal["ready", "check_this", "incomplete", "will_not_print"]
"""Verdict in a word: only facts, warnings, a check that did not run, or errors."""

CHECK_FAILED = "check_failed"
"""Code of the finding that a check did not run."""

MAX_PLACES = 50
"""Maximum places that a finding lists; it counts all."""


class Place(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Place of a finding."""

    position_mm: tuple[float, float, float]
    """A point of the place: on the surface, or in the middle of a region."""

    size_mm: float = 0.0
    """Diagonal of the bounding box."""

    part: int | None = None
    """Index of the part; None if the place belongs to several parts."""

    amount: float | None = None
    """Value at the place, in the unit of its finding."""


class Finding(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Result of a check that a person should know. Lengths are in millimeters, Z up."""

    code: str
    """Stable code for programs, such as "thin_walls"."""

    severity: Severity
    """How bad it is."""

    message: str
    """One sentence: what was found, how much, and why it matters. A check writes names of options in braces."""

    options: tuple[str, ...] = ()
    """Names of the options that the message mentions."""

    amount: float | None = None
    """The worst value, such as the thickness of the thinnest wall."""

    limit: float | None = None
    """Value from which there would be no finding."""

    unit: str = ""
    """Unit of the amounts and of the limit, such as "mm" or "mm²"; "" for a count."""

    share: float | None = None
    """Share of the surface, or of another whole that the message names, from 0 to 1."""

    places: tuple[Place, ...] = ()
    """The worst places, at most `MAX_PLACES`."""

    places_found: int = 0
    """Number of places."""

    remedy: dict[str, Value] = {}
    """Options of a conversion that fixes it; empty if there are none. The host tries them, and drops those that do not
    help."""

    picture: dict[str, Value] = {}
    """Options of a picture that shows it; empty if none does."""

    check: str = ""
    """Id of the check; the host sets it."""

    def spelled(self, spelling: Callable[[str], str]) -> str:
        """Return the message with the names of options as an interface spells them; see `Note.spelled`."""
        return spell_message(self.message, self.options, spelling)


class Verdict(Struct, frozen=True, kw_only=True):
    """Result of `Registry.check`, `meshhub check` and `/check`."""

    verdict: VerdictWord
    """Verdict in a word; never `ready` if a check could not run."""

    source: FileReport
    """Input file, or the model after the operations that were requested."""

    findings: tuple[Finding, ...]
    """Findings, the worst first."""

    checks: tuple[StepReport, ...]
    """Checks that ran, with their figures."""

    estimate: Estimate | None = None
    """Estimate of the print; None if no check made one."""

    notes: tuple[Note, ...] = ()
    """Notes of the reader and of operations."""

    def worse_than(self, severity: Severity) -> bool:
        """Return whether a finding is as bad as a severity, or worse."""
        rank = SEVERITIES.index(severity)
        return any(SEVERITIES.index(finding.severity) <= rank for finding in self.findings)

    def translated(self, translate: Callable[[str], str], translate_note: Callable[[Note], Note]) -> Verdict:
        """Return the verdict with the messages of findings and notes in another language.

        Args:
            translate: Returns a message in that language.
            translate_note: Returns a note in that language.
        """
        findings = (structs.replace(finding, message=translate(finding.message)) for finding in self.findings)
        return structs.replace(self, findings=tuple(findings), notes=tuple(map(translate_note, self.notes)))

    def _repr_html_(self) -> str:
        """Describe the verdict for notebooks."""
        return format_table(
            f"Check of {self.source.format}: {self.verdict}",
            [
                *((finding.severity, f"{finding.message} [{finding.code}]") for finding in self.findings),
                *list_rows("note", [f"{note.message} [{note.code}]" for note in self.notes]),
            ],
        )


Result: TypeAlias = Report | Inspection | Verdict
"""Result of a task, according to the ending of its chain."""


def judge(findings: tuple[Finding, ...]) -> VerdictWord:
    """Return the verdict on findings."""
    severities = {finding.severity for finding in findings}
    if "error" in severities:
        return "will_not_print"
    if any(finding.code == CHECK_FAILED for finding in findings):
        return "incomplete"
    return "check_this" if "warning" in severities else "ready"
