"""Command line flags generated from the options that plug-ins declare."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from meshhub.cli.completing import complete_recipes, complete_sources
from meshhub.cli.loading import load_registry, print_faults
from meshhub.cli.verbosity import VERBOSE_FLAGS, be_verbose
from meshhub.errors import InvalidOption, quote
from meshhub.model.options import HostOptions, OptionField, flag_of, option_fields
from meshhub.registry import Registry
from meshhub.toolkit.recipes import EXTENSION, read_recipe

_COMPLETIONS = {"input_format": complete_sources, "recipe": complete_recipes}
"""Functions that complete the values of options that belong to the host."""

_MAX_SHOWN_CHOICES = 12
"""Most choices that stand beside a flag; the help lists more in its text."""

_METAVARS = {"integer": "N", "number": "NUMBER", "text": "TEXT"}

_WITH_SUFFIX = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))\s*([kKmM])", re.ASCII)
"""Number with k for thousand or M for million."""

_MIN_SUFFIXED_COUNT = 10_000
"""Greatest values from which the help mentions the suffixes."""


MAX_VALUE_BYTES = 1 << 20
"""Maximum bytes of a file whose content becomes the value of an option; settings of slicers have up to 100 kB."""


class RegistryCommand(click.Command):
    """A command that takes every option field of the registry as a flag.

    The callback receives those that were set as `options`, a dict of text and flags, and the registry.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._registry: Registry | None = None
        self._fields: dict[str, OptionField] = {}
        self._own = list(self.params)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; probe new plug-ins first, except for help and shell completion."""
        if not set(args).isdisjoint(VERBOSE_FLAGS):
            # the imports of plug-ins, which precede the parsing of the flags, are also logged
            be_verbose(ctx)
        only_lists = ctx.resilient_parsing or not set(args).isdisjoint(ctx.help_option_names)
        self.registry(probe=not only_lists)
        return super().parse_args(ctx, args)

    def registry(self, *, probe: bool = False) -> Registry:
        """Return the registry, which is built when flags are first needed."""
        if self._registry is None:
            return self.attach(load_registry(probe=probe))
        return self._registry

    def attach(self, registry: Registry) -> Registry:
        """Take the flags of a registry, and return it."""
        self._registry = registry
        self._fields = self.fields(registry)
        self.params = [*self._own, *(_flag(field) for field in self._fields.values())]
        return registry

    def fields(self, registry: Registry) -> dict[str, OptionField]:
        """Return the option fields that the command takes, by name."""
        return registry.declarations.fields()

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
        # a recipe serves commands that convert and commands that read; unknown names stay in it, and are rejected later
        names_of_others = self.registry().options.keys() - self._fields
        listed = read_recipe(Path(name)).options
        return {**{option: value for option, value in listed.items() if option not in names_of_others}, **options}


class ReadingCommand(RegistryCommand):
    """A command that only reads, and takes the options of the host and of readers."""

    def fields(self, registry: Registry) -> dict[str, OptionField]:
        """Return the option fields of the host and of readers, by name."""
        structs = [HostOptions, *(reader.capability.options for reader in registry.declarations.readers)]
        return {field.name: field for struct in structs for field in option_fields(struct)}


def _read_value(field: OptionField, value: Any) -> Any:
    """Return the content of a file that an option names by its path, and other values unchanged.

    Raises:
        InvalidOption: The file cannot be read, or is too large.
    """
    if not field.file_extensions or not str(value).lower().endswith(field.file_extensions):
        return value
    try:
        with Path(value).open("rb") as file:
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


def _flag(field: OptionField) -> click.Option:
    limits = field.bounds()
    text = f"{field.title}: {field.description}" if field.description else field.title
    limits = "; ".join(filter(None, (limits, field.rules(flag_of))))
    text += f" ({limits})" if limits else ""
    if field.file_extensions:
        text += f" Also the path of such a file ({', '.join(field.file_extensions)})."
    if field.kind == "integer" and (field.maximum is None or field.maximum >= _MIN_SUFFIXED_COUNT):
        text += " 50k stands for 50000, 1.5M for 1500000."
    if field.kind == "flag":
        return click.Option([field.flag, field.name], is_flag=True, default=None, help=text)
    if field.kind == "choice":
        kind: Any = click.Choice(field.choices, case_sensitive=False)
        if len(field.choices) > _MAX_SHOWN_CHOICES:
            listed = f"{text} One of {', '.join(field.choices)}."
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
