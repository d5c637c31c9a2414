"""Registry, the object to embed: it loads plug-ins, resolves requests and runs chains.

with Registry() as registry:
    report = registry.convert("bracket.stl", "bracket.3mf", repair=True, target_height_mm=40)
"""

from __future__ import annotations

import copy
import io
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Unpack, cast

from msgspec import structs

from meshhub.engine.async_twin import async_twin
from meshhub.engine.contract import Cancel, Engine, Task
from meshhub.engine.in_process import InProcess
from meshhub.engine.run_many import check_outputs, run_many
from meshhub.engine.run_options import (
    CheckRunOptions,
    QuoteRunOptions,
    RenderRunOptions,
    RunOptions,
    RunSettings,
    split_keywords,
)
from meshhub.engine.run_task import run_task
from meshhub.errors import MeshhubError
from meshhub.model.chain import Chain, Request, Write
from meshhub.model.estimate import Estimate
from meshhub.model.plans import LOCAL, Caller
from meshhub.model.progress import Listener
from meshhub.model.report import Inspection, Report
from meshhub.model.source import Source, Target
from meshhub.model.verdict import Result, Verdict
from meshhub.pipeline.disabled import read_disabled
from meshhub.pipeline.existing_files import Overwrite, Replacing
from meshhub.pipeline.fork_lock import IMPORTING
from meshhub.pipeline.hooks import Hooks, raise_objections
from meshhub.pipeline.inputs import Input, Inputs
from meshhub.pipeline.loading import Plugins
from meshhub.pipeline.network_printers import list_printers
from meshhub.pipeline.opening import open_model, open_models
from meshhub.pipeline.outputs import Output, check_picture_name, open_output, place_first_bed, target_format
from meshhub.pipeline.plugin_index import PluginIndex
from meshhub.pipeline.program_scenes import decode
from meshhub.pipeline.resolve import CheckedRequest, check_request, resolve
from meshhub.pipeline.storages import send

if TYPE_CHECKING:
    from meshhub.model.capabilities import NetworkPrinter
    from meshhub.model.quote import Quote
    from meshhub.model.scene import Scene
    from meshhub.pipeline.rates import RateCard

log = logging.getLogger(__name__)


