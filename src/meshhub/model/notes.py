"""How a running step tells what it saw and did: `note` for people, `did` for figures.

Readers, writers and operations call these anywhere below their `run`; the host collects them into
the report. A context variable carries the collector, so that no plug-in has to pass one along, and
a step called outside a conversion (in a plug-in's own tests, say) simply tells nobody.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from msgspec import Struct, field

from meshhub.errors import printable

ALIKE = 10
"""So many notes of one code are told a step; the rest are counted."""

Figure = bool | int | float | str | list[float | str] | None


class Note(Struct, frozen=True, omit_defaults=True):
    """One remark for the person who asked: a stable code, a sentence that says what to do."""

    code: str
    message: str
    step: str = ""


class Remarks(Struct):
    """What one step said while it ran."""

    step: str = ""
    notes: list[Note] = field(default_factory=list)
    figures: dict[str, Figure] = field(default_factory=dict)
    told: dict[str, set[str]] = field(default_factory=dict)

    def counted(self) -> Iterator[Note]:
        """A note for each code that had more to say than was told."""
        for code, messages in self.told.items():
            if len(messages) > ALIKE:
                yield Note(code, f"and {len(messages) - ALIKE:,} more of this kind", self.step)


_current: ContextVar[Remarks | None] = ContextVar("meshhub_remarks", default=None)


def note(code: str, message: str) -> None:
    """Tell the person who asked something; the same code and message are told once a step, and few of one code."""
    remarks = _current.get()
    if remarks is not None:
        message = printable(message)
        told = remarks.told.setdefault(code, set())
        if message not in told and len(told) < ALIKE:
            remarks.notes.append(Note(code, message, remarks.step))
        told.add(message)


def did(**figures: Figure) -> None:
    """Report what this step did; numbers told twice under one name are added up."""
    remarks = _current.get()
    if remarks is None:
        return
    for name, value in figures.items():
        before = remarks.figures.get(name)
        countable = isinstance(value, int | float) and not isinstance(value, bool)
        if countable and isinstance(before, int | float) and not isinstance(before, bool):
            assert isinstance(value, int | float)
            remarks.figures[name] = before + value
        else:
            remarks.figures[name] = value


@contextmanager
def collecting(step: str) -> Iterator[Remarks]:
    """Collect what is said by the code run inside; nests, the innermost hears it."""
    remarks = Remarks(step)
    token = _current.set(remarks)
    try:
        yield remarks
    finally:
        _current.reset(token)
        remarks.notes += remarks.counted()
