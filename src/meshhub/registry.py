"""The object one embeds: loads plug-ins, collects what they declare, resolves requests and runs them.

registry = Registry()
report = registry.convert("bracket.stl", "bracket.3mf", repair=True, target_height_mm=40)
"""

from __future__ import annotations

import contextlib
import errno
import filecmp
import logging
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import cast

from msgspec import structs

from meshhub.engine.contract import Cancel, Engine, Task
from meshhub.engine.in_process import InProcess
from meshhub.errors import DiskFull, MeshhubError, OutputExists, PluginError, RequestRefused, UnsupportedTarget
from meshhub.model.chain import Chain, Request
from meshhub.model.plans import LOCAL, Caller, Objection, Plan
from meshhub.model.report import Failure, FileReport, Inspection, Report
from meshhub.model.source import Source, Target
from meshhub.pipeline.collecting import collect
from meshhub.pipeline.declarations import Declarations
from meshhub.pipeline.loading import Fault, Hooks, Plugin, Plugins
from meshhub.pipeline.resolve import resolve

log = logging.getLogger(__name__)


class Registry:
    """Plug-ins and what they declare, frozen when it is built. Two registries never share anything.

    plugins:      modules or objects with hook implementations, beside the installed ones
    entry_points: whether to load what installed distributions register under the group `meshhub`
    builtins:     whether to load the plug-ins that come with meshhub
    engine:       where chains run; in this process unless told
    hooks:        where the hooks of requests run; default: in this process. For this registry alone
    """

    def __init__(
        self,
        plugins: Iterable[object] = (),
        *,
        entry_points: bool = True,
        builtins: bool = True,
        engine: Engine | None = None,
        hooks: Hooks | None = None,
    ) -> None:
        """Load and collect. Never raises for a plug-in's sake: see `faults`."""
        hooks = hooks if hooks is not None else Hooks()
        self._plugins = loaded = Plugins(plugins, entry_points=entry_points, builtins=builtins, refusal=hooks.refusal)
        collected = collect(loaded)
        self.hooks = hooks
        self.engine: Engine = engine if engine is not None else InProcess()
        self.declarations: Declarations = collected.declarations
        self.plans: Mapping[str, Plan] = MappingProxyType(collected.plans)
        self.plugins: tuple[Plugin, ...] = tuple(loaded.loaded)
        self._faults: tuple[Fault, ...] = (*loaded.faults, *collected.faults)

    @property
    def hooks(self) -> Hooks:
        """Where the hooks of requests run."""
        return self._hooks

    @hooks.setter
    def hooks(self, hooks: Hooks) -> None:
        hooks.attach(self._plugins)
        self._hooks = hooks

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Defects of plug-ins: those found on loading, and hooks that are not called now."""
        return *self._faults, *self.hooks.faults

    def resolve(self, request: Request, source: Source, caller: Caller = LOCAL) -> Chain:
        """The chain for a request. Touches no geometry; see `chain.resolve` for what it raises.

        Raises RequestRefused when a review objects, PluginError when one breaks.
        """
        caller = self.entitled(caller)
        chain = resolve(self.declarations, request, source, caller, self.hooks.sniffing())
        self._review(chain, caller)
        return chain

    def entitled(self, caller: Caller) -> Caller:
        """The caller with the entitlements that plug-ins grant beside the plan's; plug-ins are asked once.

        Whoever resolves several chains for one request asks here first. A plug-in that breaks grants nothing.
        """
        if caller.entitled:
            return caller
        grants = set(caller.plan.grants)
        for plugin, items, error in self.hooks.call("meshhub_grants", caller=caller):
            if error is None and all(isinstance(item, str) for item in items):
                grants |= set(items)
            else:
                log.error("plug-in %r failed to say what it grants, and grants nothing", plugin.name, exc_info=error)
        plan = structs.replace(caller.plan, grants=frozenset(grants))
        return structs.replace(caller, plan=plan, entitled=True)

    def convert(
        self,
        source: str | os.PathLike[str] | Source,
        target: str | os.PathLike[str] | Target,
        *,
        to: str | None = None,
        caller: Caller = LOCAL,
        timeout: float | None = None,
        cancel: Cancel | None = None,
        overwrite: bool = True,
        **options: object,
    ) -> Report:
        """Convert one file. `to` is the target format; without it the target's extension tells.

        The target appears whole or not at all: it is written to a temporary folder beside it and
        then renamed. Without `overwrite` an existing target is kept; an existing file with the name of
        a companion and other content is always kept. Raises MeshhubError and its kin; OSError when the
        target cannot be written.
        """
        source = source if isinstance(source, Source) else Source.from_path(source)
        if isinstance(target, Target):
            if to is None:
                raise UnsupportedTarget("a target in memory needs to= to tell the format")
            chain = self.resolve(Request(target=to, options=options), source, caller)
            return self.run(chain, source, target, timeout=timeout, cancel=cancel)
        path = Path(target)
        if to is None and not path.suffix:
            raise UnsupportedTarget(f"{str(path)!r} has no extension that tells the format; give one, or name a format")
        chain = self.resolve(Request(target=to or path.suffix, options=options), source, caller)
        if path.is_dir():
            raise FileExistsError(f"{path} is a folder; name the file to write in it")
        if path.exists() and not path.is_file():
            raise FileExistsError(f"{path} is a device or a pipe, which a finished file cannot replace; name a file")
        # Write to the symlink's target, as a shell redirect does, and keep the link.
        place = path.resolve() if path.is_symlink() else path
        if not place.parent.is_dir():
            raise _no_folder(place)
        if not overwrite and place.exists():
            raise _exists(path)
        with _naming(path):
            folder = Path(tempfile.mkdtemp(prefix=".meshhub-", dir=place.parent))
        try:
            staged = Target(place.name, folder=folder)
            report = self.run(chain, source, staged, timeout=timeout, cancel=cancel)
            with _naming(path):
                _put(staged, folder, place, overwrite=overwrite)
        except DiskFull as error:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return report

    def run(
        self,
        chain: Chain,
        source: Source,
        target: Target,
        *,
        timeout: float | None = None,
        cancel: Cancel | None = None,
    ) -> Report:
        """Run a resolved chain on the registry's engine and tell the listeners. Raises MeshhubError."""
        task = Task(chain=chain, source=source, target=target)
        try:
            report = cast(Report, self.engine.run(task, timeout=timeout, cancel=cancel))
        except MeshhubError as error:
            self._finished(
                Report(
                    source=FileReport(format=chain.source_format, bytes=source.size),
                    target=FileReport(format=chain.target_format),
                    error=Failure(error.code, error.message),
                )
            )
            raise
        self._finished(report)
        return report

    def inspect(
        self,
        source: str | os.PathLike[str] | Source,
        *,
        caller: Caller = LOCAL,
        timeout: float | None = None,
        cancel: Cancel | None = None,
        **options: object,
    ) -> Inspection:
        """Look at one file: its size, holes, bodies, whether it is printable. Raises MeshhubError."""
        source = source if isinstance(source, Source) else Source.from_path(source)
        chain = self.resolve(Request(target=None, options=options), source, caller)
        return cast(Inspection, self.engine.run(Task(chain=chain, source=source), timeout=timeout, cancel=cancel))

    def close(self) -> None:
        """Close the engine, and end the process of hooks if there is one."""
        self.engine.close()
        self.hooks.close()

    def _review(self, chain: Chain, caller: Caller) -> None:
        objections: list[Objection] = []
        for plugin, items, error in self.hooks.call("meshhub_review", chain=chain, caller=caller):
            if error is None and all(isinstance(item, Objection) for item in items):
                objections += items
                continue
            # fail closed
            log.error("the review of plug-in %r failed", plugin.name, exc_info=error)
            raise PluginError(
                f"the review of plug-in {plugin.name!r} ({plugin.origin}) failed, so the request was refused; "
                "its maintainer must fix it",
                code="internal_error",
            )
        if objections:
            told = "; ".join(" — ".join(part for part in (one.message, one.remedy) if part) for one in objections)
            raise RequestRefused(told, code=objections[0].code)

    def _finished(self, report: Report) -> None:
        for plugin, _, error in self.hooks.call("meshhub_finished", report=report):
            if error is not None:
                log.error("plug-in %r failed to hear of a finished conversion", plugin.name, exc_info=error)


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Let errors of the system name the file that the caller asked for, not a temporary one."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        if error.errno == errno.ENOENT:
            raise _no_folder(path) from error
        raise OSError(error.errno, error.strerror, str(path)) from error


