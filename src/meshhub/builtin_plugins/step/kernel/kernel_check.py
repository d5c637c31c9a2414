"""Reading of a STEP file by OpenCASCADE in a separate process, because it may crash, hang or exhaust the memory.

OpenCASCADE never releases the interpreter lock, so no other thread is inside it when this process forks. A fork of a
process that has loaded it is cheap; a new process takes 1–2 s to load it.
"""

# why this way: docs/decisions/0019-step-check.md
from __future__ import annotations

import contextlib
import faulthandler
import importlib
import importlib.util
import io
import json
import math
import os
import select
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

MAX_FACES_COUNT = 6_000
"""Faces; OpenCASCADE takes 3 to 11 s to read and check so many. A quarter of printed parts have 2 000 to 6 000."""
MAX_CHECK_S = 10.0
"""Seconds for all checks of one file, or as many as its writing took."""
MAX_MESH_S = 3.0
"""Seconds to triangulate the solids of one file; without an answer, their triangles count as closed."""
MAX_CHECK_RATIO = 0.5
"""Share of the time until the deadline that the checks may take; the rest is for writing the file again."""

_CONFIRMED_RATIO = 5e-4
"""Share of an expected volume by which a first measurement may differ; half of what is allowed."""

_MESH_ANGLE_RAD = 0.06
"""Radians between the segments of a curve; changes the volume by at most 2e-4."""
_MESH_DEVIATION_RATIO = 2e-4
"""Share of the side of a cube of the volume; the angle is finer except on tiny curves."""

_MAX_FAULTY_COUNT = 200
"""Invalid faces to list; the others follow when these are written in another way."""

_BLOCK_BYTES = 1 << 16
"""Bytes to read from a pipe at a time; the usual capacity of a pipe."""


FaceCorners = tuple[tuple[float, float, float], ...]
"""Corners of a face, mm."""


class KernelSolid(NamedTuple):
    """A solid as OpenCASCADE reads it.

    valid:  whether OpenCASCADE finds it valid
    volume: mm³
    closes: whether its triangles close with the default options of the reader
    faulty: corners of each face that OpenCASCADE finds invalid
    """

    valid: bool
    volume: float
    closes: bool = True
    faulty: tuple[FaceCorners, ...] = ()


class Verdict(NamedTuple):
    """A file as OpenCASCADE reads it.

    valid:  whether every shape is valid; False if OpenCASCADE crashed
    solids: solids of all instances, in file order
    """

    valid: bool
    solids: tuple[KernelSolid, ...]

    def list_faulty(self, number: int) -> tuple[FaceCorners, ...]:
        """Return the invalid faces of a solid; none for a number without a solid."""
        return self.solids[number].faulty if number < len(self.solids) else ()


def is_available() -> bool:
    """Return whether OpenCASCADE is installed."""
    return importlib.util.find_spec("OCP") is not None


def find_load_error() -> str:
    """Return why OpenCASCADE cannot be imported although it is installed; "" if it can."""
    try:
        importlib.import_module("OCP.STEPControl")
    except ImportError as error:
        return str(error)
    return ""


def read_back(data: bytes, seconds: float, volumes: Sequence[float] = ()) -> Verdict | None:
    """Read a STEP file in a separate process and check its shapes.

    Args:
        data: The file.
        seconds: Timeout.
        volumes: Expected volumes of its solids (mm³); one that the first measurement confirms is not measured again.
    Returns:
        None if OpenCASCADE did not finish in time or could not be started.
    """
    if seconds <= 0:
        return None
    can_fork = (
        sys.platform == "linux"
        and hasattr(os, "fork")
        and ("OCP.STEPControl" in sys.modules or threading.active_count() == 1)
    )
    try:
        run = _judge_in_fork if can_fork else _judge_in_new_process
        status, answer = run(data, seconds, volumes)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if status in (-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGFPE):
        return Verdict(valid=False, solids=())
    if status != 0 or not answer:
        return None
    (valid, solids), *closes = (json.loads(line) for line in answer.splitlines() if line)
    # the time may end before the solids are triangulated
    is_closed = closes[0] if closes else [True] * len(solids)
    judged = zip(solids, is_closed, strict=True)
    return Verdict(valid, tuple(_make_solid(solid, closes=closed) for solid, closed in judged))


def _make_solid(answer: tuple[bool, float, list[list[tuple[float, float, float]]]], *, closes: bool) -> KernelSolid:
    """Return a solid of the first line of an answer."""
    valid, volume, faulty = answer
    return KernelSolid(valid, volume, closes, tuple(tuple((x, y, z) for x, y, z in face) for face in faulty))


