"""Test format whose writer lists what a task finds in its process, and whose reader then leaves something there."""

from __future__ import annotations

import builtins
import decimal
import json
import locale
import os
import resource
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from hostile_plugin import send_to_sockets
from meshhub import Format, Reader, Scene, Source, Target, UnreadableFile, Writer, error_codes, hookimpl
from meshhub.model import notes
from models import brick, scene_of

TRACE = Format(id="trace", label="Trace", extensions=(".trace",), media_types=("model/x-trace",))

_KEPT: list[object] = []
"""Objects that outlive their task."""


@hookimpl
def meshhub_readers() -> list[Reader]:
    return [Reader(format=TRACE, run="traces_plugin:read")]


@hookimpl
def meshhub_writers() -> list[Writer]:
    return [Writer(format=TRACE, run="traces_plugin:write")]


def start_child(*, detaches: bool) -> None:
    if os.fork() == 0:
        if detaches:
            os.setsid()
            if os.fork():
                os._exit(0)
        time.sleep(600)
        os._exit(0)
    if detaches:
        os.wait()


def map_memory() -> None:
    _KEPT.append(np.ones(200 << 20, np.uint8))


def change_signals() -> None:
    signal.signal(signal.SIGUSR1, lambda *_: None)


def block_signal() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})


def lower_limit() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))


def patch_module() -> None:
    notes.note = print  # type: ignore[assignment]


def fill_module() -> None:
    error_codes.ERROR_CODES["secret"] = error_codes.ERROR_CODES["conversion_failed"]  # type: ignore[index]


def shadow_builtin() -> None:
    notes.len = lambda _: 7  # type: ignore[attr-defined]


def wait_in_thread() -> None:
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()


def burn_processor_time() -> None:
    end = time.process_time() + 6
    while time.process_time() < end:
        pass


TRACES: dict[str, Callable[[], object]] = {
    "nothing": lambda: None,
    "thread": wait_in_thread,
    "child": lambda: start_child(detaches=False),
    "detached-child": lambda: start_child(detaches=True),
    "zombie": lambda: os.fork() or os._exit(0),
    "open-file": lambda: _KEPT.append(tempfile.TemporaryFile()),  # noqa: SIM115
    "socket": lambda: _KEPT.append(socket.socket()),
    "environment": lambda: os.environ.update(SECRET="1"),
    "folder": lambda: os.chdir("/"),
    "umask": lambda: os.umask(0),
    "memory": map_memory,
    "processor-time": burn_processor_time,
    "signal": change_signals,
    "blocked-signal": block_signal,
    "timer": lambda: signal.setitimer(signal.ITIMER_VIRTUAL, 600),
    "limit": lower_limit,
    "locale": lambda: locale.setlocale(locale.LC_NUMERIC, "C.UTF-8"),
    "import-path": lambda: sys.path.insert(0, "/tmp"),
    "recursion": lambda: sys.setrecursionlimit(5000),
    "warnings": lambda: warnings.simplefilter("error"),
    "builtin": lambda: setattr(builtins, "open", lambda *_: None),
    "module": patch_module,
    "container": fill_module,
    "shadow": shadow_builtin,
}
"""What a task leaves behind, by name."""


def read(source: Source, _: object) -> Scene:
    """Leave the trace that the source names, or raise an error."""
    name = source.read().decode().split()[0]
    if name == "fail":
        raise UnreadableFile("this file fails")
    if name == "context":
        decimal.getcontext().prec = 3
        np.seterr(all="raise")
        return scene_of(brick())
    if name == "file":
        Path(tempfile.gettempdir(), "secret").write_text("secret")
        return scene_of(brick())
    if name == "forge":
        text = json.dumps({"is_unchanged": True}).encode()
        send_to_sockets(struct.pack("!i", len(text)) + text)
        return scene_of(brick())
    if name == "most-memory":
        np.empty(1000 << 20, np.uint8)
        return scene_of(brick())
    TRACES[name]()
    return scene_of(brick())


def write(_: Scene, target: Target, __: object) -> None:
    """Write the process id, and the files and the state that are visible to this task."""
    with target.open() as file:
        file.write(f"{os.getpid()} {decimal.getcontext().prec} {os.listdir(tempfile.gettempdir())}\n".encode())
