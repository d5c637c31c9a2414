"""Modules that the fork server imports once for all workers. Importing this module must not start a thread."""

from __future__ import annotations

import contextlib
import gc
import importlib
import struct
import sys
import warnings
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
    # the toolkit imports these modules where it needs them
    "manifold3d",
    "scipy.sparse.csgraph",
    "scipy.spatial",
    "meshhub.pipeline.execute",
    "meshhub.pipeline.inspection",
    "meshhub.pipeline.preview",
    "meshhub.toolkit.rendering.analysis",
    "meshhub.toolkit.rendering.picture",
    "meshhub.toolkit.png",
    "meshhub.engine.worker",
)
"""Modules that run conversions, and libraries that they import late. The declarations name all others."""


def preload() -> None:
    """Import `MODULES` and what the built-in plug-ins declare; skip modules that cannot be imported."""
    declared: tuple[Declared[Any], ...] = (*_DECLARATIONS.readers, *_DECLARATIONS.writers, *_DECLARATIONS.operations)
    plugin_modules = [
        module for item in declared for module in (item.capability.run.partition(":")[0], *item.capability.preload)
    ]
    for module in (*MODULES, *plugin_modules):
        with contextlib.suppress(Exception):
            importlib.import_module(module)


def reap_orphans() -> None:
    """Make the fork server reap the children of dead workers.

    In a container, the service itself may have process id 1, but it does not reap processes that it did not start.
    Python's fork server reaps every child, and warns about those that it did not start.
    """
    adopt_orphans()
    if sys.platform == "linux":
        warnings.filterwarnings("ignore", "forkserver: waitpid returned unexpected pid")


def start_threads() -> None:
    """Start the thread with which pyarrow reads numbers; a worker that is used again must have it from the start."""
    with contextlib.suppress(Exception):
        read_rows(b"0 0\n", 2, "f8")


def warm_up() -> None:
    """Convert a tetrahedron in a spare worker, while the worker waits for its task.

    Otherwise, the first conversion would spend most of its time copying shared memory pages and running code for the
    first time. The fork server itself converts nothing, because workers would inherit the locks of its threads.
    """
    with contextlib.suppress(Exception):
        source = Source.from_bytes(_TETRAHEDRON, "a.stl")
        perform(
            Task(chain=resolve(_DECLARATIONS, Request(target="stl"), source, LOCAL), source=source, target=Target())
        )


_DECLARATIONS = collect(Plugins(entry_points=False)).declarations

_TETRAHEDRON = (
    bytes(80)
    + struct.pack("<I", 4)
    + b"".join(
        struct.pack("<12fH", *(0.0,) * 3, *(float(9 * (corner == axis)) for corner in face for axis in (1, 2, 3)), 0)
        for face in ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))
    )
)

reap_orphans()
preload()
GLOBAL_VARIABLES = GlobalVariables()
"""Variables that a worker compares before it is used again."""
# garbage collection in a worker would write to, and thereby copy, every page that is shared with the fork server
gc.collect()
gc.freeze()
