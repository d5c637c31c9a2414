"""`meshhub convert`: one file, many files, or a pipe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from meshhub.cli.batch import convert_batch
from meshhub.cli.conversion import ConvertFlags
from meshhub.cli.exits import EXIT_HELP
from meshhub.cli.files import STREAM, parse_timeout
from meshhub.cli.flags import RegistryCommand
from meshhub.cli.single import choose_output, convert_single
from meshhub.registry import Registry


@click.command(cls=RegistryCommand, epilog=EXIT_HELP)
@click.argument("paths", nargs=-1, required=True, metavar="INPUT... [OUTPUT]")
@click.option("--to", metavar="FORMAT", help="Target format (default: the output's extension).")
@click.option("--output", metavar="FILE", help="Output file of one INPUT; with --force it may be an existing model.")
@click.option(
    "-o", "--output-dir", type=click.Path(file_okay=False, path_type=Path), help="Folder for the converted files."
)
@click.option("-f", "--force", is_flag=True, help="Overwrite existing output files.")
@click.option("-j", "--jobs", type=click.IntRange(1, 256), help="Parallel conversions (default: number of CPU cores).")
@click.option(
    "--timeout", type=float, default=90.0, show_default=True, metavar="SECONDS", help="Limit per file; 0 for none."
)
@click.option("-q", "--quiet", is_flag=True, help="Print only errors.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON on standard output.")
@click.pass_context
def convert(
    ctx: click.Context, /, paths: tuple[str, ...], options: dict[str, Any], registry: Registry, **flags: Any
) -> None:
    """Convert model files.

    \b
    meshhub convert IN OUT               one file; OUT's extension names the format
    meshhub convert IN --output OUT      the same; with --force, OUT may be an existing model
    meshhub convert IN --to FORMAT       one file, written beside IN
    meshhub convert IN... --to FORMAT --output-dir DIR
                                         many files; a folder stands for its model files
    meshhub convert - OUT | IN - --to FORMAT
                                         from standard input, to standard output

    An existing file is overwritten only with --force; an input of the command never is. A second path that names
    another program's model may be an input that a pattern matched (*.stl), so the model is kept; to replace it, name it
    with --output. The order of the flags does not matter: operations run in the order repair, reduce, scale, flatten,
    place.
    """
    flags["timeout"] = parse_timeout(flags["timeout"])
    parsed = ConvertFlags(**flags)
    if parsed.output_dir is None:
        source, output = choose_output(registry, paths, parsed)
        convert_single(registry, source, output, parsed, options)
        return
    if parsed.output is not None:
        raise click.UsageError("--output names a file and --output-dir a folder; give one of them")
    if parsed.to is None:
        raise click.UsageError("--output-dir needs --to FORMAT")
    if STREAM in paths:
        raise click.UsageError("standard input has no name for the output; give an OUTPUT instead of --output-dir")
    ctx.exit(convert_batch(registry, paths, parsed.to, parsed.output_dir, parsed, options))
