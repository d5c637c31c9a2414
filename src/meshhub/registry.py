"""The object to embed: load plug-ins, resolve requests, run chains.

with Registry() as registry:
    report = registry.convert("bracket.stl", "bracket.3mf", repair=True, target_height_mm=40)
"""

from __future__ import annotations

import copy
import functools
import io
import logging
import os
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from msgspec import structs

from meshhub.engine.contract import Cancel, Engine, Task
from meshhub.engine.in_process import InProcess
from meshhub.errors import MeshhubError, PluginError, RequestRefused, UnsupportedTarget, quote
from meshhub.model.capabilities import Format, Operation, Writer
from meshhub.model.chain import Chain, Request
from meshhub.model.options import OptionField
from meshhub.model.plans import LOCAL, Caller, Objection, Plan
from meshhub.model.progress import Listener, Progress
from meshhub.model.recipes import Recipe
from meshhub.model.report import Failure, FileReport, Inspection, Report
from meshhub.model.source import Source, Target
from meshhub.model.translations import Texts
from meshhub.pipeline.advice import drop_useless_advice, drop_useless_alternatives
from meshhub.pipeline.archived_models import only_model, opened_models
from meshhub.pipeline.collecting import collect
from meshhub.pipeline.declaration_check import check_declaration
from meshhub.pipeline.declarations import Declarations
from meshhub.pipeline.disabled import read_disabled
from meshhub.pipeline.hooks import Hooks
from meshhub.pipeline.inputs import Input, open_input
from meshhub.pipeline.loading import Fault, Plugin, Plugins
from meshhub.pipeline.output import Output, open_output, target_format
from meshhub.pipeline.plugin_errors import describe_error, log_arguments
from meshhub.pipeline.resolve import CheckedRequest, check_request, resolve
from meshhub.pipeline.scene_steps import decode

if TYPE_CHECKING:
    import asyncio
    from typing import Unpack

    from meshhub.model.convert_options import ConvertOptions
    from meshhub.model.scene import Scene

log = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")


def _async_twin(method: Callable[P, R]) -> Callable[P, Coroutine[Any, Any, R]]:
    """Return a coroutine function that calls a method in a thread, and stops it when its task is canceled."""

    @functools.wraps(method)
    async def twin(*args: P.args, **kwargs: P.kwargs) -> R:
        import asyncio

        cancel = kwargs.setdefault("cancel", None) or Cancel()
        kwargs["cancel"] = cancel
        if (listener := kwargs.get("progress")) is not None:
            kwargs["progress"] = _in_loop(asyncio.get_running_loop(), cast(Listener, listener))
        work = asyncio.ensure_future(asyncio.to_thread(method, *args, **kwargs))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            assert isinstance(cancel, Cancel)
            cancel()
            # no task awaits the work now: mark its error as retrieved
            work.add_done_callback(lambda done: done.cancelled() or done.exception())
            raise

    twin.__doc__ = (
        f"Call `{method.__name__}` in a thread; canceling the task stops the conversion as `cancel` does. "
        "The event loop calls `progress`."
    )
    return twin


def _in_loop(loop: asyncio.AbstractEventLoop, listener: Listener) -> Listener:
    """Return a callback for another thread that calls a listener in the event loop and waits for its return."""

    async def call(progress: Progress) -> None:
        listener(progress)

    def relay(progress: Progress) -> None:
        import asyncio

        asyncio.run_coroutine_threadsafe(call(progress), loop).result()

    return relay


def _describe_archive(source: Input) -> str:
    """Return the name of an archive for messages."""
    if isinstance(source, Source):
        return quote(source.name)
    return quote(Path(source).name) if isinstance(source, str | os.PathLike) else "the archive"


def _raise_objections(objections: Sequence[Objection]) -> None:
    """Raise RequestRefused, which lists all objections, if there are any."""
    if objections:
        messages = (" — ".join(filter(None, (item.message, item.remedy))) for item in objections)
        raise RequestRefused("; ".join(messages), code=objections[0].code)


