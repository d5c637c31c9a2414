"""`meshhub convert`: one file, many files, or a pipe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from meshhub.cli.completing import complete_files, complete_paths, complete_targets
from meshhub.cli.convert_flags import ConvertFlags
from meshhub.cli.exits import EXIT_HELP
from meshhub.cli.flags import RegistryCommand
from meshhub.cli.naming import check_template
from meshhub.cli.outputs import choose_combined, choose_output, ends_with_folder
from meshhub.cli.paths import STREAM
from meshhub.cli.processes import parse_timeout, timeout_option
from meshhub.cli.server_flags import check_remote_timeout, server_option
from meshhub.cli.verbosity import is_quiet, verbosity
from meshhub.registry import Registry


@click.command(
    cls=RegistryCommand,
    epilog=EXIT_HELP,
    everyday=("to", "output_dir", "combine", "force", "watch", "dry_run", "as_json"),
)
@click.argument("paths", nargs=-1, metavar="INPUT... [OUTPUT|FORMAT|DIR]", shell_complete=complete_paths)
@click.option(
    "--to",
    metavar="FORMAT",
    shell_complete=complete_targets,
    help="Target format (default: the output's extension).",
)
@click.option(
    "--output",
    metavar="FILE",
    shell_complete=complete_files,
    help="Output file of one INPUT; with --force it may be an existing model.",
)
@click.option(
    "-o", "--output-dir", type=click.Path(file_okay=False, path_type=Path), help="Folder for the converted files."
)
@click.option(
    "--name",
    metavar="TEMPLATE",
    callback=check_template,
    help="Names of derived outputs: text with {stem}, {extension}, {folder} (of the input) and {format}, such as "
    "'{stem}-print'.",
)
@click.option(
    "--combine",
    is_flag=True,
    help="Read all INPUTs into one OUTPUT, such as the objects of one bed; each stays an object.",
)
@click.option("-f", "--force", is_flag=True, help="Overwrite existing output files.")
@click.option(
    "--skip-existing",
    is_flag=True,
    help="Skip inputs whose outputs exist and are newer, also those made with other options.",
)
@click.option(
    "--watch",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Convert the models in this folder and those that arrive there, until Ctrl-C or SIGTERM.",
)
@server_option
@click.option("--dry-run", is_flag=True, help="Print the outputs and the steps; write nothing.")
@click.option("-j", "--jobs", type=click.IntRange(1, 256), help="Parallel conversions (default: number of CPU cores).")
@timeout_option
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON on standard output.")
@verbosity
@click.pass_context
def convert(
    ctx: click.Context, /, paths: tuple[str, ...], options: dict[str, Any], registry: Registry, **flags: Any
) -> None:
    """Convert model files.

    \b
    meshhub convert IN OUT            one file; OUT's extension names the format
    meshhub convert IN FORMAT         one file, written beside IN
    meshhub convert IN... DIR/ --to FORMAT
                                      many files, or folders, into a folder

    An existing file is overwritten only with --force; an input of the command never is.
    \f
    \b
    meshhub IN OUT                    the same as meshhub convert IN OUT
    meshhub convert IN --output OUT   the same; --force replaces any model
    meshhub convert IN --to FORMAT    the same as IN FORMAT
    meshhub convert IN... --to FORMAT --output-dir DIR
                                      a folder stands for its models
    meshhub convert --watch IN_DIR --to FORMAT --output-dir DIR
                                      what arrives in a folder, until Ctrl-C
    meshhub convert - OUT | IN - --to FORMAT
                                      from standard input, to standard output
    meshhub convert s3://B/KEY OUT    an address that a plug-in opens; also as OUT
    meshhub convert --combine IN... OUT
                                      several files into one
    meshhub convert ZIP OUT           the model in a ZIP archive; several
                                      models need --output-dir

    A second path that names another program's model may be an input that a pattern matched (*.stl), so the model is
    kept; to replace it, name it with --output. The order of the flags does not matter: operations run in the order in
    which `meshhub operations` lists them.
    """
    flags["timeout"] = parse_timeout(flags["timeout"])
    if flags["to"] and not flags["output"] and not flags["output_dir"] and ends_with_folder(paths):
        paths, flags["output_dir"] = paths[:-1], Path(paths[-1])
    parsed = ConvertFlags(**flags, quiet=is_quiet())
    _check_flags(paths, parsed)
    if parsed.server:
        _check_server_flags(ctx, parsed)
        if options.get("each_bed"):
            raise click.UsageError("--server returns one file; --each-bed needs a conversion on this machine")
    # the help needs none of the modules that convert
    from meshhub.cli.single import Inputs, convert_single

    convert_one = convert_single
    if parsed.server:
        from meshhub.cli.remote import convert_remote as convert_one
    if parsed.combine:
        if parsed.output_dir or parsed.watch or parsed.name:
            raise click.UsageError("--combine writes one OUTPUT; it takes no --output-dir, --name or --watch")
        inputs, output = choose_combined(registry, paths, parsed)
        convert_one(registry, Inputs(inputs), output, parsed, options)
    elif parsed.output_dir is None or parsed.to is None:
        source, output = choose_output(registry, paths, parsed)
        convert_one(registry, Inputs((source,)), output, parsed, options)
    elif parsed.watch is not None:
        from meshhub.cli.watch import convert_arrivals

        convert_arrivals(registry, parsed.watch, parsed.to, parsed.output_dir, parsed, options)
    else:
        if parsed.server:
            from meshhub.cli.remote import convert_batch_remote as convert_all
        else:
            from meshhub.cli.batch import convert_batch as convert_all

        ctx.exit(convert_all(registry, paths, parsed.to, parsed.output_dir, parsed, options))


def _check_server_flags(ctx: click.Context, flags: ConvertFlags) -> None:
    """Reject flags that have no effect on a conversion by a service. Raises click.UsageError."""
    if flags.watch is not None or flags.dry_run:
        raise click.UsageError("--server takes neither --watch nor --dry-run")
    check_remote_timeout(ctx)


def _check_flags(paths: tuple[str, ...], flags: ConvertFlags) -> None:
    """Reject flags that contradict each other or the paths. Raises click.UsageError."""
    if flags.force and flags.skip_existing:
        raise click.UsageError("--force replaces existing outputs and --skip-existing keeps them; give one of them")
    if flags.watch is not None:
        if paths or flags.dry_run:
            raise click.UsageError("--watch takes neither an INPUT nor --dry-run")
        if flags.to is None or flags.output_dir is None:
            raise click.UsageError("--watch needs --to FORMAT and --output-dir DIR")
    elif not paths:
        raise click.UsageError("give an INPUT, or a folder with --watch")
    if flags.output_dir is None:
        return
    if flags.output is not None:
        raise click.UsageError("--output names a file and --output-dir a folder; give one of them")
    if flags.to is None:
        raise click.UsageError("--output-dir needs --to FORMAT")
    if STREAM in paths:
        raise click.UsageError("standard input has no name for the output; give an OUTPUT instead of --output-dir")
