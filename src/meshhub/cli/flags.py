"""Command line flags generated from the options that plug-ins declare."""

from __future__ import annotations

from typing import Any

import click

from meshhub.cli.loading import load_registry, print_faults
from meshhub.model.options import HostOptions, OptionField, option_fields
from meshhub.registry import Registry

_METAVARS = {"integer": "N", "number": "NUMBER", "text": "TEXT"}


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
        only_lists = ctx.resilient_parsing or not set(args).isdisjoint(ctx.help_option_names)
        self.registry(probe=not only_lists)
        return super().parse_args(ctx, args)

    def registry(self, *, probe: bool = False) -> Registry:
        """Return the registry, built when flags are first needed."""
        if self._registry is None:
            self._registry = load_registry(probe=probe)
            self._fields = self.fields(self._registry)
            self.params = [*self._own, *(_flag(field) for field in self._fields.values())]
        return self._registry

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
        ctx.params["options"] = {name: value for name, value in values.items() if value is not None}
        ctx.params["registry"] = self.registry()
        if not ctx.params.get("quiet"):
            print_faults(self.registry().faults)
        return super().invoke(ctx)


class ReadingCommand(RegistryCommand):
    """A command that only reads: it takes the options of the host and of readers."""

    def fields(self, registry: Registry) -> dict[str, OptionField]:
        """Return the option fields of the host and of readers, by name."""
        structs = [HostOptions, *(reader.capability.options for reader in registry.declarations.readers)]
        return {field.name: field for struct in structs for field in option_fields(struct)}


def _flag(field: OptionField) -> click.Option:
    limits = field.bounds()
    text = f"{field.title}: {field.description}" if field.description else field.title
    text += f" ({limits})" if limits else ""
    if field.kind == "flag":
        return click.Option([field.flag, field.name], is_flag=True, default=None, help=text)
    if field.kind == "choice":
        kind: Any = click.Choice(field.choices, case_sensitive=False)
        return click.Option([field.flag, field.name], type=kind, default=None, help=text)
    return click.Option([field.flag, field.name], metavar=_METAVARS[field.kind], default=None, help=text)
