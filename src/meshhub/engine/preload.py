"""Imported once by the fork server: everything a conversion may need, and nothing that starts a thread."""

from __future__ import annotations

import contextlib
import gc
import importlib
import struct
import sys
import warnings

from meshhub.engine.contract import Task, perform
from meshhub.engine.worker import adopt_orphans
from meshhub.model.chain import Request
from meshhub.model.plans import LOCAL
from meshhub.model.source import Source, Target
from meshhub.pipeline.collecting import collect
from meshhub.pipeline.loading import Plugins
from meshhub.pipeline.resolve import resolve

MODULES = (
    "numpy",
    "pyarrow.compute",
    "pyarrow.csv",
    "scipy.sparse.csgraph",
    "scipy.spatial",
    "manifold3d",
    "fast_simplification",
    "isal.isal_zlib",
    "pybase64",
    "pymeshlab",
    "DracoPy",
    "meshoptimizer",
    "OCP.STEPCAFControl",
    "OCP.BRepMesh",
    "OCP.BinTools",
    "meshhub.pipeline.execute",
    "meshhub.pipeline.inspection",
    "meshhub.engine.worker",
)


def preload() -> None:
    """Import it all, and the code of every built-in; what is not installed is left out."""
    runs = [one.capability.run for one in _DECLARATIONS.readers]
    runs += [one.capability.run for one in _DECLARATIONS.writers]
    runs += [one.capability.run for one in _DECLARATIONS.operations]
    code = {run.partition(":")[0] for run in runs}
    for module in (*MODULES, *sorted(code)):
        with contextlib.suppress(Exception):
            importlib.import_module(module)


def adopt() -> None:
    """Become the parent of what dead workers leave, so that it is buried too.

    In a container the service itself may have the number 1, and it buries nobody. Python's fork server
    buries every child, and warns of those that it did not start.
    """
    adopt_orphans()
    if sys.platform == "linux":
        warnings.filterwarnings("ignore", "forkserver: waitpid returned unexpected pid")


def warm_up() -> None:
    """Convert a tetrahedron. A worker does so while it waits: memory that it only shares with others until
    it writes there, and code that was never run, cost the first conversion more than its work.

    The parent of all workers imports and never calls: threads of libraries, and locks, would be forked with it.
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

adopt()
preload()
# what is here stays: a collection in a worker would touch, and thereby copy, every page of it
gc.collect()
gc.freeze()
