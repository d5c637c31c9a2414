"""OpenCASCADE (`pip install cadquery-ocp-novtk`) for readers: one thread at a time, silent, with coded errors.

OpenCASCADE holds the interpreter lock while it reads, cannot be canceled, and may crash on damaged files. The service
therefore reads in worker processes. Its settings and its messenger are global to the process, so plug-ins share one
lock.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from meshhub.errors import UnreadableFile

_kernel_lock = threading.RLock()
"""Held while a plug-in uses the kernel."""


@contextmanager
def use_kernel(label: str) -> Iterator[None]:
    """Wait until no other thread uses the kernel, and silence it inside the `with` block.

    Exceptions of the kernel in the block become UnreadableFile, because the file is their cause.

    Args:
        label: Format of the file, for the message.
    Raises:
        UnreadableFile: The kernel raised an exception.
    """
    with _kernel_lock, _silence_messages():
        try:
            yield
        except Exception as failure:
            if not is_kernel_failure(failure):
                raise
            raise UnreadableFile(
                f"the CAD kernel cannot process the geometry of the {label} file ({type(failure).__name__}); "
                "check the model in its CAD program and export it again"
            ) from failure


def is_kernel_failure(failure: Exception) -> bool:
    """Return whether the kernel raised an exception, except for lack of memory.

    Use this where a step may fail without an effect on the result, such as a check; report that it failed.

    Raises:
        MemoryError: The kernel lacks memory.
    """
    # exceptions of the kernel have no common base class, only a common package
    kind = type(failure)
    if kind.__name__ == "Standard_OutOfMemory":
        raise MemoryError from failure
    return kind.__module__.split(".")[0] == "OCP" or isinstance(failure, RuntimeError)


@contextmanager
def _silence_messages() -> Iterator[None]:
    from OCP.Message import Message

    messenger = Message.DefaultMessenger_s()
    sequence = messenger.Printers()
    printers = [sequence.Value(number) for number in range(1, sequence.Length() + 1)]
    messenger.ChangePrinters().Clear()
    try:
        yield
    finally:
        for printer in printers:
            messenger.AddPrinter(printer)


def explore(shape: Any, kind: Any, kind_to_avoid: Any = None) -> Iterator[Any]:
    """Yield the subshapes of one kind.

    Args:
        shape: `TopoDS_Shape` to search.
        kind: `TopAbs_ShapeEnum` of the subshapes.
        kind_to_avoid: Kind of shape whose subshapes are left out; default: none.
    """
    from OCP.TopAbs import TopAbs_SHAPE
    from OCP.TopExp import TopExp_Explorer

    explorer = TopExp_Explorer(shape, kind, TopAbs_SHAPE if kind_to_avoid is None else kind_to_avoid)
    while explorer.More():
        yield explorer.Current()
        explorer.Next()