class Registry:
    """Plug-ins and their declarations; immutable. Two registries share nothing, unless one was made from the other.

    Args:
        plugins: Modules or objects with hook implementations, in addition to the installed ones.
        entry_points: Whether to load plug-ins that installed distributions register under the group `meshhub`.
        builtins: Whether to load the plug-ins that come with meshhub.
        engine: Where chains run (default: in this process).
        hooks: Where the hooks of requests run (default: in this process); belongs to this registry alone.
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
        self._loaded = Plugins(
            plugins,
            entry_points=entry_points,
            builtins=builtins,
            refusal=self._hooks.refusal,
            disabled=read_disabled() | set(disabled),
        )
        self._collected = collect(self._loaded)
        self._hooks.attach(self._loaded)

    def using(self, engine: Engine, hooks: Hooks) -> Registry:
        """Return a registry with the same plug-ins that runs chains and hooks elsewhere.

        The caller closes the new registry; this one stays as it is.
        """
        registry = copy.copy(self)
        registry._engine, registry._hooks = engine, hooks
        hooks.attach(self._loaded)
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
        """Where the hooks of requests run."""
        return self._hooks

    @property
    def declarations(self) -> Declarations:
        """Every registered format, reader, writer and operation."""
        return self._collected.declarations

    @property
    def formats(self) -> Mapping[str, Format]:
        """Formats by id; `declarations` lists which can be read and written."""
        return self.declarations.formats

    @property
    def operations(self) -> Mapping[str, Operation]:
        """Operations by id, in the order in which chains run them."""
        return {declared.capability.id: declared.capability for declared in self.declarations.operations}

    @property
    def options(self) -> Mapping[str, OptionField]:
        """Options of the host, and of all readers, operations and writers, by name."""
        return self.declarations.fields()

    @property
    def recipes(self) -> Mapping[str, Recipe]:
        """Recipes by id."""
        return MappingProxyType(dict(self.declarations.recipes))

    @property
    def plans(self) -> Mapping[str, Plan]:
        """Customer plans by id."""
        return MappingProxyType(self._collected.plans)

    @property
    def plugins(self) -> tuple[Plugin, ...]:
        """The loaded plug-ins."""
        return tuple(self._loaded.loaded)

    @property
    def disabled_plugins(self) -> tuple[Plugin, ...]:
        """The plug-ins that are installed, but disabled."""
        return tuple(self._loaded.disabled)

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Defects of plug-ins: those found on loading, and hooks that are not called for now."""
        return *self._loaded.faults, *self._hooks.faults

    def texts(self, language: str) -> Texts:
        """Return the texts of declarations in another language, as far as plug-ins translate them.

        Args:
            language: Tag such as "de" or "de-AT", or several as in the header Accept-Language; an unknown one means
                English.
        """
        return self._collected.translations.texts(language)

    def check(self, request: Request, caller: Caller = LOCAL) -> CheckedRequest:
        """Check target, entitlements and options before a source is available.

        Call `entitled` first for a caller with grants.

        Raises:
            RequestError: See `pipeline.resolve.check_request`.
            MissingDependency: A capability needs a package that is not installed.
            RequestRefused: A rule of a plug-in rejects the target or an operation.
        """
        checked = check_request(self.declarations, request, caller, self._hooks.check_options)
        capabilities = [operation.capability for operation in checked.operations]
        objections = [item for capability in capabilities for item in self.objections_to(caller, capability)]
        if checked.writer is not None:
            objections += self.objections_to(caller, checked.writer.capability)
        _raise_objections(objections)
        return checked

    def objections_to(self, caller: Caller, capability: Writer | Operation) -> list[Objection]:
        """Return the objections that rules of plug-ins declare to a writer or an operation for a caller."""
        rules = [rule for rule in self._collected.rules if rule.concerns(caller.plan)]
        if isinstance(capability, Operation):
            return [rule.objection for rule in rules if capability.id in rule.operations]
        return [rule.objection for rule in rules if capability.format.id in rule.formats]

    def resolve(self, request: Request | CheckedRequest, source: Source, caller: Caller = LOCAL) -> Chain:
        """Return the chain for a request; touches no geometry.

        Raises:
            MeshhubError: See `pipeline.resolve.resolve`.
            RequestRefused: A rule or a review objects.
            PluginError: A review fails; the request is rejected.
        """
        caller = self.entitled(caller)
        checked = request if isinstance(request, CheckedRequest) else self.check(request, caller)
        chain = resolve(self.declarations, checked, source, caller, self._hooks.sniffing(), self._hooks.check_options)
        for step in chain.steps:
            log.debug("chose %s: %s; options %s", step, step.because, step.options or "none")
        self._review(chain, caller)
        return chain

    def entitled(self, caller: Caller) -> Caller:
        """Return the caller with the entitlements that plug-ins grant in addition to the plan's.

        Call this once before resolving several chains for one request. A grant that fails grants nothing.
        """
        if caller.entitled:
            return caller
        grants = set(caller.plan.grants)
        for plugin, items, error in self._hooks.call("meshhub_grants", caller=caller):
            if error is None and all(isinstance(item, str) for item in items):
                grants |= set(items)
            else:
                log.error(
                    "the grant of plug-in %r failed and grants nothing",
                    plugin.name,
                    exc_info=log_arguments(error),
                )
        plan = structs.replace(caller.plan, grants=frozenset(grants))
        return structs.replace(caller, plan=plan, entitled=True)

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
        with (
            open_input(source, self.declarations.storages) as opened,
            opened_models(opened, self.declarations, self._hooks.sniffing()) as models,
        ):
            yield models

    @contextmanager
    def open_model(self, source: Input, options: Mapping[str, object] = MappingProxyType({})) -> Iterator[Source]:
        """Yield the model of an input; a ZIP archive holds one, with its companions.

        Args:
            source: As for `convert`.
            options: Options by name; with `input_format`, an archive is not opened.
        Raises:
            MeshhubError, OSError, TypeError: See `open_models`; or an archive holds several models.
        """
        if options.get("input_format") is not None:
            with open_input(source, self.declarations.storages) as opened:
                yield opened
            return
        with self.open_models(source) as models:
            yield only_model(models, _describe_archive(source))

    def convert(  # noqa: PLR0913 - public keywords; a struct of settings would make each call longer
        self,
        source: Input,
        target: Output,
        *,
        to: str | None = None,
        caller: Caller = LOCAL,
        timeout: float | None = None,
        cancel: Cancel | None = None,
        progress: Listener | None = None,
        overwrite: bool = True,
        options: Mapping[str, object] = MappingProxyType({}),
        **keywords: Unpack[ConvertOptions],
    ) -> Report:
        """Convert one model.

        A target path appears whole or not at all: the file is written to a temporary folder beside it and then
        renamed.

        Args:
            source: Path, address of a storage, content of a file, binary file, scene, or a named source with its
                companions. A ZIP archive holds one model and its companions; `open_models` opens one with several.
            target: Path, address of a storage, binary file, or a target in memory or in a folder.
            to: Target format (default: the target's extension).
            caller: Its plan decides about entitlements (default: all of them).
            timeout: Seconds until the engine stops the conversion.
            cancel: Stops the conversion from another thread.
            progress: Called in this thread with a `Progress` when a step begins, at most ten times a second while it
                runs, and at the end. An exception that it raises stops the conversion and reaches the caller.
            overwrite: Whether to replace an existing target. An existing file with the name of a companion and other
                content always stays.
            options: Options by name; for those of installed plug-ins, and for names that a program computes.
            keywords: Built-in options, typed for type checkers.
        Raises:
            MeshhubError: The request is invalid, or the conversion failed.
            OSError: The target cannot be written.
            TypeError: The source or the target has another type.
        """
        request = Request(target=target_format(target, to), options={**options, **keywords})
        with self.open_model(source, request.options) as opened:
            chain = self.resolve(request, opened, caller)
            with open_output(target, self.declarations.storages, overwrite=overwrite) as staged:
                task = Task(chain=chain, source=opened, target=staged, progress=progress)
                return self._perform(task, timeout, cancel)

    def convert_bytes(
        self,
        source: Input,
        to: str,
        *,
        caller: Caller = LOCAL,
        timeout: float | None = None,
        cancel: Cancel | None = None,
        progress: Listener | None = None,
        options: Mapping[str, object] = MappingProxyType({}),
        **keywords: Unpack[ConvertOptions],
    ) -> bytes:
        """Convert one model and return the content of the file.

        Args:
            source: As for `convert`.
            to: Target format.
            caller: As for `convert`.
            timeout: As for `convert`.
            cancel: As for `convert`.
            progress: As for `convert`.
            options: As for `convert`.
            keywords: As for `convert`.
        Raises:
            MeshhubError: The request is invalid, or the conversion failed.
            UnsupportedTarget: The result has companions, such as textures; convert to a `Target` instead.
        """
        content = io.BytesIO()
        self.convert(
            source,
            content,
            to=to,
            caller=caller,
            timeout=timeout,
            cancel=cancel,
            progress=progress,
            options=options,
            **keywords,
        )
        return content.getvalue()

    def read(
        self,
        source: Input,
        *,
        caller: Caller = LOCAL,
        timeout: float | None = None,
        cancel: Cancel | None = None,
        progress: Listener | None = None,
        options: Mapping[str, object] = MappingProxyType({}),
        **keywords: Unpack[ConvertOptions],
    ) -> Scene:
        """Read one model, run the operations that options name, and return the scene in millimeters, Z up.

        `convert` writes a scene.

        Args:
            source: Path, address of a storage, content of a file, binary file, scene, or a named source with its
                companions.
            caller: Its plan decides about entitlements (default: all of them).
            timeout: Seconds until the engine stops.
            cancel: Stops the engine from another thread.
            progress: As for `convert`.
            options: Options by name; for those of installed plug-ins, and for names that a program computes.
            keywords: Built-in options, typed for type checkers.
        Raises:
            MeshhubError: The request is invalid, the file cannot be read, or an operation failed.
        """
        target = Target("scene")
        request = Request(purpose="read", options={**options, **keywords})
        with self.open_model(source, request.options) as opened:
            chain = self.resolve(request, opened, caller)
            self._perform(Task(chain=chain, source=opened, target=target, progress=progress), timeout, cancel)
        return decode(target.read())

    def write(  # noqa: PLR0913 - public keywords, those of `convert`
        self,
        scene: Scene,
        target: Output,
        *,
        to: str | None = None,
        caller: Caller = LOCAL,
        timeout: float | None = None,
        cancel: Cancel | None = None,
        progress: Listener | None = None,
        overwrite: bool = True,
        options: Mapping[str, object] = MappingProxyType({}),
        **keywords: Unpack[ConvertOptions],
    ) -> Report:
        """Write a scene. Takes the keywords and options of `convert`, and returns its report."""
        return self.convert(
            scene,
            target,
            to=to,
            caller=caller,
            timeout=timeout,
            cancel=cancel,
            progress=progress,
            overwrite=overwrite,
            options=options,
            **keywords,
        )

    def run(
        self,
        chain: Chain,
        source: Source,
        target: Target,
        *,
        timeout: float | None = None,
        cancel: Cancel | None = None,
        progress: Listener | None = None,
    ) -> Report:
        """Run a resolved chain on the registry's engine and inform the listeners. Raises MeshhubError."""
        return self._perform(Task(chain=chain, source=source, target=target, progress=progress), timeout, cancel)

    def inspect(
        self,
        source: Input,
        *,
        caller: Caller = LOCAL,
        timeout: float | None = None,
        cancel: Cancel | None = None,
        progress: Listener | None = None,
        options: Mapping[str, object] = MappingProxyType({}),
        **keywords: Unpack[ConvertOptions],
    ) -> Inspection:
        """Inspect one model: size, holes, bodies, whether it is printable. Raises MeshhubError."""
        request = Request(purpose="inspect", options={**options, **keywords})
        with self.open_model(source, request.options) as opened:
            chain = self.resolve(request, opened, caller)
            return self.examine(chain, opened, timeout=timeout, cancel=cancel, progress=progress)

    def render(  # noqa: PLR0913 - public keywords, those of `convert`
        self,
        source: Input,
        target: Output,
        *,
        caller: Caller = LOCAL,
        timeout: float | None = None,
        cancel: Cancel | None = None,
        progress: Listener | None = None,
        overwrite: bool = True,
        options: Mapping[str, object] = MappingProxyType({}),
        **keywords: Any,
    ) -> Report:
        """Draw a picture of one model, as PNG.

        Listeners receive reports of conversions only, not of pictures and inspections.

        Args:
            source: Path, address of a storage, content of a file, binary file, scene, or a named source with its
                companions.
            target: Path or address with the extension .png, binary file, or a target in memory or in a folder.
            caller: Its plan decides about entitlements (default: all of them).
            timeout: Seconds until the engine stops.
            cancel: Stops the task from another thread.
            progress: As for `convert`.
            overwrite: Whether to replace an existing file.
            options: Options by name: those of the picture (`toolkit.rendering.options`), of readers and of the host.
            keywords: The same options as keywords.
        Raises:
            MeshhubError: The request is invalid, or the file cannot be read.
            OSError: The target cannot be written.
        """
        if isinstance(target, str | os.PathLike) and Path(target).suffix.lower() != ".png":
            raise UnsupportedTarget(f"pictures are PNG files: name {quote(Path(target).name)} with .png")
        request = Request(purpose="render", options={**options, **keywords})
        with self.open_model(source, request.options) as opened:
            chain = self.resolve(request, opened, caller)
            with open_output(target, self.declarations.storages, overwrite=overwrite) as staged:
                return self.draw(chain, opened, staged, timeout=timeout, cancel=cancel, progress=progress)

    def draw(
        self,
        chain: Chain,
        source: Source,
        target: Target,
        *,
        timeout: float | None = None,
        cancel: Cancel | None = None,
        progress: Listener | None = None,
    ) -> Report:
        """Run a resolved chain that draws a picture, on the registry's engine. Raises MeshhubError."""
        task = Task(chain=chain, source=source, target=target, progress=progress)
        return cast(Report, self._run_task(task, timeout, cancel))

    def examine(
        self,
        chain: Chain,
        source: Source,
        *,
        timeout: float | None = None,
        cancel: Cancel | None = None,
        progress: Listener | None = None,
    ) -> Inspection:
        """Run a resolved chain that only reads, on the registry's engine. Raises MeshhubError."""
        task = Task(chain=chain, source=source, progress=progress)
        return cast(Inspection, self._run_task(task, timeout, cancel))

    convert_async = _async_twin(convert)
    convert_bytes_async = _async_twin(convert_bytes)
    read_async = _async_twin(read)
    write_async = _async_twin(write)
    inspect_async = _async_twin(inspect)
    render_async = _async_twin(render)

    def close(self) -> None:
        """Close the engine, and end the process of hooks if there is one."""
        self._engine.close()
        self._hooks.close()

    def _perform(self, task: Task, timeout: float | None, cancel: Cancel | None) -> Report:
        """Run a conversion on the engine and inform the listeners, also of a failure."""
        try:
            report = cast(Report, self._run_task(task, timeout, cancel))
        except MeshhubError as error:
            self._inform_listeners(
                Report(
                    source=FileReport(format=task.chain.source_format, bytes=task.source.size),
                    target=FileReport(format=task.chain.target_format),
                    error=Failure(error.code, error.message),
                )
            )
            raise
        self._inform_listeners(report)
        return report

    def _run_task(self, task: Task, timeout: float | None, cancel: Cancel | None) -> Report | Inspection:
        """Run a task on the engine; notes and errors advise only what the caller can do."""
        try:
            result = self._engine.run(task, timeout=timeout, cancel=cancel)
        except MeshhubError as error:
            drop_useless_alternatives(error, task.chain, self.options)
            raise
        return structs.replace(result, notes=drop_useless_advice(result.notes, task.chain, self.options))

    def _review(self, chain: Chain, caller: Caller) -> None:
        objections: list[Objection] = []
        for plugin, items, error in self._hooks.call("meshhub_review", chain=chain, caller=caller):
            try:
                objections += [check_declaration(Objection, item) for item in items]
            except Exception as invalid:
                error = error or invalid
            if error is not None:
                # Fail closed: a broken review rejects the request.
                log.error("the review of plug-in %r failed", plugin.name, exc_info=log_arguments(error))
                failure = PluginError(
                    f"the review of plug-in {plugin.name!r} ({plugin.origin}) failed, so the request was rejected; "
                    "report it to its maintainer",
                    code="internal_error",
                )
                failure.details = describe_error(error)
                raise failure
        _raise_objections(objections)

    def _inform_listeners(self, report: Report) -> None:
        for plugin, _, error in self._hooks.call("meshhub_finished", report=report):
            if error is not None:
                log.error("the listener of plug-in %r failed", plugin.name, exc_info=log_arguments(error))