def _exists(path: Path) -> OutputExists:
    return OutputExists(f"{path} exists already and was left alone")


def _no_folder(path: Path) -> NotADirectoryError:
    return NotADirectoryError(f"{path.parent} is not a folder; make it first")


def _put(written: Target, folder: Path, place: Path, *, overwrite: bool) -> None:
    """Move a finished target with its companions from its folder to its place. Raises OutputExists, OSError."""
    if not overwrite and os.path.lexists(place):
        raise _exists(place)
    missing = [name for name in written.names[1:] if not _has_companion(folder / name, place.parent / name)]
    for name in missing:
        try:
            _put_new(folder / name, place.parent / name)
        except FileExistsError:
            # another conversion was faster
            _has_companion(folder / name, place.parent / name)
    if overwrite:
        (folder / place.name).replace(place)
        return
    try:
        _put_new(folder / place.name, place)
    except FileExistsError:
        raise _exists(place) from None


def _has_companion(file: Path, place: Path) -> bool:
    """Whether the same content lies at the place of a companion. Raises FileExistsError for other content.

    Companions are named by their content, so other content is another program's file, or edited by hand.
    """
    if not os.path.lexists(place):
        return False
    if not (place.is_file() and filecmp.cmp(file, place, shallow=False)):
        raise FileExistsError(
            f"{place} exists with other content than the result needs there; move it, or name another folder"
        )
    return True


def _put_new(file: Path, place: Path) -> None:
    """Move a file to where none is; a link fails where one appeared meanwhile. Raises FileExistsError."""
    try:
        os.link(file, place)
    except FileExistsError:
        raise
    except OSError:
        # a file system without hard links
        if os.path.lexists(place):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(place)) from None
        file.rename(place)
