"""Options by topic, for help texts: what concerns the input, the print, colors, a format, the output."""

# why this way: docs/decisions/0043-words-of-the-command-line.md
from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct

from meshhub.cli.locale import language
from meshhub.cli.texts import tr
from meshhub.model.capabilities import Reader, Stage, Writer
from meshhub.model.options import HostOptions, OptionField, option_fields
from meshhub.registry import Registry

_INPUT = ("recipe", "input_unit", "input_up", "input_format")
"""Options of the host that concern the input; its others concern the output."""

_STAGES = {
    "Repair and reduce": (Stage.REPAIR, Stage.REDUCE),
    "Position and size": (Stage.TURN, Stage.RESIZE, Stage.PLACE),
    "Shape": (Stage.SHAPE, Stage.HOLLOW, Stage.CUT, Stage.BASE),
    "Divide and combine": (Stage.DIVIDE,),
    "Colors": (Stage.COLOR,),
}
"""Stages of operations, by topic; the page groups them in the same way."""


class Topic(NamedTuple):
    """Options that belong together.

    Args:
        title: Heading, in the language of the locale.
        fields: Options.
        ids: Ids of the operations or of the format that declare them.
    """

    title: str
    fields: tuple[OptionField, ...]
    ids: tuple[str, ...] = ()


def list_topics(registry: Registry, fields: Mapping[str, OptionField], own: str) -> list[Topic]:
    """Return the topics of the options of a command; each option belongs to one.

    Args:
        registry: Declarations.
        fields: Options of the command, by name.
        own: Title of the options that neither the host, a format nor an operation declares, such as "Picture".
    """
    declarations, texts = registry.declarations, registry.texts(language())
    titles = {field.name: "Input" if field.name in _INPUT else "Output" for field in option_fields(HostOptions)}
    ids: dict[str, list[str]] = {}
    formats = []

    def add(title: str, owner: str, options: type[Struct]) -> None:
        for field in option_fields(options):
            # formats may share options
            ids.setdefault(titles.setdefault(field.name, title), []).append(owner)

    for operation in declarations.operations:
        stage = operation.capability.stage
        title = next(title for title, stages in _STAGES.items() if stage in stages)
        add(title, operation.capability.id, operation.capability.options)
    capabilities: list[Reader | Writer] = [item.capability for item in declarations.readers]
    capabilities += [item.capability for item in declarations.writers]
    for capability in capabilities:
        form = capability.format
        formats.append(texts.formats.get(form.id, form.label))
        add(formats[-1], form.id, capability.options)
    order = dict.fromkeys((own, "Input", *_STAGES, *sorted(formats), "Output"))
    listed = {
        title: tuple(field for name, field in fields.items() if titles.get(name, own) == title) for title in order
    }
    return [
        Topic(tr(title), members, tuple(dict.fromkeys(ids.get(title, ()))))
        for title, members in listed.items()
        if members
    ]
