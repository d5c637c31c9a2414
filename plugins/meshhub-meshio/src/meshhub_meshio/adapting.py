"""What meshio 5.3 lacks: some cells that it reads, silence, because its warnings are for the caller, and a bound."""

from __future__ import annotations

import sys
from functools import wraps
from typing import Any

from meshhub import note
from meshhub.toolkit.names import single_line

_DIMENSIONS = {"wedge15": 3, "pyramid13": 3}
_MAX_TABLE_BYTES = 256 << 20
"""Bytes of the table by numbers of nodes that meshio makes for files of Gmsh; a damaged number would fill memory."""
_NUMBER_BYTES = 8
"""Bytes of an entry."""


def adapt_meshio() -> None:
    """Add the missing cells, which stay as a later meshio knows them, and make its warnings notes."""
    from meshio import _common
    from meshio._mesh import topological_dimension

    for name, value in _DIMENSIONS.items():
        topological_dimension.setdefault(name, value)
    # each module has imported the functions by name
    printing = (_common.warn, _common.error, _common.info)
    for module in [module for name, module in sys.modules.items() if name.startswith("meshio.")]:
        for name in ("warn", "error", "info"):
            if getattr(module, name, None) in printing:
                setattr(module, name, _note)


def bound_gmsh_tables() -> None:
    """Let meshio reject files of Gmsh whose nodes have so large numbers that a table of them would fill memory."""
    from meshio.gmsh import _gmsh22, _gmsh40, _gmsh41

    for module in (_gmsh22, _gmsh40, _gmsh41):
        read_nodes = module._read_nodes
        if hasattr(read_nodes, "__wrapped__"):
            continue

        @wraps(read_nodes)
        def read_bounded(*arguments: Any, read_nodes: Any = read_nodes) -> Any:
            result = read_nodes(*arguments)
            greatest = int(result[1].max(initial=0))
            if greatest * _NUMBER_BYTES > _MAX_TABLE_BYTES:
                raise ValueError(f"a node has the number {greatest}; renumber the nodes")
            return result

        module._read_nodes = read_bounded


def _note(text: object, highlight: bool = True) -> None:  # noqa: ARG001 - the parameters of meshio
    """Report what meshio would print."""
    note("meshio_warning", f"meshio reports: {single_line(str(text))[:120]}")
