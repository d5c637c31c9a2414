"""`meshhub doctor`: what is installed, what is missing, and whether conversions run."""

from __future__ import annotations

import click
import msgspec

from meshhub.cli import terminal
from meshhub.cli.verbosity import verbosity


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@verbosity
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Check the installation: packages, plug-ins, isolation, limits.

    Each missing package is listed with the features that need it and the command that installs it. One tiny model is
    converted in a separate process. The exit status is 1 if conversions cannot run, and 0 otherwise.
    """
    # the checks import the engine and the settings of the service
    from meshhub.cli.diagnosis import describe_system, list_packages, run_checks

    checks = list(run_checks())
    can_convert = all(check.status != "failed" for check in checks)
    if as_json:
        packages = {extra or "base": versions for extra, versions in list_packages().items()}
        listed = [msgspec.to_builtins(check) for check in checks]
        terminal.as_json({**describe_system(), "can_convert": can_convert, "packages": packages, "checks": listed})
    else:
        for name, version in describe_system().items():
            terminal.print_line(f"{name} {version}")
        terminal.table(
            ("check", "status", "result"),
            [
                (check.name, check.status, check.message + (f"; {check.remedy}" if check.remedy else ""))
                for check in checks
            ],
        )
        terminal.inform("conversions run" if can_convert else "conversions cannot run")
    ctx.exit(0 if can_convert else 1)
