"""Advice of notes that the caller cannot follow: options that are not installed, or flags that the request has set."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec import structs

from meshhub.model.chain import Chain
from meshhub.model.notes import Note


def drop_useless_advice(notes: Iterable[Note], chain: Chain, known: Collection[str]) -> tuple[Note, ...]:
    """Return the notes without advice that names an unknown option, or a flag that is set.

    The advice of a note is its last clause, after a semicolon.

    Args:
        notes: Notes of a finished task.
        chain: Chain of the task.
        known: Names of the options that exist.
    """
    set_flags = {name for step in chain.steps for name, value in step.options.items() if value is True}
    return tuple(
        _drop_advice(note) if any(name in set_flags or name not in known for name in note.options) else note
        for note in notes
    )


def _drop_advice(note: Note) -> Note:
    finding, separator, _ = note.message.rpartition("; ")
    return structs.replace(note, message=finding, options=()) if separator else note
