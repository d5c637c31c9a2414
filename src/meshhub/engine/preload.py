"""Imported once by the fork server: everything a conversion may need, and nothing that starts a thread."""

from __future__ import annotations

import contextlib
import importlib

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

for _module in MODULES:
    with contextlib.suppress(Exception):
        importlib.import_module(_module)
