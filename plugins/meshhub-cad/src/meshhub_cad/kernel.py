"""Calls of OpenCASCADE: silent, and with errors that name the file as their cause."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from meshhub import UnreadableFile

_kernel_lock = threading.RLock()
"""Held while the kernel works: its messenger is shared by all threads."""


@contextmanager
def kernel(label: str) -> Iterator[None]:
    """Silence the kernel, and raise UnreadableFile for its exceptions, which have only their package in common.

    Args:
        label: Format of the file, for the message.
    """
    with _kernel_lock, _silence_messages():
        try:
            yield
        except Exception as failure:
            kind = type(failure)
            if kind.__name__ == "Standard_OutOfMemory":
                raise MemoryError from failure
            if kind.__module__.split(".")[0] != "OCP" and not isinstance(failure, RuntimeError):
                raise
            raise UnreadableFile(
                f"the CAD kernel cannot process the {label} file ({kind.__name__}); "
                "check the model in its CAD program and export it again"
            ) from failure


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
    """Yield the subshapes of one kind, except those inside shapes of another kind."""
    from OCP.TopAbs import TopAbs_SHAPE
    from OCP.TopExp import TopExp_Explorer

    explorer = TopExp_Explorer(shape, kind, TopAbs_SHAPE if kind_to_avoid is None else kind_to_avoid)
    while explorer.More():
        yield explorer.Current()
        explorer.Next()