def _judge_in_fork(data: bytes, seconds: float, volumes: Sequence[float]) -> tuple[int, bytes]:
    """Return the exit status and the answer of a fork of this process."""
    source, sink = os.pipe()
    with warnings.catch_warnings():
        # a lock that another thread holds may block the child; then the timeout ends it
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _answer_in_fork(data, sink, seconds, volumes)
    os.close(sink)
    try:
        answer = _receive_answer(source, time.monotonic() + seconds)
    finally:
        os.close(source)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    # the answer is complete when the child closes the pipe, even if the child crashes while it exits
    return (0 if answer else os.waitstatus_to_exitcode(status)), answer


def _receive_answer(source: int, deadline: float) -> bytes:
    """Read a pipe until its other end is closed, or MAX_MESH_S after the first line.

    Raises:
        TimeoutError: The deadline passed before the first line.
    """
    answer = b""
    while True:
        ready, _, _ = select.select([source], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            if answer:
                return answer
            raise TimeoutError
        block = os.read(source, _BLOCK_BYTES)
        if not block:
            return answer
        if not answer:
            deadline = min(deadline, time.monotonic() + MAX_MESH_S)
        answer += block


def _answer_in_fork(data: bytes, sink: int, seconds: float, volumes: Sequence[float]) -> None:
    """Send the verdict and exit without the exit handlers of the parent process."""
    status = 1
    try:
        import resource

        faulthandler.disable()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # ends this process if the parent was killed and cannot end it
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, resource.getrlimit(resource.RLIMIT_CPU)[1]))
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGXCPU):
            signal.signal(number, signal.SIG_DFL)
        # the threads with which the parent may triangulate do not exist here
        os.environ["OMP_NUM_THREADS"] = "1"
        null = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(null, stream)
        send_answer(data, volumes, sink)
        status = 0
    finally:
        os._exit(status)


