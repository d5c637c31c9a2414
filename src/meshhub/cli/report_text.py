"""Text about reports, chains and CAD features, for people."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from meshhub.cli.locale import language
from meshhub.cli.terminal import USUAL_NOTES
from meshhub.cli.texts import count, labeled, localize, show_number, tr
from meshhub.errors import format_number
from meshhub.model.capabilities import Feature, Operation, Writer
from meshhub.model.chain import Chain
from meshhub.model.features import FeatureTable, Hole
from meshhub.model.notes import Figure, Note
from meshhub.model.options import flag_of
from meshhub.model.report import Loss, Report
from meshhub.model.sentences import translate_message, translate_note
from meshhub.registry import Registry

_UNIT_SUFFIXES = {"_mm3": "mm³", "_mm2": "mm²", "_mm": "mm"}

_PLACEHOLDER = re.compile(r"\{(\w*)\}")
"""Figure in a sentence; see `Operation.figures`."""

FEATURES: dict[Feature, str] = {
    "names": "names",
    "hierarchy": "groups",
    "instances": "instances",
    "normals": "normals",
    "uv": "texture coordinates",
    "colors": "colors",
    "materials": "materials",
    "textures": "textures",
    "metadata": "descriptions",
    "units": "unit",
}
"""Words for features."""

MAX_LISTED_RADII = 12
"""Maximum number of radii in one line; --json lists all."""


def translate(message: str, registry: Registry) -> str:
    """Return a message in the language of the locale; unchanged if a part of it has no translation."""
    return translate_message(message, registry.texts(language()))


def translate_notes(notes: Iterable[Note], registry: Registry) -> list[Note]:
    """Return notes in the language of the locale; those without a translation are unchanged."""
    texts = registry.texts(language())
    return [translate_note(note, texts) for note in notes]


def format_bytes(count: int) -> str:
    """Format a number of bytes with a decimal unit."""
    value = float(count)
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return localize(f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}")
        value /= 1000
    return localize(f"{value:.1f} GB")


def format_size(extent: tuple[float, float, float] | None) -> str:
    """Format a size in millimeters along X, Y and Z."""
    return "" if extent is None else " × ".join(show_number(side, 4) for side in extent) + " mm"


def summarize(report: Report) -> str:
    """Summarize a conversion in one line: size, faces and bytes before and after, and the duration."""
    before, after = report.source, report.target
    sizes, faces = (before.size_mm, after.size_mm), (before.faces, after.faces)
    fields = (
        _change(*map(format_size, sizes)),
        _change(show_number(faces[0]), count(faces[1], "face", "faces")),
        _change(format_bytes(before.bytes), format_bytes(after.bytes)),
        localize(f"{report.seconds:.2f} s"),
    )
    return ", ".join(filter(None, fields))


def _change(before: str, after: str) -> str:
    """Return two values, of which the first omits an equal unit; only the second if they are equal."""
    value, _, unit = after.rpartition(" ")
    before = before.removesuffix(f" {unit}")
    return after if before in ("", value) or not after else f"{before} → {after}"


def list_actions(report: Report, registry: Registry) -> list[str]:
    """Return a line for each operation and the writer: what it did, in the language of the locale."""
    declarations, texts = registry.declarations, registry.texts(language())
    capabilities: dict[str, Operation | Writer] = {
        item.capability.format.id: item.capability for item in reversed(declarations.writers)
    }
    capabilities |= {item.capability.id: item.capability for item in declarations.operations}
    noting = {note.step for note in report.notes}
    lines = []
    for step in report.steps:
        if step.kind not in ("operation", "write"):
            continue
        capability = capabilities.get(step.step)
        sentences = dict(capability.figures) if capability is not None else {}
        figures = {name: text for name, text in texts.figures.items() if name in sentences}
        actions = describe_figures(step.figures, sentences | figures)
        label = texts.operations.get(step.step, capability.label if isinstance(capability, Operation) else step.step)
        if actions:
            lines.append(actions)
        elif not sentences and (raw := ", ".join(_describe_figure(*item) for item in step.figures.items() if item[1])):
            lines.append(f"{label}{tr(': ')}{raw}")
        elif step.kind == "operation" and step.step not in noting:
            lines.append(label)
    return lines


def describe_figures(figures: Mapping[str, Figure], sentences: Mapping[str, str]) -> str:
    """Describe figures in one line; see `Operation.figures`. States, which are true or false, follow a colon."""
    actions: list[str] = []
    states: list[str] = []
    for name, sentence in sentences.items():
        value = figures.get(name)
        if not value:
            continue
        values = {"": _format(value)}
        singular, _, plural = sentence.partition("|")
        sentence = plural if plural and value != 1 else singular
        values |= {other: _format(figures[other]) for other in _PLACEHOLDER.findall(sentence) if other in figures}
        wanted = set(_PLACEHOLDER.findall(sentence))
        if wanted <= values.keys() and not (len(wanted) > 1 and len({values[key] for key in wanted}) == 1):
            text = _PLACEHOLDER.sub(lambda match, values=values: values[match[1]], sentence)  # type: ignore[misc]
            (states if value is True else actions).append(text)
    return tr(": ").join(filter(None, (", ".join(actions), ", ".join(states))))


def list_notes(notes: Sequence[Note], losses: Sequence[Loss], registry: Registry) -> list[str]:
    """Return the lines of the notes of a report: one for the losses of a step, one for each other code.

    Notes that nearly every conversion has are left out; --json and --verbose show them.
    """
    texts = registry.texts(language())
    lines = []
    dropped: dict[str, list[str]] = {}
    for loss in losses:
        dropped.setdefault(loss.step, []).append(tr(FEATURES[loss.feature]))
    for step, features in dropped.items():
        form = registry.formats.get(step)
        label = texts.operations.get(step) or texts.formats.get(step) or (form.label if form else step)
        lines.append(tr("{label} keeps no {features}").format(label=label, features=", ".join(features)))
    codes = {(loss.code, loss.step) for loss in losses}
    groups: dict[str, list[Note]] = {}
    for note in translate_notes(notes, registry):
        if (note.code, note.step) not in codes and note.code not in USUAL_NOTES:
            groups.setdefault(note.code, []).append(note)
    for code, group in groups.items():
        more = f" ({tr('and {count} more of this kind').format(count=len(group) - 1)})" if len(group) > 1 else ""
        lines.append(labeled("note", f"{group[0].spelled(flag_of)}{more} [{code}]"))
    return lines


def list_steps(chain: Chain) -> list[str]:
    """Return the steps of a chain with their options, for people."""
    steps = []
    for step in chain.steps:
        options = " ".join(
            flag_of(name) if value is True else f"{flag_of(name)} {value}" for name, value in step.options.items()
        )
        verb = "run" if step.kind == "operation" else step.kind
        steps.append(f"{verb} {step.label}" + (f" ({options})" if options else ""))
    return steps


def _describe_figure(name: str, value: Figure) -> str:
    """Describe a figure without a sentence; a unit at the end of its name follows the value."""
    for suffix, unit in _UNIT_SUFFIXES.items():
        if name.endswith(suffix):
            return f"{name.removesuffix(suffix).replace('_', ' ')} {_format(value)} {unit}"
    return f"{name.replace('_', ' ')} {_format(value)}"


def list_features(table: FeatureTable | None) -> list[str]:
    """Return the lines of a feature table: exact size, faces by kind, radii, holes."""
    if table is None:
        return []
    kinds = ", ".join(f"{entry.count:,} {entry.kind}" for entry in table.faces)
    lines = [
        f"CAD model: {format_size(table.size_mm)}, {table.solids:,} solid{'s' * (table.solids != 1)}",
        f"  faces: {kinds}",
    ]
    for side, title in (("outside", "outer radii"), ("inside", "inner radii")):
        radii = [
            f"{entry.count:,} × R{format_number(entry.radius_mm, 6)} {entry.kind}"
            for entry in table.radii
            if entry.side == side
        ]
        if radii:
            lines.append(f"  {title}: {_first(radii)}")
    lines += [f"  hole: {line}" for line in map(describe_hole, table.holes)]
    return lines


def describe_hole(hole: Hole) -> str:
    """Describe equal holes in one line, in the notation of drawings."""
    diameter, depth = format_number(hole.diameter_mm, 6), format_number(hole.depth_mm, 6)
    text = f"{hole.count:,} × Ø{diameter} mm, {depth} mm deep, {hole.end}"
    for step in hole.steps:
        size = format_number(step.diameter_mm, 6)
        rest = f"{format_number(step.depth_mm, 6)} mm deep"
        if step.angle_deg is not None:
            rest = f"{format_number(step.angle_deg, 4)}°"
        text += f", {step.kind} Ø{size} mm {rest}"
    return text


def _first(words: list[str]) -> str:
    """Join the first words, and count the rest."""
    rest = len(words) - MAX_LISTED_RADII
    return ", ".join(words[:MAX_LISTED_RADII]) + (f" and {rest} more" if rest > 0 else "")


def _format(value: Figure) -> str:
    if isinstance(value, list):
        return ", ".join(map(_format, value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    # counts keep every digit, measures only as many as people read
    return show_number(value, 4)
