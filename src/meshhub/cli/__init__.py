"""The command line: `convert`, `check`, `quote` and others for models, listings; `serve`, `keys`, … for the service."""

from __future__ import annotations

import gc
import importlib
import logging
import os
import sys
from typing import Any, cast

import click

from meshhub.cli.help import use_layout
from meshhub.cli.locale import ENGLISH, language
from meshhub.cli.signals import INTERRUPTED, SIGNALED, Ended, end_on
from meshhub.cli.texts import tr
from meshhub.cli.verbosity import verbosity

_COMMANDS = {
    "app": ("meshhub.cli.app:app", "Open the page on this machine, with models in it."),
    "check": ("meshhub.cli.check:check", "Check whether models print, and say what to do."),
    "completion": ("meshhub.cli.completion:completion", "Print a script that completes commands, options and values."),
    "config": ("meshhub.cli.config:config", "Show the settings of the service and the limits of plans."),
    "convert": ("meshhub.cli.convert:convert", "Convert model files."),
    "doctor": ("meshhub.cli.doctor:doctor", "Check the installation: packages, plug-ins, isolation, limits."),
    "explain": ("meshhub.cli.explain:explain", "Show the steps and losses of a conversion without running it."),
    "formats": ("meshhub.cli.listings:formats", "List the formats that can be read and written, with options."),
    "inspect": ("meshhub.cli.inspect:inspect", "Inspect models: size, bodies, holes, whether they are closed."),
    "jobs": ("meshhub.cli.jobs:jobs", "Submit jobs to a service, follow them, and get their results."),
    "keys": ("meshhub.cli.keys:keys", "Create, list, rotate and revoke API keys."),
    "migrate": ("meshhub.cli.migrate:migrate", "Create the tables of jobs and API keys where they are missing."),
    "operations": ("meshhub.cli.listings:operations", "List the operations in the order in which they run."),
    "options": ("meshhub.cli.options:options", "Explain the options of a topic, such as an operation or a format."),
    "plugin": ("meshhub.cli.plugin:plugin", "Write plug-ins."),
    "plugins": ("meshhub.cli.listings:plugins", "List the loaded plug-ins and their faults, or disable some."),
    "printers": (
        "meshhub.cli.printers:printers",
        "List the printers on the network with their states, or send a file to one.",
    ),
    "quote": ("meshhub.cli.quote:quote", "Estimate weight, support and time of prints, and their price."),
    "recipes": ("meshhub.cli.listings:recipes", "List the recipes, which are named lists of options."),
    "render": ("meshhub.cli.render:render", "Draw a picture of a model as PNG, without a display."),
    "serve": ("meshhub.cli.serve:serve", "Serve conversions over HTTP until SIGTERM or Ctrl-C."),
    "usage": ("meshhub.cli.usage:usage", "Export the usage of jobs, for bills and statistics."),
    "webhooks": ("meshhub.cli.webhooks:webhooks", "Create, list, rotate and revoke secrets that sign webhooks."),
    "work": ("meshhub.cli.work:work", "Run the jobs of a cluster, until SIGTERM or Ctrl-C."),
}
"""Reference and summary by name: the list of the commands imports none of them. The summary is the first sentence of
the command's help.
"""


_SIGPIPE = 13
"""Number of the signal; Python ignores it, and Windows does not have it."""


class _Lazy(click.Group):
    """A group that imports a command only when it is called, so that listing formats loads nothing else."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of the commands."""
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import the command."""
        if cmd_name not in _COMMANDS:
            return None
        module, _, attribute = _COMMANDS[cmd_name][0].partition(":")
        command = cast(click.Command, getattr(importlib.import_module(module), attribute))
        use_layout(command)
        return _in_language(command, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the names and summaries of the commands."""
        rows = [
            (name, (_in_language(click.Command(name, help=summary), name).help or "").strip().partition("\n")[0])
            for name, (_, summary) in _COMMANDS.items()
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; end with the status of SIGPIPE if a reader such as `| head` closes the output pipe."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # Python would flush the rest of the buffers at exit, and fail again
            null = os.open(os.devnull, os.O_WRONLY)
            for stream in (1, 2):
                os.dup2(null, stream)
            ctx.exit(SIGNALED + _SIGPIPE)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command, `convert` for the path of a model, or fail with the nearest name."""
        name = args[0] if args else ""
        if name not in _COMMANDS and _is_path(name):
            return "convert", self.get_command(ctx, "convert"), args
        if name not in _COMMANDS and not ctx.resilient_parsing and not name.startswith("-"):
            import difflib

            near = difflib.get_close_matches(name, _COMMANDS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else " See meshhub --help."
            ctx.fail(f"No such command {name!r}.{hint}")
        return super().resolve_command(ctx, args)


def _is_path(argument: str) -> bool:
    """Return whether the first argument is a model to convert, and not a command."""
    return not argument.startswith("-") and ("." in argument or os.sep in argument or os.path.lexists(argument))


def _in_language(command: click.Command, path: str) -> click.Command:
    """Return a command in the language of the locale."""
    if language() == ENGLISH:
        return command
    from meshhub.cli.translating import translated

    return translated(command, path)


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="meshhub", message="%(prog)s %(version)s")
@verbosity
@click.pass_context
def root(ctx: click.Context) -> None:
    """Convert, repair and print-prepare 3D model files.

    \b
    meshhub app bracket.stl
    meshhub bracket.stl bracket.3mf
    meshhub convert bracket.stl bracket.3mf --repair --target-height-mm 40
    meshhub convert parts/*.stl --to 3mf --output-dir out/
    meshhub inspect bracket.stl
    meshhub check bracket.stl
    meshhub quote bracket.stl --rates rates.toml
    meshhub render bracket.stl bracket.png
    """
    gc.enable()
    end_on("SIGTERM", *(["SIGHUP"] if ctx.invoked_subcommand != "serve" else []))
    # without a handler, Python would print warnings on standard error
    logging.getLogger("meshhub").addHandler(logging.NullHandler())


use_layout(root)


def main() -> None:
    """Run the `meshhub` program."""
    try:
        # in its standalone mode, click would end an interrupted command with status 1
        status = _in_language(root, "")(prog_name="meshhub", standalone_mode=False)
    except (KeyboardInterrupt, click.Abort) as error:
        click.echo(tr("interrupted; unfinished files were removed"), err=True)
        cause = error.__cause__ or error
        sys.exit(SIGNALED + cause.number if isinstance(cause, Ended) else INTERRUPTED)
    except click.ClickException as error:
        from meshhub.cli.exits import report_usage_error

        report_usage_error(error)
        sys.exit(error.exit_code)
    except Exception as error:
        from meshhub.cli.exits import report_error

        sys.exit(report_error(error))
    sys.exit(status)
