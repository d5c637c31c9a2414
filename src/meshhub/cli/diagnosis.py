"""Checks of this installation: packages, plug-ins, temporary folder, isolation of conversions, limits."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec import Struct

from meshhub.cli.loading import load_registry
from meshhub.cli.report_text import format_bytes
from meshhub.engine.isolated import Isolated
from meshhub.engine.scratch import Scratch
from meshhub.errors import MeshhubError, format_count
from meshhub.model.chain import BUILT_IN
from meshhub.model.installing import describe_install
from meshhub.pipeline.hooks import Hooks
from meshhub.registry import Registry
from meshhub.service.settings import Settings, load
from meshhub.toolkit.slicers import SLICERS

Status = Literal["ok", "missing", "warning", "failed"]

_CONVERSION_TIMEOUT_S = 60.0
"""Seconds for a conversion that takes a fraction of a second, so that a loaded machine passes."""

_IMPORT_TIMEOUT_S = 60.0
"""Seconds to import an optional package; the largest takes about two."""

_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)[^;]*(?:;.*extra == ['\"]([\w-]+)['\"])?")
"""Name of a requirement, and the extra to which it belongs."""

_TETRAHEDRON = b"""\
v 0 0 0
v 9 0 0
v 0 9 0
v 0 0 9
f 1 3 2
f 1 2 4
f 1 4 3
f 2 3 4
"""
"""Smallest closed model, as OBJ."""

_USE_MORE_MEMORY = """
from meshhub.engine.limits import Limits, apply_limits
apply_limits(Limits(memory_bytes=256 << 20))
try:
    bytearray(1 << 30)
except MemoryError:
    print("limited")
"""
"""Program that needs more memory than its limit."""


class _Extra(NamedTuple):
    """Purpose of an extra.

    modules: modules that prove that its packages can be imported, or `module:attribute`
    remedy:  default: `pip install`
    """

    purpose: str
    modules: tuple[str, ...]
    remedy: str = ""


EXTRAS = {
    "http": _Extra("the HTTP service and its API keys", ("litestar", "uvicorn", "sqlalchemy")),
    "client": _Extra("the client of a service, and `meshhub jobs`", ("httpx",)),
    "postgres": _Extra("API keys in PostgreSQL", ("psycopg",)),
    "cluster": _Extra("jobs on several machines", ("psycopg", "procrastinate", "obstore")),
    "redis": _Extra("rate limits that several servers share", ("redis",)),
    "opentelemetry": _Extra("traces of requests", ("opentelemetry.sdk",)),
    "meshlab": _Extra(
        "a second stage of repair; pymeshlab is GPL-3.0",
        ("pymeshlab", "pymeshlab:MeshSet.meshing_decimation_quadric_edge_collapse"),
        "apt-get install libgl1 libopengl0",
    ),
    "draco": _Extra("reading glTF files compressed with Draco", ("DracoPy",)),
    "meshopt": _Extra("reading glTF files compressed with meshopt; needs a C++ compiler", ("meshoptimizer",)),
    "step": _Extra("reading and writing STEP", ("OCP.Standard",), "apt-get install libgl1"),
    "text": _Extra("texts on models", ("fontTools.ttLib", "font_lato")),
    "report": _Extra("reports of checks as PDF", ("reportlab",)),
    "textures": _Extra("textures in pictures of models", ("PIL.Image",)),
    "testing": _Extra("the conformance kit for plug-ins", ("pytest",)),
}
"""Extras of meshhub and their purposes, except "all"."""


class Check(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Result of one check."""

    name: str
    status: Status
    message: str
    remedy: str = ""
    seconds: float | None = None


def describe_system() -> dict[str, str]:
    """Return the versions of meshhub, Python and the system."""
    return {
        "meshhub": metadata.version("meshhub"),
        "python": f"{platform.python_version()} ({platform.python_implementation()}, {sys.executable})",
        "system": f"{platform.platform()}, {os.cpu_count()} cores",
    }