class Registry(PluginIndex):
    """Plug-ins and their declarations; immutable. Two registries are independent, unless one was made from the other.

    Args:
        plugins: Modules or objects with hook implementations, in addition to the installed ones. One that is also
            installed takes the place of its entry point.
        entry_points: Whether to load plug-ins that installed distributions register under the group `meshhub`.
        builtins: Whether to load the plug-ins that come with meshhub.
        engine: Where chains run (default: in this process).
        hooks: Time limits of the hooks of requests (default: none); applies only to this registry.
        disabled: Names of built-in and installed plug-ins to leave out, in addition to those that the user has disabled
            (`meshhub plugins disable`, MESHHUB_DISABLED_PLUGINS).
    """

    def __init__(
        self,
        plugins: Iterable[object] = (),
        *,
        entry_points: bool = True,
        builtins: bool = True,
        engine: Engine | None = None,
        hooks: Hooks | None = None,
        disabled: Iterable[str] = (),
    ) -> None:
        """Load the plug-ins and collect their declarations. A broken plug-in becomes a fault, never an exception."""
        self._hooks = hooks if hooks is not None else Hooks()
        self._engine: Engine = engine if engine is not None else InProcess()
        super().__init__(
            Plugins(
                plugins,
                entry_points=entry_points,
                builtins=builtins,
                disabled=read_disabled() | set(disabled),
            )
        )
        self._hooks.attach(self._loaded, self._engine.ask)

    def using(self, engine: Engine, hooks: Hooks) -> Registry:
        """Return a registry with the same plug-ins, another engine and other hooks. The caller closes it."""
        registry = copy.copy(self)
        registry._engine, registry._hooks = engine, hooks
        hooks.attach(self._loaded, engine.ask)
        return registry

    def __enter__(self) -> Registry:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        formats = f"{len(self.formats)} formats, {len(self.operations)} operations"
        return f"<Registry: {len(self.plugins)} plug-ins, {formats}, {type(self._engine).__name__}>"

    @property
    def engine(self) -> Engine:
        """Where chains run."""
        return self._engine

    @property
    def hooks(self) -> Hooks:
        """Calls the hooks of requests."""
        return self._hooks

    def check_request(self, request: Request, caller: Caller = LOCAL) -> CheckedRequest:
        """Check target, entitlements and options before a source is available.

        Call `entitled` first for a caller with grants.

        Raises:
            RequestError: See `pipeline.resolve.check_request`.
            MissingDependency: A capability needs a package that is not installed.
            RequestRefused: A rule of a plug-in rejects the target or an operation.
        """
        checked = check_request(self.declarations, request, caller, self._hooks.check_options)
        raise_objections([item for declared in checked.capabilities for item in self.objections_to(caller, declared)])
        return checked

    def resolve(self, request: Request | CheckedRequest, source: Source, caller: Caller = LOCAL) -> Chain:
        """Return the chain for a request; touches no geometry.

        Raises:
            MeshhubError: See `pipeline.resolve.resolve`.
            RequestRefused: A rule or a review of a plug-in rejects the request.
            PluginError: A review fails; the request is rejected.
        """
        caller = self.entitled(caller)
        checked = request if isinstance(request, CheckedRequest) else self.check_request(request, caller)
        chain = resolve(self.declarations, checked, source, caller, self._hooks.sniffing(), self._hooks.check_options)
        for step in chain.steps:
            log.debug("chose %s: %s; options %s", step, step.because, step.options or "none")
        raise_objections(self._hooks.review(chain, caller))
        return chain

    def entitled(self, caller: Caller) -> Caller:
        """Return the caller with the entitlements that plug-ins grant in addition to the plan's.

        Call this once before resolving several chains for one request. A grant that fails grants nothing.
        """
        return caller if caller.entitled else self._hooks.grant(caller)

    @contextmanager
    def open_models(self, source: Input) -> Iterator[list[Source]]:
        """Yield the models of an input: those of a ZIP archive, each with its companions, or the input itself.

        The files of an archive exist until the block ends. Its models may be used in other threads.

        Args:
            source: As for `convert`.
        Raises:
            EmptyModel, UnsupportedFormat: The archive holds no model.
            UnreadableFile, UnsafeArchive: The archive is damaged, or cannot be unpacked safely.
            OSError, TypeError: The input cannot be opened.
        """
        with open_models(source, self.declarations, self._hooks) as models:
            yield models

    @contextmanager
    def open_model(self, source: Inputs, options: Mapping[str, object] = MappingProxyType({})) -> Iterator[Source]:
        """Yield the model of an input, or of several inputs as one; a ZIP archive holds one, with its companions.

        Args:
            source: As for `convert`.
            options: Options by name; with `input_format`, an archive is not opened.
        Raises:
            MeshhubError, OSError, TypeError: See `open_models`; or an archive holds several models.
            ValueError: The list of inputs is empty.
        """
        is_one_file = options.get("input_format") is not None
        with open_model(source, self.declarations, self._hooks, is_one_file=is_one_file) as model:
            yield model

    def printers(self, caller: Caller = LOCAL) -> list[NetworkPrinter]:
        """Return the printers of all storages that the caller may use, with their states.

        Raises:
            MeshhubError, OSError: A storage cannot list its printers; those that do not respond are listed.
        """
        return list_printers(self.declarations.storages, caller)

    def send(self, file: str | os.PathLike[str], address: str, *, overwrite: bool = False) -> None:
        """Put a file at an address of a storage as it is, such as G-code on a printer.

        Args:
            file: Path of the file.
            address: Address, such as "moonraker://voron/part.gcode".
            overwrite: Whether a file at the address is replaced.
        Raises:
            RequestError: No storage opens the address, or it names no file.
            OutputExists: The file exists, and `overwrite` is false.
            MeshhubError, OSError: The storage cannot store the file.
        """
        send(Path(file), address, self.declarations.storages, overwrite=overwrite)

    def convert(
        self,
        source: Inputs,
        output: Output,
        *,
        target: str | None = None,
        overwrite: Overwrite = None,
        **keywords: Unpack[RunOptions],
    ) -> Report:
        """Convert one model.

        An output path appears whole or not at all, because the file is written to a temporary folder beside it and then
        renamed.

        Args:
            source: Path, address of a storage, content of a file, binary file, scene, or a named source with its
                companions. A ZIP archive holds one model and its companions; `open_models` opens one with several.
                A list of these becomes one scene, each file an object of its own.
            output: Path, address of a storage, binary file, or a `Target` in memory or in a folder. With `each_bed`, a
                path "NAME.EXT" or address stands for the files "NAME-bed1.EXT", "NAME-bed2.EXT", ….
            target: Id or extension of the target format (default: the extension of the output).
            overwrite: Which existing output to replace: any (True), none (False), or only a result of meshhub or an
                empty file (None). An input, its companions, and a file that has the name of a companion of the result
                and other content, are never replaced.
            keywords: Those of `RunOptions`: caller, timeout, cancel, progress, options, and every built-in option.
        Raises:
            MeshhubError: The request is invalid, or the conversion failed.
            OSError: The output cannot be written.
            TypeError: The source or the output has another type.
        """
        run, options = split_keywords(**keywords)
        request = Request(target=target_format(output, target, self.declarations), options=options)
        return cast(Report, self._run_to_output(source, request, run, output, overwrite=overwrite))

    def convert_many(
        self,
        conversions: Iterable[tuple[Inputs, Output]],
        *,
        target: str | None = None,
        overwrite: Overwrite = None,
        on_result: Callable[[int, Report | MeshhubError | OSError], None] | None = None,
        **keywords: Unpack[RunOptions],
    ) -> list[Report | MeshhubError | OSError]:
        """Convert several models, as many at a time as the engine has workers, and return a report or an error of each.

        Args:
            conversions: Source and output of each, as for `convert`.
            target: Target format of all (default: the extension of each output).
            overwrite: As for `convert`.
            on_result: Called in this thread with the index of each conversion that has ended, and its report or error.
                An exception that it raises stops the others.
            keywords: Those of `convert`, for all. `timeout` applies to each, `cancel` stops all, and `progress` is
                called in the threads of the conversions.
        Raises:
            ValueError: Two conversions have one output.
            TypeError: A source or an output has another type.
        """
        pairs = list(conversions)
        check_outputs([output for _, output in pairs])
        cancel = keywords.get("cancel") or Cancel()
        keywords["cancel"] = cancel
        calls = [
            partial(self.convert, source, output, target=target, overwrite=overwrite, **keywords)
            for source, output in pairs
        ]
        return run_many(calls, self._engine.workers, cancel, on_result)

    def convert_bytes(self, source: Inputs, target: str, **keywords: Unpack[RunOptions]) -> bytes:
        """Convert one model and return the content of the file. Takes the keywords of `convert` except `overwrite`.

        Raises:
            MeshhubError: The request is invalid, or the conversion failed.
            UnsupportedTarget: The result has companions, such as textures; convert to a `Target` instead.
        """
        content = io.BytesIO()
        self.convert(source, content, target=target, **keywords)
        return content.getvalue()

    def read(self, source: Inputs, **keywords: Unpack[RunOptions]) -> Scene:
        """Read one model, run the operations that options name, and return the scene in millimeters, Z up.

        `convert` writes a scene. Takes the keywords of `convert` except `target` and `overwrite`. Raises MeshhubError.
        """
        run, options = split_keywords(**keywords)
        with self._resolved(source, Request(purpose="read", options=options), run) as task:
            self._run(task, run.timeout, run.cancel)
        return decode(task.target.read())

    def write(
        self,
        scene: Scene,
        output: Output,
        *,
        target: str | None = None,
        overwrite: Overwrite = None,
        **keywords: Unpack[RunOptions],
    ) -> Report:
        """Write a scene. Takes the keywords of `convert`, and returns its report."""
        return self.convert(scene, output, target=target, overwrite=overwrite, **keywords)

    def inspect(self, source: Inputs, **keywords: Unpack[RunOptions]) -> Inspection:
        """Inspect one model: size, holes, bodies, whether it is printable. Raises MeshhubError.

        Takes the keywords of `convert` except `target` and `overwrite`.
        """
        run, options = split_keywords(**keywords)
        with self._resolved(source, Request(purpose="inspect", options=options), run) as task:
            return cast(Inspection, self._run(task, run.timeout, run.cancel))

    def check(
        self,
        source: Inputs,
        *,
        marked: Output | None = None,
        overwrite: Overwrite = None,
        **keywords: Unpack[CheckRunOptions],
    ) -> Verdict:
        """Check whether one model prints: what is wrong with it, where, and what to do.

        With options of operations, the model is checked after them. Raises MeshhubError, and OSError for `marked`.

        Args:
            source: As for `convert`.
            marked: Where to write the model with the findings as colors and its places as balls, as for `convert`.
                Default: nowhere.
            overwrite: As for `convert`.
            keywords: As for `convert`; also the options of checks.
        """
        run, options = split_keywords(**keywords)
        target = "" if marked is None else target_format(marked, None, self.declarations)
        request = Request(purpose="check", target=target, options=options)
        return cast(Verdict, self._run_to_output(source, request, run, marked or Target(), overwrite=overwrite))

    def estimate(self, source: Inputs, **keywords: Unpack[QuoteRunOptions]) -> Estimate:
        """Estimate the print of one model: weight, support and time. Takes the keywords of `quote` except `rates`.

        Raises MeshhubError.
        """
        return self.quote(source, **keywords).estimate

    def quote(
        self,
        source: Inputs,
        *,
        rates: RateCard | str | os.PathLike[str] | None = None,
        **keywords: Unpack[QuoteRunOptions],
    ) -> Quote:
        """Estimate the print of one model, and compute its price.

        With options of operations, the model is estimated after them. Raises MeshhubError.

        Args:
            source: As for `convert`.
            rates: Rate card, or the path of one. Default: none, so the quote has no price.
            keywords: As for `check`, except `checks` and `skip_checks`; also `quantity`, `material` and `slicer`.
        """
        with IMPORTING.held():
            from meshhub.pipeline.rate_files import read_rates
            from meshhub.pipeline.rates import RateCard, complete_options, make_quote

        run, requested = split_keywords(**keywords)
        card = rates if isinstance(rates, RateCard | None) else read_rates(rates)
        options = complete_options(card, requested, self.declarations)
        with self._resolved(source, Request(purpose="quote", options=options), run) as task:
            verdict = cast(Verdict, self._run(task, run.timeout, run.cancel))
        return make_quote(verdict, card, options)

    def render(
        self, source: Inputs, output: Output, *, overwrite: Overwrite = None, **keywords: Unpack[RenderRunOptions]
    ) -> Report:
        """Draw a picture of one model, as PNG.

        Listeners receive reports of conversions only, not of pictures and inspections.

        Args:
            source: As for `convert`.
            output: Path or address with the extension .png, binary file, or a `Target` in memory or in a folder.
            overwrite: As for `convert`.
            keywords: As for `convert`; also the options of the picture (`toolkit.rendering.options`).
        Raises:
            MeshhubError: The request is invalid, or the file cannot be read.
            OSError: The output cannot be written.
        """
        check_picture_name(output)
        run, options = split_keywords(**keywords)
        request = Request(purpose="render", options=options)
        return cast(Report, self._run_to_output(source, request, run, output, overwrite=overwrite))

    def run(
        self,
        chain: Chain,
        source: Source,
        target: Target | None = None,
        *,
        overwrite: Overwrite = None,
        timeout: float | None = None,
        cancel: Cancel | None = None,
        progress: Listener | None = None,
    ) -> Result:
        """Run a resolved chain, and return its report, inspection or verdict. Raises MeshhubError.

        A chain that writes needs a target; `overwrite` is as for `convert`. The target is filled directly, so a run
        that fails may leave files in its folder. Listeners receive the report of a conversion.
        """
        if target is not None and target.folder is not None and chain.writes:
            replacing = Replacing(overwrite, source, self.declarations.formats.values)
            replacing.check(target.folder / target.name)
        task = Task(chain=chain, source=source, target=target or Target(), progress=progress)
        return self._run(task, timeout, cancel)

    convert_async = async_twin(convert)
    convert_many_async = async_twin(convert_many)
    convert_bytes_async = async_twin(convert_bytes)
    read_async = async_twin(read)
    write_async = async_twin(write)
    inspect_async = async_twin(inspect)
    check_async = async_twin(check)
    estimate_async = async_twin(estimate)
    quote_async = async_twin(quote)
    render_async = async_twin(render)

    def close(self) -> None:
        """Close the engine, and wait for the listeners of plug-ins."""
        self._engine.close()
        self._hooks.close()

    @contextmanager
    def _resolved(self, source: Inputs, request: Request, run: RunSettings) -> Iterator[Task]:
        """Yield the task of a request, with a target in memory."""
        with self.open_model(source, request.options) as opened:
            yield Task(chain=self.resolve(request, opened, run.caller), source=opened, progress=run.progress)

    def _run_to_output(
        self, source: Inputs, request: Request, run: RunSettings, output: Output, *, overwrite: Overwrite
    ) -> Result:
        """Run a request, and write its result, if it has one, to an output that is none of the files of `source`."""
        with self._resolved(source, request, run) as task:
            if isinstance(task.chain.ending, Write) and task.chain.ending.each_bed:
                output = place_first_bed(output)
            if not task.chain.writes:
                return self._run(task, run.timeout, run.cancel)
            replacing = Replacing(overwrite, source, self.declarations.formats.values)
            with open_output(output, self.declarations.storages, replacing) as target:
                return self._run(structs.replace(task, target=target), run.timeout, run.cancel)

    def _run(self, task: Task, timeout: float | None, cancel: Cancel | None) -> Result:
        return run_task(self._engine, self._hooks, task, self.options, timeout, cancel)
