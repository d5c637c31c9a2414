"""Removal of advice that does not help: options that are not installed, flags that are set, and vain remedies."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec import structs

from meshhub.errors import MeshhubError, RequestError
from meshhub.model.chain import Chain
from meshhub.model.notes import Note
from meshhub.model.verdict import Finding


def drop_useless_advice(notes: Iterable[Note], chain: Chain, known: Collection[str]) -> tuple[Note, ...]:
    """Return the notes without advice that names an unknown option, or a flag that is set.

    The advice of a note is its last clause, after a semicolon.

    Args:
        notes: Notes of a finished task.
        chain: Chain of the task.
        known: Names of the options that exist.
    """
    return tuple(_drop_advice(note) if _find_useless(note.options, chain, known) else note for note in notes)


def drop_useless_alternatives(error: MeshhubError, chain: Chain, known: Collection[str]) -> None:
    """Remove the alternatives from the advice of an error that name an unknown option, or a flag that is set.

    The advice is the last clause, after a semicolon; ", or " separates its alternatives.

    Args:
        error: Error of a task.
        chain: Chain of the task.
        known: Names of the options that exist.
    """
    useless = _find_useless(error.options, chain, known)
    finding, separator, advice = error.template.rpartition("; ")
    # the advice of an error about the request names options of the request
    if not useless or not separator or isinstance(error, RequestError):
        return
    kept = [text for text in advice.split(", or ") if not any(f"{{{name}" in text for name in useless)]
    error.template = separator.join([finding, ", or ".join(kept)] if kept else [finding])
    error.options = tuple(name for name in error.options if name not in useless)
    error.message = error.spelled(str)
    error.args = (error.message,)


def drop_remedy(finding: Finding) -> Finding:
    """Return a finding without its remedy and the advice to use it.

    The advice is the last clause, after a semicolon; ", or " separates its alternatives.

    Args:
        finding: Finding of a check, with names of options in quotes.
    """
    text, separator, advice = finding.message.rpartition("; ")
    kept = [part for part in advice.split(", or ") if not _names_only(part, finding)]
    message = separator.join([text, ", or ".join(kept)] if kept else [text]) if separator else finding.message
    options = tuple(name for name in finding.options if f"'{name}" in message)
    return structs.replace(finding, message=message, options=options, remedy={})


def _names_only(advice: str, finding: Finding) -> bool:
    """Return whether advice names options, and all of them are of the remedy."""
    named = {name for name in finding.options if f"'{name}" in advice}
    return bool(named) and named <= finding.remedy.keys()


def _find_useless(options: tuple[str, ...], chain: Chain, known: Collection[str]) -> set[str]:
    set_flags = {name for step in chain.steps for name, value in step.options.items() if value is True}
    return {name for name in options if name in set_flags or name not in known}


def _drop_advice(note: Note) -> Note:
    finding, separator, _ = note.message.rpartition("; ")
    return structs.replace(note, message=finding, options=()) if separator else note