def list_packages() -> dict[str, dict[str, str | None]]:
    """Return the versions of the required packages by extra, "" for the base; None for a missing package."""
    packages: dict[str, dict[str, str | None]] = {"": {}, **{extra: {} for extra in EXTRAS}}
    for requirement in metadata.requires("meshhub") or ():
        match = _REQUIREMENT.match(requirement)
        assert match is not None
        name, extra = match[1], match[2] or ""
        if extra in packages and name != "meshhub":
            packages[extra][name] = _find_version(name)
    return packages


def _find_version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def run_checks() -> Iterator[Check]:
    """Run every check, one after the other."""
    yield from _check_packages()
    registry = load_registry()
    yield from _check_plugins(registry)
    yield _check_slicers()
    yield _check_settings()
    yield from _check_cluster()
    yield _check_scratch()
    yield from _check_conversions(registry)
    yield _check_memory_limit()
    yield _check_descendants()


def _check_packages() -> Iterator[Check]:
    for extra, packages in list_packages().items():
        missing = [name for name, version in packages.items() if version is None]
        remedy = describe_install(f"meshhub[{extra}]" if extra else "meshhub", missing)
        if not extra:
            message = f"missing: {', '.join(missing)}" if missing else f"{len(packages)} packages"
            yield Check(
                name="base", status="failed" if missing else "ok", message=message, remedy=remedy * bool(missing)
            )
            continue
        purpose, modules, library_remedy = EXTRAS[extra]
        if missing:
            yield Check(name=extra, status="missing", message=f"for {purpose}", remedy=remedy)
            continue
        error = next(filter(None, map(_try_import, modules)), "")
        versions = ", ".join(f"{name} {version}" for name, version in packages.items())
        if error:
            yield Check(
                name=extra, status="warning", message=f"cannot be imported: {error}", remedy=library_remedy or remedy
            )
        else:
            yield Check(name=extra, status="ok", message=f"{purpose}: {versions}")


