"""Reading a STEP file back by OpenCASCADE, in a process of its own: it may crash, hang or fill the memory.

OpenCASCADE never releases the interpreter's lock, so no other thread is inside it when this process forks. A fork of a
process that has it loaded is cheap; a clean start costs 1–2 s.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib.util
import io
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
import warnings
from typing import Any, NamedTuple

MAX_FACES = 2_000
"""Faces; OpenCASCADE needs about a millisecond to read each, and as long again to check it."""
MAX_CHECK_S = 10.0
"""Seconds for all checks of one file; a writer does not know the deadline of its conversion."""

_ANSWER_BYTES = 1 << 16


class Solid(NamedTuple):
    """A solid as OpenCASCADE reads it."""

    valid: bool
    volume: float


class Verdict(NamedTuple):
    """A file as OpenCASCADE reads it.

    valid:  whether every shape in it is; False where OpenCASCADE crashed
    solids: those of all instances, in the file's order
    """

    valid: bool
    solids: tuple[Solid, ...]


def is_available() -> bool:
    """Return whether OpenCASCADE is installed."""
    return importlib.util.find_spec("OCP") is not None


def read_back(data: bytes, seconds: float) -> Verdict | None:
    """Read a STEP file and check its shapes.

    Returns:
        None where OpenCASCADE did not answer in time, or could not be started.
    """
    if seconds <= 0:
        return None
    can_fork = sys.platform == "linux" and ("OCP.STEPControl" in sys.modules or threading.active_count() == 1)
    try:
        status, answer = _fork(data, seconds) if can_fork else _start(data, seconds)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if status in (-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGFPE):
        return Verdict(valid=False, solids=())
    if status != 0 or not answer:
        return None
    valid, solids = json.loads(answer)
    return Verdict(valid, tuple(Solid(*solid) for solid in solids))


def _fork(data: bytes, seconds: float) -> tuple[int, bytes]:
    """The exit status and the answer of a fork of this process."""
    source, sink = os.pipe()
    with warnings.catch_warnings():
        # threads that hold locks can stop the child; then it ends with the deadline
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _answer(data, sink, seconds)
    os.close(sink)
    try:
        answer = _received(source, time.monotonic() + seconds)
    finally:
        os.close(source)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    # the answer is complete when the process closes its end, whatever happens to it while it exits
    return (0 if answer else os.waitstatus_to_exitcode(status)), answer


def _received(source: int, deadline: float) -> bytes:
    """What a process sends until it closes its end of a pipe; raises OSError after the deadline."""
    answer = b""
    while True:
        ready, _, _ = select.select([source], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise TimeoutError
        block = os.read(source, _ANSWER_BYTES)
        if not block:
            return answer
        answer += block


def _answer(data: bytes, sink: int, seconds: float) -> None:
    """Send the verdict and end this process, without anything that its parent would do at its end."""
    status = 1
    try:
        import resource

        faulthandler.disable()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # ends the process if its parent is gone
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, resource.getrlimit(resource.RLIMIT_CPU)[1]))
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGXCPU):
            signal.signal(number, signal.SIG_DFL)
        null = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(null, stream)
        os.write(sink, json.dumps(judge(data)).encode())
        status = 0
    finally:
        os._exit(status)


def _start(data: bytes, seconds: float) -> tuple[int, bytes]:
    """The exit status and the answer of a new process."""
    # -P: the modules beside this file are not those of that process
    done = subprocess.run(  # noqa: S603 - this interpreter runs this file
        [sys.executable, "-P", __file__],
        input=data,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=seconds,
        check=False,
    )
    return done.returncode, done.stdout.splitlines()[-1] if done.stdout else b""


def judge(data: bytes) -> tuple[bool, list[tuple[bool, float]]]:
    """Read a STEP file in this process: whether every shape is valid, and each solid."""
    from OCP.BRepCheck import BRepCheck_Analyzer
    from OCP.BRepGProp import BRepGProp
    from OCP.GProp import GProp_GProps
    from OCP.IFSelect import IFSelect_RetDone
    from OCP.STEPControl import STEPControl_Reader
    from OCP.TopAbs import TopAbs_SOLID
    from OCP.TopExp import TopExp_Explorer

    reader = STEPControl_Reader()
    if reader.ReadStream("model.step", io.BytesIO(data)) != IFSelect_RetDone or not reader.TransferRoots():
        return False, []
    shape = reader.OneShape()
    if shape.IsNull():
        return False, []

    def solid(shape: Any) -> tuple[bool, float]:
        properties = GProp_GProps()
        BRepGProp.VolumeProperties_s(shape, properties)
        return BRepCheck_Analyzer(shape).IsValid(), properties.Mass()

    solids = []
    found = TopExp_Explorer(shape, TopAbs_SOLID)
    while found.More():
        solids.append(solid(found.Current()))
        found.Next()
    return BRepCheck_Analyzer(shape).IsValid(), solids


if __name__ == "__main__":
    _shown = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    os.write(_shown, json.dumps(judge(sys.stdin.buffer.read())).encode())
