"""Identify a file: choose its reader by an explicit option, by content, or by extension."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import NamedTuple

from meshhub.errors import OTHER_KIND, EmptyModel, InvalidOption, UnreadableFile, UnsupportedFormat, quote
from meshhub.model.capabilities import Magic, Reader, checked_score
from meshhub.model.notes import Note
from meshhub.model.options import Value
from meshhub.model.source import Source
from meshhub.pipeline.declarations import Declarations, Declared, load
from meshhub.pipeline.entitlement import choose_installed
from meshhub.pipeline.foreign_files import name_foreign_file
from meshhub.pipeline.further_formats import DISTRIBUTIONS
from meshhub.pipeline.plugin_errors import InvalidDeclaration, show_value
from meshhub.pipeline.program_scenes import SCENE_READER, SceneSource
from meshhub.pipeline.questions import Question, Reply, answer

log = logging.getLogger(__name__)

MIN_CONTENT_SCORE = 50
"""Score from which content takes precedence over the extension; weaker scores count only without a known extension."""

MAX_NAME_LENGTH = 80
"""Maximum characters of a file name that a message shows, counted from its end."""


class SniffFailure(NamedTuple):
    """Failure of a sniffer, as the predicate of a sentence about it: "raised KeyError"."""

    summary: str
    """Predicate without the text of an exception, which may contain paths and secrets."""

    details: str
    """Predicate with the text and the line of an exception."""


Sniff = Callable[[Sequence[Declared[Reader]], bytes, int], list[int | SniffFailure]]
"""Calls the sniffers of readers with the head and the size of a file; returns a score or failure for each."""


class NamedSource(Source):
    """Source whose content has not been sent, for explanations; only its name identifies it."""

    def __init__(self, name: str) -> None:
        """Create a source without content."""
        super().__init__(name, data=b"")


class Identification(NamedTuple):
    """The reader for a file, the reason, and notes about the choice."""

    reader: Declared[Reader]
    because: str
    notes: tuple[Note, ...] = ()


class _Match(NamedTuple):
    score: int
    because: str
    reader: Declared[Reader]

    @property
    def format_id(self) -> str:
        return self.reader.capability.format.id


def sniff_here(readers: Sequence[Declared[Reader]], head: bytes, size: int) -> list[int | SniffFailure]:
    """Call sniffers in this process."""
    return [take_score(reader, answer(ask_score(reader, head, size))) for reader in readers]


def ask_score(reader: Declared[Reader], head: bytes, size: int, timeout_s: float | None = None) -> Question:
    """Return the question for the score of a reader."""
    return Question("meshhub.pipeline.identify:score_of", reader.capability.sniff or "", (head, size), timeout_s)


def take_score(reader: Declared[Reader], reply: Reply) -> int | SniffFailure:
    """Return the score that a sniffer returned, or how it failed."""
    if not reply.error:
        score: int = reply.result
        return score
    traceback = f"\n{reply.traceback.rstrip()}" if reply.traceback and log.isEnabledFor(logging.DEBUG) else ""
    log.warning("the sniffer of plug-in %r (%s) %s%s", reader.plugin, reader.origin, reply.error, traceback)
    return SniffFailure(reply.summary, reply.error)


def score_of(sniffer: str, head: bytes, size: int) -> int:
    """Call a sniffer.

    Args:
        sniffer: Reference of the form "package.module:function".
        head: First bytes of the file.
        size: Bytes of the whole file.
    Returns:
        Score from 0 to 100.
    Raises:
        InvalidDeclaration: The score is not a whole number in this range.
        Exception: The sniffer raised it.
    """
    score = load(sniffer)(head, size)
    try:
        return checked_score(score)
    except Exception:
        raise InvalidDeclaration(f"returned {show_value(score)}; a score is a whole number from 0 to 100") from None


def identify(
    declarations: Declarations, source: Source, input_format: Value = None, sniff: Sniff = sniff_here
) -> Identification:
    """Choose the reader of a file: by `input_format`, otherwise by content, by extension, or by weaker content, in this
    order.

    Args:
        declarations: Registered readers.
        source: File to identify; only its head is read.
        input_format: Explicit format id or extension.
        sniff: Calls the sniffers.
    Raises:
        InvalidOption: `input_format` does not name a readable format.
        EmptyModel: The file has no bytes.
        UnsupportedFormat: Neither content nor extension names a readable format.
        UnreadableFile: The extension names a readable format, but the content is of another well-known kind.
        MissingDependency: The reader needs a package that is not installed.
    """
    if isinstance(source, SceneSource):
        return Identification(SCENE_READER, "scene of the program")
    if input_format is not None:
        return Identification(choose_installed(readers_named(declarations, input_format)), "option input_format")

    size = source.size
    name = repr(source.name[-MAX_NAME_LENGTH:])
    has_content = not isinstance(source, NamedSource)
    if size == 0 and has_content:
        raise EmptyModel(f"{name} is empty: it holds 0 bytes; export the model again")
    extension, by_extension = _match_extension(declarations.readers, source)
    head = source.head()
    matches, notes = _match_content(declarations.readers if has_content else (), head, size, sniff)
    best = max((match.score for match in matches), default=0)
    if best >= MIN_CONTENT_SCORE or (best > 0 and not by_extension):
        return _choose_by_content([match for match in matches if match.score == best], by_extension, extension, notes)
    # a reader without signature and sniffer cannot distinguish its files from others
    can_tell = all(reader.capability.format.magic or reader.capability.sniff for reader in by_extension)
    foreign = name_foreign_file(head) if has_content and best == 0 and can_tell else ""
    distribution = None if by_extension else DISTRIBUTIONS.get(PurePath(source.name).suffix.lower())
    if foreign and distribution is None:
        kind = UnreadableFile if by_extension else UnsupportedFormat
        values = OTHER_KIND if by_extension else {"name": source.name[-MAX_NAME_LENGTH:]}
        raise kind(f"{name} is {foreign}; formats that can be read: {declarations.list_readable()}", values=values)
    if by_extension:
        return Identification(choose_installed(by_extension), f"extension {extension}", notes)
    hint = "".join(f"; {note.message}" for note in notes)
    if distribution is not None:
        raise UnsupportedFormat(
            f"{name} needs a distribution that is not installed; in a clone: pip install ./plugins/{distribution}",
            values={"name": source.name[-MAX_NAME_LENGTH:], "distribution": distribution},
        )
    raise UnsupportedFormat(
        f"{name}: neither content nor extension names a format that can be read ({declarations.list_readable()}){hint}",
        values={"name": source.name[-MAX_NAME_LENGTH:]},
    )


def readers_named(declarations: Declarations, input_format: Value) -> list[Declared[Reader]]:
    """Return the readers of the format that the option `input_format` names. Raises InvalidOption."""
    readers = declarations.readers_of(declarations.format_of(str(input_format)))
    if not readers:
        raise InvalidOption(
            f"option '{{input_format}}' must be one of {declarations.list_readable()}, got {quote(str(input_format))}",
            options=("input_format",),
        )
    return readers


def _choose_by_content(
    matches: list[_Match], by_extension: list[Declared[Reader]], extension: str, notes: tuple[Note, ...]
) -> Identification:
    """Choose among the best matches; those that agree with the extension come first."""
    expected = {reader.capability.format.id for reader in by_extension}
    matches = [match for match in matches if match.format_id in expected] or matches
    first = matches[0]
    if by_extension and first.format_id not in expected:
        label = first.reader.capability.format.label
        notes += (
            Note(
                "content_beats_name",
                f"the extension is {extension}, the content is {label}: read as {label}",
                values={"extension": extension, "format": label},
            ),
        )
    same_format = [match.reader for match in matches if match.format_id == first.format_id]
    return Identification(choose_installed(same_format), first.because, notes)


def _match_extension(readers: Sequence[Declared[Reader]], source: Source) -> tuple[str, list[Declared[Reader]]]:
    """Return the longest extension of a file that a format declares, such as ".gcode.3mf", and its readers.

    Only the last part of the name counts if no format declares a longer extension.
    """
    name = source.name.lower()
    declared = {extension for reader in readers for extension in reader.capability.format.extensions}
    longer = [each for each in declared if each.count(".") > 1 and name.endswith(each)]
    extension = max(longer, key=len, default=source.extension)
    return extension, [reader for reader in readers if extension in reader.capability.format.extensions]


def _match_content(
    readers: Sequence[Declared[Reader]], head: bytes, size: int, sniff: Sniff
) -> tuple[list[_Match], tuple[Note, ...]]:
    """Return how well the content matches each reader, and a note for each sniffer that failed."""
    with_sniffer = []
    matches: dict[int, _Match] = {}
    for number, reader in enumerate(readers):
        magic = next((magic for magic in reader.capability.format.magic if _has_magic(magic, head)), None)
        if magic is not None:
            matches[number] = _Match(100, f"magic {magic.data!r} at byte {magic.offset}", reader)
        elif reader.capability.sniff is not None:
            with_sniffer.append(number)
    scores = sniff([readers[number] for number in with_sniffer], head, size) if with_sniffer else []
    notes = []
    for number, score in zip(with_sniffer, scores, strict=True):
        reader = readers[number]
        label = reader.capability.format.label
        if isinstance(score, SniffFailure):
            # a sniffer that fails must not hide the file from the other readers
            sniffer = f"the sniffer of plug-in {reader.plugin!r} ({reader.origin})"
            message = f"could not check whether the content is {label}: {sniffer} {score.details}"
            notes.append(Note("sniffer_failed", message, values={"plugin": quote(reader.plugin), "format": label}))
        else:
            matches[number] = _Match(score, f"content looks like {label} ({score} of 100)", reader)
    return [matches[number] for number in sorted(matches)], tuple(notes)


def _has_magic(magic: Magic, head: bytes) -> bool:
    return head[magic.offset : magic.offset + len(magic.data)] == magic.data
