"""Imported once by the fork server: everything a conversion may need, and nothing that starts a thread."""

from __future__ import annotations

import contextlib
import importlib

from meshhub.collect import collect
from meshhub.plugins import Plugins

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
    "meshhub.run",
    "meshhub.inspection",
    "meshhub.engine.worker",
)


def preload() -> None:
    """Import it all, and the code of every built-in; what is not installed is left out."""
    have = collect(Plugins(entry_points=False)).declarations
    runs = [one.capability.run for one in have.readers]
    runs += [one.capability.run for one in have.writers]
    runs += [one.capability.run for one in have.operations]
    code = {run.partition(":")[0] for run in runs}
    for module in (*MODULES, *sorted(code)):
        with contextlib.suppress(Exception):
            importlib.import_module(module)


preload()
