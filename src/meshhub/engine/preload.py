"""Modules that a fork server imports once for all workers. Importing this module must not start a thread."""

from __future__ import annotations

import contextlib
import gc
import importlib
import struct
import sys
import warnings
from collections.abc import Iterable
from typing import Any

from meshhub.engine.contract import Task, perform
from meshhub.engine.worker import adopt_orphans
from meshhub.engine.worker_state import GlobalVariables
from meshhub.model.chain import Request
from meshhub.model.plans import LOCAL
from meshhub.model.source import Source, Target
from meshhub.pipeline.collecting import collect
from meshhub.pipeline.declarations import Declared
from meshhub.pipeline.loading import Plugins
from meshhub.pipeline.resolve import resolve
from meshhub.toolkit.columns import read_rows

MODULES = (
    "numpy.ma",
    "meshhub.pipeline.execute",
    "meshhub.pipeline.inspection",
    "meshhub.toolkit.objects",
    "meshhub.toolkit.surface_colors",
    "meshhub.engine.worker",
)
"""Modules that run conversions, or that these import late. The declarations name all others."""


def preload(modules: Iterable[str], *, with_libraries: bool) -> None:
    """Import modules, and the code of the built-in plug-ins; skip modules that cannot be imported.

    Args:
        modules: Modules of the host.
        with_libraries: Import what declares libraries that it needs, instead of what declares none.
    """
    declared: tuple[Declared[Any], ...] = (
        *DECLARATIONS.readers,
        *DECLARATIONS.writers,
        *DECLARATIONS.operations,
        *DECLARATIONS.checks,
    )
    plugin_modules = [
        module
        for item in declared
        if bool(item.capability.needs) == with_libraries
        for module in (item.capability.run.partition(":")[0], *item.capability.preload)
    ]
    for module in (*modules, *plugin_modules):
        with contextlib.suppress(Exception):
            importlib.import_module(module)


def record() -> None:
    """Record the variables that a worker compares before it is used again, and exclude all objects from collection.

    A garbage collection in a worker would write to, and thereby copy, every page that is shared with the fork server.
    """
    global GLOBAL_VARIABLES
    GLOBAL_VARIABLES = GlobalVariables()
    gc.collect()
    gc.freeze()


def reap_orphans() -> None:
    """Make the fork server reap the children of dead workers.

    In a container, the service itself may have process id 1, but it does not reap processes that it did not start.
    Python's fork server reaps every child, and warns about those that it did not start.
    """
    adopt_orphans()
    if sys.platform == "linux":
        warnings.filterwarnings("ignore", "forkserver: waitpid returned unexpected pid")


def start_threads() -> None:
    """Start the thread with which pyarrow reads numbers, before a worker records its state to be used again."""
    with contextlib.suppress(Exception):
        read_rows(b"0 0\n", 2, "f8")


def warm_up() -> None:
    """Convert a tetrahedron to each format, because code that runs for the first time takes twice as long.

    Nothing that this does starts a thread, of which workers would inherit the locks.
    """
    source = Source.from_bytes(_TETRAHEDRON, "a.stl")
    for writer in DECLARATIONS.writers:
        if not writer.capability.needs:
            request = Request(target=writer.capability.format.id)
            with contextlib.suppress(Exception):
                perform(Task(chain=resolve(DECLARATIONS, request, source, LOCAL), source=source, target=Target()))


DECLARATIONS = collect(Plugins(entry_points=False)).declarations

_TETRAHEDRON = (
    bytes(80)
    + struct.pack("<I", 4)
    + b"".join(
        struct.pack("<12fH", *(0.0,) * 3, *(float(9 * (corner == axis)) for corner in face for axis in (1, 2, 3)), 0)
        for face in ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))
    )
)

GLOBAL_VARIABLES: GlobalVariables
"""Variables that a worker compares before it is used again."""

reap_orphans()
preload(MODULES, with_libraries=False)
warm_up()
record()
