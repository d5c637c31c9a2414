"""`meshhub options`: the options of an operation, a format, a check or a single one, explained."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

import click

from meshhub.cli import terminal
from meshhub.cli.completing import list_matches
from meshhub.cli.flags import build_flag
from meshhub.cli.loading import load_registry
from meshhub.cli.locale import language
from meshhub.cli.texts import labeled, tr
from meshhub.cli.topics import list_topics
from meshhub.cli.verbosity import verbosity
from meshhub.errors import quote
from meshhub.model.options import OptionField, option_fields
from meshhub.model.translations import OptionTexts
from meshhub.registry import Registry
from meshhub.toolkit.rendering.options import RenderOptions

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def _list_topics(registry: Registry) -> dict[str, list[OptionField]]:
    """Return the options of each topic that has some: of the host, operations, formats, checks and pictures."""
    declarations = registry.declarations
    topics: dict[str, list[OptionField]] = {}
    for heading in list_topics(registry, declarations.fields(), ""):
        if not heading.ids:
            topics[heading.title.lower()] = list(heading.fields)
    for owner, struct in declarations.option_structs():
        listed = topics.setdefault(owner, [])
        listed += [field for field in option_fields(struct) if field not in listed]
    del topics["host"]
    topics["check"] = list(declarations.check_fields().values())
    topics["render"] = list(option_fields(RenderOptions))
    return {name: listed for name, listed in topics.items() if listed}


def _complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the names of topics."""
    return list_matches(_list_topics(load_registry()), incomplete)


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("topic", required=False, shell_complete=_complete)
@click.option("--json", "as_json", is_flag=True, help="Print JSON Schema.")
@verbosity
def options(topic: str | None, as_json: bool) -> None:
    """Explain the options of a topic, such as an operation or a format.

    TOPIC is an operation, a format, an option with or without dashes, `check`, `render`, or a heading of `meshhub
    convert --help-all`. Without it, the topics are listed.

    \b
    meshhub options
    meshhub options reduce-colors
    meshhub options step
    meshhub options --target-height-mm
    """
    registry = load_registry()
    topics = _list_topics(registry)
    if topic is not None:
        fields = _find(registry, topics, topic)
        if as_json:
            terminal.as_json({field.name: field.schema() for field in fields})
        else:
            _print_fields(registry, fields)
    elif as_json:
        terminal.as_json({name: {field.name: field.schema() for field in listed} for name, listed in topics.items()})
    else:
        rows = [(name, " ".join(field.flag for field in listed)) for name, listed in topics.items()]
        terminal.table((tr("topic"), tr("options")), rows)


def _find(registry: Registry, topics: dict[str, list[OptionField]], name: str) -> list[OptionField]:
    """Return the options of a topic. Raises click.BadParameter."""
    wanted = name.strip().lower().lstrip("-").replace("_", "-").replace(" ", "-")
    flags = {field.flag.lstrip("-"): [field] for listed in topics.values() for field in listed}
    headings = {
        heading.title.lower().replace(" ", "-"): list(heading.fields)
        for heading in list_topics(registry, registry.declarations.fields(), "")
    }
    known = flags | headings | topics
    if wanted in known:
        return known[wanted]
    near = difflib.get_close_matches(wanted, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else "'meshhub options' lists the topics"
    raise click.BadParameter(f"no option or topic is named {quote(name)}; {hint}", param_hint="TOPIC")


def _print_fields(registry: Registry, fields: list[OptionField]) -> None:
    """Print each option with its text, and the meanings of its values."""
    texts = registry.texts(language()).options
    ctx = click.get_current_context()
    formatter = ctx.make_formatter()
    rows = []
    for field in fields:
        own = texts.get(field.name, OptionTexts())
        flag, text = build_flag(field, own).get_help_record(ctx) or ("", "")
        named = {**field.titles, **own.choices}
        titles = "; ".join(f"{choice}{tr(': ')}{title}" for choice, title in named.items() if choice != title)
        default = "" if field.default in (None, False) else labeled("Default", f"{field.default}.")
        example = "" if field.example is None else labeled("Example", f"{field.flag} {field.example}")
        rows.append((flag, " ".join(filter(None, (text, f"{titles}." if titles else "", default, example)))))
    formatter.write_dl(rows)
    click.echo(formatter.getvalue(), nl=False)
