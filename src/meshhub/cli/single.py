"""Convert one file, or several into one, from paths or standard input to a path or standard output."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import click

from meshhub.cli import report_text, terminal
from meshhub.cli.convert_flags import ConvertFlags
from meshhub.cli.exits import error_data
from meshhub.cli.outputs import Output, check_distinct
from meshhub.cli.paths import STREAM, identity, read_from
from meshhub.cli.processes import bounded_hooks, create_engine
from meshhub.cli.progress import show_progress
from meshhub.cli.target_checks import is_kept, preview, suggesting_overwrite
from meshhub.cli.texts import labeled, tr
from meshhub.cli.verbosity import is_quiet, is_verbose
from meshhub.errors import MeshhubError, OutputExists, printable
from meshhub.model.chain import Request
from meshhub.model.progress import Listener
from meshhub.model.report import Report
from meshhub.model.source import Source, Target
from meshhub.pipeline.outputs import place_first_bed, target_format
from meshhub.pipeline.storages import is_address
from meshhub.registry import Registry


class Inputs(NamedTuple):
    """Paths, addresses or `-` of the files that are read, into one scene if there are several."""

    paths: tuple[str, ...]

    def __str__(self) -> str:
        """Return the paths for messages."""
        return ", ".join(self.paths)

    def open(self) -> Source | str | list[Source | str]:
        """Return what `Registry` reads."""
        models = [read_from(path) for path in self.paths]
        return models if len(models) > 1 else models[0]

    def check_distinct(self, output: str) -> None:
        """Reject an output that is one of the inputs. Raises click.UsageError."""
        for path in self.paths:
            check_distinct(path, output)


def convert_single(
    registry: Registry, inputs: Inputs, output: Output, flags: ConvertFlags, options: dict[str, Any]
) -> None:
    """Convert one file, or several into one scene, and print the report."""
    if options.get("each_bed"):
        if output.path == STREAM:
            raise click.UsageError("standard output takes one file, and --each-bed writes several; give an OUTPUT file")
        output = output._replace(path=str(place_first_bed(output.path)))
    sources, each_bed = list(map(Path, inputs.paths)), options.get("each_bed") is True
    if (
        flags.skip_existing
        and output.path != STREAM
        and is_kept(registry, Path(output.path), sources, each_bed=each_bed)
    ):
        terminal.print_skipped(str(inputs), output.path, is_json=flags.as_json)
        return
    engine = create_engine(1)
    registry = registry.using(engine, bounded_hooks(flags.timeout))
    try:
        with registry:
            if flags.dry_run:
                _print_preview(registry, inputs, output, flags, options)
                return
            if output.path == STREAM:
                report = _convert_to_stream(registry, inputs, output.to, flags, options)
            else:
                report = _convert_to_file(registry, inputs, output, flags, options)
    except (MeshhubError, OSError) as error:
        if flags.skip_existing and isinstance(error, OutputExists) and not error.is_input:
            # another program wrote it in the meantime
            terminal.print_skipped(str(inputs), output.path, is_json=flags.as_json)
            return
        if flags.as_json and output.path != STREAM:
            terminal.as_json(error_data(error))
        raise
    if flags.as_json:
        terminal.as_json(report)
    else:
        print_report(output.path, report, registry)


def _print_preview(
    registry: Registry, inputs: Inputs, output: Output, flags: ConvertFlags, options: dict[str, Any]
) -> None:
    """Print what a conversion would write and its steps, or raise the error of a wrong request."""
    target = Path(output.path)
    model = inputs.open()
    if any(map(is_address, (*inputs.paths, output.path))):
        raise click.UsageError("--dry-run takes files, not addresses; 'meshhub explain' shows the steps")
    if output.path == STREAM:
        _check_standard_output(inputs, output.to, flags)
        with registry.open_model(model, options) as opened:
            chain = registry.resolve(
                Request(target=target_format(target, output.to, registry.declarations), options=options), opened
            )
    else:
        inputs.check_distinct(output.path)
        request = Request(target=target_format(target, output.to, registry.declarations), options=options)
        with suggesting_overwrite(output.overwrite):
            chain = preview(
                registry,
                model,
                target,
                request,
                overwrite=flags.overwrite,
                creates_folder=output.folder is not None,
            )
    if flags.as_json:
        terminal.as_json({"file": str(inputs), "output": output.path, "chain": chain})
        return
    terminal.print_line(printable(f"{inputs} → {output.path}"), err=output.path == STREAM)
    for step in report_text.list_steps(chain):
        terminal.print_line(step, indent="  ", err=output.path == STREAM)
    for loss in chain.losses:
        text = tr("could be lost, if the file has it: {feature} (at {step})")
        terminal.inform(text.format(feature=tr(report_text.FEATURES[loss.feature]), step=loss.step), indent="  ")
    terminal.print_notes(report_text.translate_notes(chain.notes, registry), indent="  ")


def _convert_to_file(
    registry: Registry, inputs: Inputs, output: Output, flags: ConvertFlags, options: dict[str, Any]
) -> Report:
    target = output.path
    inputs.check_distinct(output.path)
    if output.folder is not None:
        output.folder.mkdir(parents=True, exist_ok=True)
    with suggesting_overwrite(output.overwrite), _show_progress(flags) as progress:
        return registry.convert(
            inputs.open(),
            target,
            target=output.to,
            timeout=flags.timeout,
            overwrite=flags.overwrite,
            progress=progress,
            options=options,
        )


def _convert_to_stream(
    registry: Registry, inputs: Inputs, to: str | None, flags: ConvertFlags, options: dict[str, Any]
) -> Report:
    _check_standard_output(inputs, to, flags)
    target = Target()
    with _show_progress(flags) as progress:
        report = registry.convert(
            inputs.open(), target, target=to, timeout=flags.timeout, progress=progress, options=options
        )
    try:
        sys.stdout.buffer.write(target.read())
        sys.stdout.buffer.flush()
    except OSError as error:
        # Python would flush the rest of the buffer at exit, fail again, and exit with status 120
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise OSError(error.errno, error.strerror, "standard output") from error
    if len(target.names) > 1:
        text = tr("materials and textures need separate files and were left out; give an OUTPUT")
        terminal.inform(labeled("note", text))
    return report


def _show_progress(flags: ConvertFlags) -> AbstractContextManager[Listener | None]:
    # a log and a bar would overwrite each other
    return show_progress(is_silent=flags.as_json or is_quiet() or is_verbose())


def _check_standard_output(inputs: Inputs, to: str | None, flags: ConvertFlags) -> None:
    if to is None:
        raise click.UsageError("standard output has no extension; add --to FORMAT")
    if flags.as_json:
        raise click.UsageError("standard output takes either the model or --json; give an OUTPUT file")
    if sys.stdout is None:
        raise click.UsageError("standard output is closed; give an OUTPUT file")
    if sys.stdout.isatty():
        raise click.UsageError("standard output is a terminal; redirect it to a file or a pipe")
    output = os.fstat(sys.stdout.fileno())
    if stat.S_ISREG(output.st_mode) and (output.st_dev, output.st_ino) in map(identity, inputs.paths):
        raise click.UsageError("standard output is the input itself; redirect it to another file")


def print_report(target: str, report: Report, registry: Registry) -> None:
    """Print what a conversion changed, did and lost, on standard error unless the command is quiet."""
    name = tr("standard output") if target == STREAM else target
    terminal.inform(printable(f"{name}: {report_text.summarize(report)}"))
    for line in report_text.list_actions(report, registry):
        terminal.inform(printable(line), indent="  ")
    terminal.print_timings(report)
    if is_verbose():
        terminal.print_notes(report_text.translate_notes(report.notes, registry), indent="  ")
        return
    for line in report_text.list_notes(report.notes, report.losses, registry):
        terminal.inform(printable(line), indent="  ")