def _try_import(reference: str) -> str:
    """Return the last line of the error when another process imports a module or an attribute; "" if it can."""
    module = reference.partition(":")[0]
    command = [sys.executable, "-c", f"import {module}; {reference.replace(':', '.')}"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_IMPORT_TIMEOUT_S, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        return f"{module} took over {_IMPORT_TIMEOUT_S:g} s"
    if done.returncode == 0:
        return ""
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"{module} ended the process with status {done.returncode}"


def _check_plugins(registry: Registry) -> Iterator[Check]:
    foreign_count = sum(plugin.origin != BUILT_IN for plugin in registry.plugins)
    message = f"{len(registry.plugins)} loaded, {foreign_count} of other distributions"
    yield Check(name="plug-ins", status="ok", message=message)
    for fault in registry.faults:
        message = f"{fault.plugin} ({fault.origin}): {fault.message}"
        yield Check(name="plug-ins", status="warning", message=message, remedy="report it to the maintainer")


def _check_slicers() -> Check:
    """List the slicers with which `meshhub quote --slicer` and meshhub-slicer work."""
    found = [
        f"{slicer.label} {slicer.read_version() or '(unknown version)'}: {program}"
        for slicer in SLICERS.values()
        if (program := slicer.find_console()) is not None
    ]
    if found:
        return Check(name="slicers", status="ok", message=", ".join(found))
    return Check(
        name="slicers", status="missing", message="for G-code", remedy="install one: apt-get install prusa-slicer"
    )


def _check_settings() -> Check:
    try:
        origins = load().origins
    except MeshhubError as error:
        return Check(name="settings", status="warning", message=error.message, remedy="correct the setting")
    return Check(name="settings", status="ok", message=f"{len(origins)} set, shown by meshhub config")


def _check_cluster() -> Iterator[Check]:
    """Check the database and the files of jobs, if the settings describe a cluster."""
    try:
        settings = load().settings
        if not settings.is_cluster:
            return
        from meshhub.service.jobs.opening import open_files, open_store

        store, files = open_store(settings), open_files(settings)
    except (MeshhubError, ImportError) as error:
        yield Check(name="cluster", status="warning", message=str(error), remedy="correct the setting")
        return
    try:
        statistics = store.statistics()
        slots = sum(node.slots or 0 for node in statistics.workers)
        queued = format_count(statistics.queued, "job", "jobs")
        workers = format_count(len(statistics.workers), "worker", "workers")
        message = f"{queued} queued, {statistics.running} running; {workers}"
        if slots and statistics.cluster_fault:
            fault, remedy = statistics.cluster_fault
            yield Check(name="cluster", status="warning", message=f"{message}; {fault}", remedy=remedy)
        elif slots:
            yield Check(name="cluster", status="ok", message=f"{message} with {format_count(slots, 'slot', 'slots')}")
        else:
            yield Check(name="cluster", status="warning", message=message, remedy="start one: meshhub work")
    except MeshhubError as error:
        yield Check(name="cluster", status="warning", message=error.message, remedy="check jobs_database_url")
    finally:
        store.close()
    try:
        files.check()
        yield Check(name="job files", status="ok", message=settings.jobs_storage_url or "in the folder of jobs")
    except (MeshhubError, OSError) as error:
        yield Check(name="job files", status="warning", message=str(error), remedy="check jobs_storage_url")


def _check_scratch() -> Check:
    folder = tempfile.gettempdir()
    try:
        scratch = Scratch("job")
        try:
            (scratch.path / "check").write_bytes(b"meshhub")
        finally:
            scratch.remove()
        free = shutil.disk_usage(folder).free
    except OSError as error:
        reason = error.strerror or str(error)
        return Check(
            name="temporary folder",
            status="failed",
            message=f"{folder}: {reason}",
            remedy="set TMPDIR to another folder",
        )
    message = f"{folder}, {format_bytes(free)} free"
    if free < Settings().keep_free_bytes:
        return Check(name="temporary folder", status="warning", message=message, remedy="free disk space")
    return Check(name="temporary folder", status="ok", message=message)


def _check_conversions(registry: Registry) -> Iterator[Check]:
    """Convert a tetrahedron in a worker process, twice, because the second conversion finds a spare process."""
    isolated = registry.using(Isolated(workers=1), Hooks())
    try:
        for name in ("conversion", "spare process"):
            started = time.monotonic()
            result = isolated.convert_bytes(_TETRAHEDRON, "ply", timeout=_CONVERSION_TIMEOUT_S)
            seconds = round(time.monotonic() - started, 3)
            assert result.startswith(b"ply")
            text = "in a separate process" if name == "conversion" else "the next conversion"
            yield Check(name=name, status="ok", message=f"{text}, {seconds:.2f} s", seconds=seconds)
    except (MeshhubError, OSError) as error:
        yield Check(
            name="conversion",
            status="failed",
            message=str(error),
            remedy="see the checks above, or run meshhub -v convert on a file",
        )
    finally:
        isolated.close()


def _check_memory_limit() -> Check:
    command = [sys.executable, "-c", _USE_MORE_MEMORY]
    done = subprocess.run(command, capture_output=True, timeout=_IMPORT_TIMEOUT_S, check=False)  # noqa: S603
    if done.stdout.strip() == b"limited":
        return Check(name="memory limit", status="ok", message="enforced by the system for each conversion")
    return Check(
        name="memory limit",
        status="warning",
        message="this system does not limit the memory of a conversion",
        remedy="run the service in a container with a memory limit",
    )


def _check_descendants() -> Check:
    if Path("/proc/self/limits").exists():
        return Check(name="child processes", status="ok", message="found and killed after each conversion")
    return Check(
        name="child processes",
        status="warning",
        message="this system does not show the limits of processes: detached children of plug-ins may survive",
        remedy="run the service in a container",
    )