def _judge_in_new_process(data: bytes, seconds: float, volumes: Sequence[float]) -> tuple[int, bytes]:
    """Return the exit status and the answer of a new process."""
    # -P keeps the folder of this file out of the module search path: its modules would hide others
    try:
        completed = subprocess.run(  # noqa: S603 - this interpreter runs this file
            [sys.executable, "-P", __file__, json.dumps(list(volumes))],
            input=data,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as expired:
        if not expired.stdout:
            raise
        return 0, expired.stdout
    return (0 if completed.stdout else completed.returncode), completed.stdout


def send_answer(data: bytes, volumes: Sequence[float], sink: int) -> None:
    """Read a STEP file in this process and write JSON lines to a file descriptor.

    The first line is whether every shape is valid, and validity, volume and faulty faces of each solid. The second is
    whether the triangles of each solid close; it may take longest.

    Args:
        data: The file.
        volumes: Expected volumes, as in `read_back`.
        sink: File descriptor.
    """
    try:
        valid, solids = _read_solids(data)
        measured = [(is_valid, _measure_volume(solid, volumes), faulty) for is_valid, faulty, solid in solids]
    except ImportError:
        raise
    except Exception:
        # what OpenCASCADE cannot even read is invalid
        valid, solids, measured = False, [], []
    os.write(sink, json.dumps([valid, measured]).encode() + b"\n")
    os.write(sink, json.dumps([_closes(solid) for _, _, solid in solids]).encode())


def _read_solids(data: bytes) -> tuple[bool, list[tuple[bool, list[FaceCorners], Any]]]:
    """Return whether every shape of a STEP file is valid, and its solids with their validity and faulty faces."""
    from OCP.BRepCheck import BRepCheck_Analyzer
    from OCP.IFSelect import IFSelect_RetDone
    from OCP.STEPControl import STEPControl_Reader
    from OCP.TopAbs import TopAbs_SOLID

    reader = STEPControl_Reader()
    if reader.ReadStream("model.step", io.BytesIO(data)) != IFSelect_RetDone or not reader.TransferRoots():
        return False, []
    shape = reader.OneShape()
    if shape.IsNull():
        return False, []
    analyzer = BRepCheck_Analyzer(shape)
    solids = [(analyzer.IsValid(solid), solid) for solid in _explore(shape, TopAbs_SOLID)]
    return analyzer.IsValid(), [
        (is_valid, [] if is_valid else _list_faulty(solid, analyzer), solid) for is_valid, solid in solids
    ]


def _list_faulty(solid: Any, analyzer: Any) -> list[FaceCorners]:
    """Return the corners of the faces of a solid that an analyzer finds invalid."""
    from OCP.BRep import BRep_Tool
    from OCP.TopAbs import TopAbs_FACE, TopAbs_VERTEX
    from OCP.TopoDS import TopoDS

    faulty: list[FaceCorners] = []
    for face in _explore(solid, TopAbs_FACE):
        if len(faulty) < _MAX_FAULTY_COUNT and not analyzer.IsValid(face):
            points = [BRep_Tool.Pnt_s(TopoDS.Vertex(vertex)) for vertex in _explore(face, TopAbs_VERTEX)]
            faulty.append(tuple((point.X(), point.Y(), point.Z()) for point in points))
    return faulty


def _measure_volume(solid: Any, volumes: Sequence[float]) -> float:
    """Return the volume of a solid (mm³).

    The kernel's integral over a free-form surface with many knots may be off by up to 1.5 %. If it is none of some
    expected volumes, that between fine triangles is returned, which takes much longer, and is too small for balls.
    """
    from OCP.BRep import BRep_Tool
    from OCP.BRepAdaptor import BRepAdaptor_Surface
    from OCP.BRepGProp import BRepGProp
    from OCP.BRepMesh import BRepMesh_IncrementalMesh
    from OCP.BRepTools import BRepTools
    from OCP.GeomAbs import GeomAbs_BSplineSurface
    from OCP.GProp import GProp_GProps
    from OCP.IMeshTools import (
        IMeshTools_MeshAlgoType_Delabella,
        IMeshTools_MeshAlgoType_Watson,
        IMeshTools_Parameters,
    )
    from OCP.TopAbs import TopAbs_FACE
    from OCP.TopLoc import TopLoc_Location
    from OCP.TopoDS import TopoDS

    properties = GProp_GProps()
    BRepGProp.VolumeProperties_s(solid, properties)
    faces = [TopoDS.Face(face) for face in _explore(solid, TopAbs_FACE)]
    has_patches = any(BRepAdaptor_Surface(face).GetType() == GeomAbs_BSplineSurface for face in faces)
    is_expected = any(abs(properties.Mass() - volume) <= _CONFIRMED_RATIO * abs(volume) for volume in volumes)
    if is_expected or not has_patches:
        return float(properties.Mass())
    parameters = IMeshTools_Parameters()
    parameters.Deflection = _MESH_DEVIATION_RATIO * max(properties.Mass(), 0.0) ** (1 / 3)
    parameters.Angle = _MESH_ANGLE_RAD
    # the default algorithm is 2 to 14 times as slow, but leaves fewer faces without triangles
    for algorithm in (IMeshTools_MeshAlgoType_Delabella, IMeshTools_MeshAlgoType_Watson):
        parameters.MeshAlgo = algorithm
        BRepMesh_IncrementalMesh(solid, parameters)
        if all(BRep_Tool.Triangulation_s(face, TopLoc_Location()) is not None for face in faces):
            break
        BRepTools.Clean_s(solid)
    else:
        return float(properties.Mass())
    meshed = GProp_GProps()
    BRepGProp.VolumeProperties_s(solid, meshed, False, False, True)
    return float(meshed.Mass())


def _closes(solid: Any) -> bool:
    """Return whether the triangles of a solid form a closed mesh; OpenCASCADE leaves gaps in some valid solids."""
    from meshhub.builtin_plugins.step import StepReadOptions
    from meshhub.builtin_plugins.step.reading.tessellation import tessellate

    options = StepReadOptions()
    angle_rad = math.radians(options.step_angle_degrees)
    try:
        mesh = tessellate(solid, iter(()), options.step_deviation_mm, angle_rad, is_plain=False)
    except Exception:
        return False
    return mesh is not None and mesh.open_solid_count == mesh.failed_face_count == 0


def _explore(shape: Any, kind: Any) -> Iterator[Any]:
    """Iterate over the solids or faces of a shape, in file order."""
    from OCP.TopExp import TopExp_Explorer

    explorer = TopExp_Explorer(shape, kind)
    while explorer.More():
        yield explorer.Current()
        explorer.Next()


if __name__ == "__main__":
    # OpenCASCADE prints to standard output: the answer goes to a copy of it
    _answer_stream = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    send_answer(sys.stdin.buffer.read(), json.loads(sys.argv[1]), _answer_stream)
