"""Notes and figures that a running step reports.

Readers, writers and operations call `note` and `did` anywhere below their `run`; the host collects the results of both
in the report. A context variable holds the collector, so plug-ins do not pass it as an argument. Outside of a
conversion, as in the tests of a plug-in, both functions do nothing.
"""

# why this way: docs/decisions/0001-remarks.md
from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeGuard

from msgspec import Struct, field

from meshhub.errors import printable, spell_options

MAX_NOTES_PER_CODE = 10
"""Maximum notes of one code that a step reports; more are only counted, because thousands of similar lines are useless.
"""

_IN_QUOTES = re.compile(r"'(\w+)((?:=[\w-]+)?)'", re.ASCII)
"""Option in the message of a note, with or without a value: 'input_unit', 'input_unit=mm'."""

Figure = bool | int | float | str | list[float | str] | None
"""Value that a step reports under a name."""

NoteValue = int | float | str
"""Number or name in the message of a note."""

MORE = "more"
"""Value of a note that counts further notes of its code: their number."""


class Note(Struct, frozen=True, omit_defaults=True):
    """Remark for the caller in the report."""

    code: str
    """Stable code for programs."""

    message: str
    """One sentence: what was found or changed, and what to do."""

    step: str = ""
    """Id of the step that reported it; "" for the host."""

    options: tuple[str, ...] = ()
    """Names of the options that the message mentions in quotes."""

    values: dict[str, NoteValue] = {}
    """Numbers and names in the message, for sentences in other languages; lengths are in millimeters."""

    def spelled(self, spelling: Callable[[str], str]) -> str:
        """Return the message with the names of options as an interface spells them, without quotes.

        Args:
            spelling: Converts the name of an option, such as "target_height_mm" to "--target-height-mm".
        """
        return spell_message(self.message, self.options, spelling)


def quote_options(message: str, options: tuple[str, ...]) -> str:
    """Return a message of a plug-in, with names of options in braces, as one printable line with them in quotes."""
    return printable(spell_options(message, options, str, mark="'"))


def spell_message(message: str, options: tuple[str, ...], spelling: Callable[[str], str]) -> str:
    """Return a message with the names of options as an interface spells them, without quotes; see `Note.spelled`."""
    names = frozenset(options)
    return _IN_QUOTES.sub(lambda match: spelling(match[1]) + match[2] if match[1] in names else match[0], message)


class Remarks(Struct):
    """Notes and figures of one step."""

    step: str = ""
    """Id of the step."""

    reduction: str | None = None
    """Option that reduces the faces and that the request does not use yet."""

    notes: list[Note] = field(default_factory=list)
    """Notes in the order of their reports, at most MAX_NOTES_PER_CODE of each code."""

    figures: dict[str, Figure] = field(default_factory=dict)
    """Figures by name."""

    messages: dict[str, set[str]] = field(default_factory=dict)
    """Different messages of each code, with those that are only counted."""

    def summarize_omitted(self) -> Iterator[Note]:
        """Yield a note for each code with more than MAX_NOTES_PER_CODE messages, with the number of further ones."""
        for code, messages in self.messages.items():
            if len(messages) > MAX_NOTES_PER_CODE:
                more = len(messages) - MAX_NOTES_PER_CODE
                yield Note(code, f"and {more:,} more of this kind", self.step, values={MORE: more})


_current: ContextVar[Remarks | None] = ContextVar("meshhub_remarks", default=None)


def note(code: str, message: str, *, options: tuple[str, ...] = (), **values: NoteValue) -> None:
    """Add a note to the report of the conversion.

    A message that the step has already reported is left out. After MAX_NOTES_PER_CODE messages of one code, further
    ones are only counted.

    Args:
        code: Stable code for programs, such as "texture_missing".
        message: One sentence: what was found or changed, and what to do. Names of options are in braces, so that each
            interface can use its own spelling: "use {place_on_bed}", "set {input_unit=mm}".
        options: Names of the options that the message mentions.
        values: Numbers and names in the message, for sentences in other languages; every note of a code has the same
            ones. Names are as in the message, lengths in millimeters.
    """
    remarks = _current.get()
    if remarks is None:
        return
    message = quote_options(message, options)
    messages = remarks.messages.setdefault(code, set())
    if message not in messages and len(messages) < MAX_NOTES_PER_CODE:
        texts = {name: printable(value) if isinstance(value, str) else value for name, value in values.items()}
        remarks.notes.append(Note(code, message, remarks.step, options, texts))
    messages.add(message)


def repeat(notes: Iterable[Note]) -> None:
    """Add notes that another collector has received to the report of the conversion."""
    for remark in notes:
        note(remark.code, remark.message, options=remark.options, **remark.values)


def advise_reduction() -> tuple[str, tuple[str, ...]]:
    """Return advice for a model with too many faces, and the options that it mentions, for notes and errors.

    The option is installed, granted by the caller's plan, and not yet used by the request.
    """
    remarks = _current.get()
    return describe_reduction(remarks.reduction if remarks is not None else None)


def describe_reduction(option: str | None) -> tuple[str, tuple[str, ...]]:
    """Return advice for a model with too many faces, and the options that it mentions.

    Args:
        option: Option that reduces the faces; None if there is none to recommend.
    """
    if option is None:
        return "split the model, or simplify it in another program", ()
    return f"reduce the model with {{{option}}}", (option,)


def did(**figures: Figure) -> None:
    """Add figures to the report of the step.

    Args:
        figures: Values by name. A number is added to an earlier number of the same name; other values replace it.
    """
    remarks = _current.get()
    if remarks is None:
        return
    for name, value in figures.items():
        before = remarks.figures.get(name)
        remarks.figures[name] = before + value if _is_number(before) and _is_number(value) else value


def _is_number(value: Figure) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


@contextmanager
def collecting(step: str, reduction: str | None = None) -> Iterator[Remarks]:
    """Collect the notes and figures of the code that runs inside. A nested collector hides the outer one.

    Args:
        step: Id of the step that the notes name.
        reduction: Option that reduces the faces, which the request could still use.
    """
    remarks = Remarks(step, reduction)
    token = _current.set(remarks)
    try:
        yield remarks
    finally:
        _current.reset(token)
        remarks.notes += remarks.summarize_omitted()
