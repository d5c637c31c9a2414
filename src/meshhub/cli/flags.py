"""Command line flags generated from the options that plug-ins declare."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, Self

import click

from meshhub.cli.completing import complete_recipes, complete_sources
from meshhub.cli.loading import load_registry, print_faults
from meshhub.cli.locale import language
from meshhub.cli.texts import tr
from meshhub.cli.topics import list_topics
from meshhub.cli.verbosity import VERBOSE_FLAGS, be_verbose
from meshhub.errors import InvalidOption, quote
from meshhub.model.options import HostOptions, OptionField, drop_conflicts, flag_of, option_fields
from meshhub.model.translations import OptionTexts
from meshhub.pipeline.purposes import PURPOSES
from meshhub.registry import Registry
from meshhub.toolkit.recipes import EXTENSION, read_recipe
from meshhub.toolkit.toml_lines import find_line

_COMPLETIONS = {"input_format": complete_sources, "recipe": complete_recipes}
"""Functions that complete the values of options that belong to the host."""

_MAX_SHOWN_CHARS = 60
"""Most characters of choices that fit beside a flag; the help lists longer ones in its text."""

_METAVARS = {"integer": "N", "number": "NUMBER", "text": "TEXT"}

_WITH_SUFFIX = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))\s*([kKmM])", re.ASCII)
"""Number with k for thousand or M for million."""

_MIN_SUFFIXED_COUNT = 10_000
"""Greatest values from which the help mentions the suffixes."""


_LIMIT_PHRASES = ("at least", "more than", "at most", " and ", "needs", "not with")
"""Phrases of bounds and rules."""

HELP_ALL = "--help-all"
"""Flag that shows every option."""

_ALL = "meshhub.help-all"
"""Key in the data of a context; true if the help lists every option."""

MAX_VALUE_BYTES = 1 << 20
"""Maximum bytes of a file whose content becomes the value of an option; settings of slicers have up to 100 kB."""


class RegistryCommand(click.Command):
    """A command that takes every option field of the registry as a flag.

    The callback receives those that were set as `options`, a dict of text and flags, and the registry. `--help` lists
    the everyday options, so that it fits a screen, and `--help-all` all of them by topic.

    Args:
        everyday: Names of the own flags that `--help` lists; None: all.
    """

    topic = "Options"
    """Title of the options that are the command's, such as those of a picture."""

    def __init__(self, *args: Any, everyday: Collection[str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._registry: Registry | None = None
        self._fields: dict[str, OptionField] = {}
        self._everyday = everyday
        self.params.append(
            click.Option(
                [HELP_ALL],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_show_all,
                help="Show every option, by topic, and exit.",
            )
        )
        self._own_count = len(self.params)

    def __copy__(self) -> Self:
        """Return a copy without the flags of the registry, which get the texts of another language."""
        result = object.__new__(type(self))
        result.__dict__.update(self.__dict__, _registry=None, _fields={}, params=self.params[: self._own_count])
        return result

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, after the registry has added its flags."""
        if not set(args).isdisjoint(VERBOSE_FLAGS):
            # the imports of plug-ins, which precede the parsing of the flags, are also logged
            be_verbose(ctx)
        self.registry()
        return super().parse_args(ctx, args)

    def registry(self) -> Registry:
        """Return the registry, which is built when flags are first needed."""
        if self._registry is None:
            return self.attach(load_registry())
        return self._registry

    def attach(self, registry: Registry) -> Registry:
        """Take the flags of a registry, and return it."""
        self._registry = registry
        self._fields = self.fields(registry)
        texts = registry.texts(language()).options
        own = self.params[: self._own_count]
        self.params = [*own, *(build_flag(field, texts.get(field.name)) for field in self._fields.values())]
        return registry

    def fields(self, registry: Registry) -> dict[str, OptionField]:
        """Return the option fields that the command takes, by name."""
        return registry.declarations.fields()

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the description; what follows a form feed only for `--help-all`."""
        text, _, more = inspect.cleandoc(self.help or "").partition("\f")
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(f"{text.rstrip()}\n\n{more.lstrip()}" if ctx.meta.get(_ALL) else text.rstrip())

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the everyday options, or all options by topic."""
        params = {param.name: param for param in self.get_params(ctx) if isinstance(param, click.Option)}
        own = [param for name, param in params.items() if name not in self._fields]
        topics = list_topics(self.registry(), self._fields, self.topic)
        if ctx.meta.get(_ALL):
            self._write_section(ctx, formatter, "Options", own)
            for topic in topics:
                self._write_section(ctx, formatter, topic.title, [params[field.name] for field in topic.fields])
            return
        shown = [*(self._everyday or [param.name for param in own]), "help_all"]
        fields = [field for topic in topics for field in topic.fields if self.is_everyday(field)]
        texts = self.registry().texts(language()).options
        listed = [param for param in own if param.name in shown]
        for field in fields:
            listed.append(copy.copy(params[field.name]))
            listed[-1].help = _shorten(field, texts.get(field.name))
        self._write_section(ctx, formatter, "Options", listed)
        if len(fields) < len(self._fields):
            more = tr("{count} more options by topic: {all}, or meshhub options TOPIC, such as repair or step.")
            formatter.write_paragraph()
            formatter.write_text(more.format(count=len(self._fields) - len(fields), all=HELP_ALL))

    def _write_section(
        self, ctx: click.Context, formatter: click.HelpFormatter, title: str, params: Iterable[click.Option]
    ) -> None:
        with formatter.section(title):
            formatter.write_dl([record for param in params if (record := param.get_help_record(ctx))])

    def is_everyday(self, field: OptionField) -> bool:
        """Return whether `--help` lists an option."""
        return field.everyday

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the exit statuses, which fill a part of the screen, only for `--help-all`."""
        if ctx.meta.get(_ALL):
            super().format_epilog(ctx, formatter)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters of the command and those of the registry."""
        self.registry()
        return super().get_params(ctx)

    def invoke(self, ctx: click.Context) -> Any:
        """Call the command with the option fields that were set as one dict."""
        values = {name: ctx.params.pop(name) for name in self._fields if name in ctx.params}
        options = {name: _read_value(self._fields[name], value) for name, value in values.items() if value is not None}
        ctx.params["options"] = self._read_recipe_file(options)
        ctx.params["registry"] = self.registry()
        print_faults(self.registry().faults)
        return super().invoke(ctx)

    def _read_recipe_file(self, options: dict[str, Any]) -> dict[str, Any]:
        """Replace a recipe that is the path of a TOML file by its options; explicit ones take precedence."""
        name = str(options.pop("recipe", ""))
        if not name.lower().endswith(EXTENSION):
            return {**options, "recipe": name} if name else options
        # a recipe serves commands that convert, check and read; unknown names stay in it, and are rejected later
        file = Path(name)
        listed = read_recipe(file).options
        registry = self.registry()
        known = {**registry.options, **registry.declarations.check_fields(), **self._fields}
        wrong = registry.declarations.find_wrong_option(listed, known)
        if wrong is not None:
            option, error = wrong
            line = find_line(file.read_text("utf-8"), ("options", option))
            place = f"{file.name}:{line}" if line else file.name
            raise InvalidOption(f"recipe file {quote(place)}: options.{option}: {error.message}")
        names_of_others = known.keys() - self._fields.keys()
        kept = drop_conflicts(listed, options, self._fields)
        return {**{option: value for option, value in kept.items() if option not in names_of_others}, **options}


def _show_all(ctx: click.Context, _: click.Parameter, is_set: bool) -> None:
    """Print the help with every option, and exit."""
    if is_set and not ctx.resilient_parsing:
        ctx.meta[_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


def _shorten(field: OptionField, texts: OptionTexts | None) -> str:
    """Return the title of an option or, if that repeats the flag, the first sentence of its description."""
    texts = texts or OptionTexts()
    if flag_of(field.title.lower().replace(" ", "_")) != field.flag:
        return texts.title or field.title
    return (texts.description or field.description).partition(". ")[0].removesuffix(".") + "."


class ReadingCommand(RegistryCommand):
    """A command that takes the options of a purpose other than a conversion.

    Args:
        purpose: Id of the purpose.
        topic: Title of its own options.
    """

    def __init__(self, *args: Any, purpose: str, topic: str = "Options", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.purpose = purpose
        self.topic = topic

    def fields(self, registry: Registry) -> dict[str, OptionField]:
        """Return its own option fields, and those of the host, of readers and of operations, by name."""
        declarations, purpose = registry.declarations, PURPOSES[self.purpose]
        structs = [HostOptions, *(reader.capability.options for reader in declarations.readers)]
        if purpose.runs_operations:
            structs += [operation.capability.options for operation in declarations.operations]
        return purpose.own_fields(declarations) | {
            field.name: field for each in structs for field in option_fields(each)
        }

    def is_everyday(self, field: OptionField) -> bool:
        """Return whether `--help` lists an option; those of operations are for conversions."""
        operations = self.registry().operations.values()
        return field.everyday and not any(field in option_fields(operation.options) for operation in operations)


def _read_value(field: OptionField, value: Any) -> Any:
    """Return the content of a file that an option names by its path, also as @PATH, and other values unchanged.

    Raises:
        InvalidOption: The file cannot be read, or is too large.
    """
    if not field.file_extensions or not str(value).lower().endswith(field.file_extensions):
        return value
    try:
        with Path(str(value).removeprefix("@")).open("rb") as file:
            content = file.read(MAX_VALUE_BYTES + 1)
        if len(content) > MAX_VALUE_BYTES:
            raise InvalidOption(f"file {quote(value)} has over {MAX_VALUE_BYTES} bytes", options=(field.name,))
        return content.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InvalidOption(f"file {quote(value)} cannot be read: {reason}", options=(field.name,)) from None


def _expand_count(name: str, text: str) -> str:
    """Return the text of a whole number without a suffix. Raises InvalidOption if the number is not whole."""
    match = _WITH_SUFFIX.fullmatch(text.strip())
    if match is None:
        return text
    from decimal import Decimal

    count = Decimal(match[1]) * (1_000 if match[2] in "kK" else 1_000_000)
    if count != int(count):
        raise InvalidOption(
            f"option '{{{name}}}' must be a whole number such as 50000, 50k or 1.5M, got {quote(text)}", options=(name,)
        )
    return str(int(count))


def build_flag(field: OptionField, texts: OptionTexts | None = None) -> click.Option:
    """Return the flag of an option.

    Args:
        field: The option.
        texts: Texts in the language of the locale; None: those of the declaration.
    """
    texts = texts or OptionTexts()
    text = tr(": ").join(filter(None, (texts.title or field.title, texts.description or field.description)))
    limits = _translate_limits("; ".join(filter(None, (field.bounds(), field.rules(flag_of)))))
    text += f" ({limits})" if limits else ""
    if field.file_extensions:
        text += f" {tr('Also the path of such a file')} ({', '.join(field.file_extensions)})."
    if field.kind == "integer" and (field.maximum is None or field.maximum >= _MIN_SUFFIXED_COUNT):
        text += f" {tr('50k stands for 50000, 1.5M for 1500000.')}"
    if field.kind == "flag":
        return click.Option([field.flag, field.name], is_flag=True, default=None, help=text)
    if field.kind == "choice":
        kind: Any = _FieldChoice(field)
        if len("|".join(field.choices)) > _MAX_SHOWN_CHARS:
            listed = f"{text} {tr('One of')} {', '.join(field.choices)}."
            return click.Option([field.flag, field.name], type=kind, metavar="NAME", default=None, help=listed)
        return click.Option([field.flag, field.name], type=kind, default=None, help=text)
    is_count = field.kind == "integer"
    return click.Option(
        [field.flag, field.name],
        metavar=_METAVARS[field.kind],
        default=None,
        help=text,
        callback=(lambda _, __, value: value and _expand_count(field.name, value)) if is_count else None,
        shell_complete=_COMPLETIONS.get(field.name),
    )


class _FieldChoice(click.Choice[str]):
    """Choice of an option, which takes other spellings, too."""

    def __init__(self, field: OptionField) -> None:
        super().__init__(field.choices, case_sensitive=False)
        self._field = field

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the value that the text names."""
        return super().convert(self._field.resolve_choice(str(value)), param, ctx)


def _translate_limits(text: str) -> str:
    """Return bounds and rules in the language of the locale."""
    for phrase in _LIMIT_PHRASES:
        text = text.replace(phrase, tr(phrase))
    return text
