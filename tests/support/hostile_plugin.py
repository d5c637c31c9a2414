"""Plug-in that attacks its host in every known way; a line of the file selects the attack.

`hostile read STEM` attacks in the reader, the options `misbehave_how` and `hostile_target` in the operation and writer.
`HostileHooks` is a separate plug-in whose sniffer, review, grant and listener attack on request. All but the sniffer
run in the program, so they only hang or raise exceptions.
STEM ends in the name of the attack, as in `/tmp/tests/fork-children`. The attack writes the ids of the processes that
it starts to the file STEM, one per line.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import locale
import logging
import mmap
import os
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct

from meshhub import Mesh, Part, Scene, did, note
from meshhub.errors import Canceled, UnreadableFile
from meshhub.hookspecs import hookimpl
from meshhub.model.capabilities import Format, Operation, Reader, Stage, Writer
from meshhub.model.chain import Chain
from meshhub.model.plans import Caller, Objection
from meshhub.model.report import Report
from meshhub.model.source import Source, Target
from models import brick, scene_of

HOSTILE = Format(id="hostile", label="Hostile", extensions=(".hostile",))

log = logging.getLogger("meshhub.hostile")

ATTACKS: dict[str, tuple[str, Callable[[Path], Any]]] = {}
"""Attacks by name: the error code that the caller gets ("ok" for a correct result), and the function."""


def attack(code: str) -> Callable[[Callable[[Path], Any]], Callable[[Path], Any]]:
    def register(function: Callable[[Path], Any]) -> Callable[[Path], Any]:
        ATTACKS[function.__name__.strip("_").replace("_", "-")] = (code, function)
        return function

    return register


def build_scene() -> Scene:
    return scene_of(brick(3, 4, 5))


def is_running(process: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def record_process(pids: Path, process: int) -> None:
    with pids.open("a") as file:
        file.write(f"{process}\n")


# attacks that do not end


@attack("conversion_timeout")
def hang(pids: Path) -> None:
    """Run native code that holds the interpreter lock, with all signals blocked."""
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, signal.NSIG))
    ctypes.PyDLL(None).sleep(600)


@attack("conversion_timeout")
def ignore_signals(pids: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(0.1)


@attack("conversion_timeout")
def busy_loop(pids: Path) -> None:
    while True:
        pass


@attack("conversion_timeout")
def stop_itself(pids: Path) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


# attacks that end the process or raise


@attack("worker_crashed")
def segfault(pids: Path) -> None:
    ctypes.string_at(0)


@attack("worker_crashed")
def abort(pids: Path) -> None:
    os.abort()


@attack("worker_crashed")
def kill_itself(pids: Path) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@attack("worker_crashed")
def die_of_a_nameless_signal(pids: Path) -> None:
    os.kill(os.getpid(), signal.SIGRTMIN + 5)


@attack("worker_crashed")
def kill_its_parent(pids: Path) -> None:
    """Kill the parent of all workers."""
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(600)


@attack("worker_crashed")
def exit_at_once(pids: Path) -> None:
    os._exit(0)


@attack("conversion_failed")
def exit_politely(pids: Path) -> None:
    sys.exit(0)


@attack("conversion_failed")
def interrupt(pids: Path) -> None:
    raise KeyboardInterrupt


@attack("conversion_failed")
def recurse(pids: Path) -> None:
    recurse(pids)


@attack("conversion_failed")
def raise_something(pids: Path) -> None:
    class Strange(Exception):
        def __reduce__(self) -> Any:
            return exec, ("import os; os._exit(99)",)

        def __str__(self) -> str:
            raise RuntimeError("no text")

    raise Strange


@attack("unreadable_file")
def raise_a_kind_of_its_own(pids: Path) -> None:
    class Mine(UnreadableFile):
        pass

    raise Mine("an error\x1b[2J that only the plug-in knows" + "!" * 100_000)


@attack("conversion_failed")
def pretend_that_the_caller_left(pids: Path) -> None:
    raise Canceled("the caller left")


# attacks that take memory or handles


@attack("model_too_complex")
def eat_arrays(pids: Path) -> None:
    arrays = []
    while True:
        arrays.append(np.zeros(1 << 22))


@attack("model_too_complex")
def eat_objects(pids: Path) -> None:
    objects: list[Any] = []
    while True:
        objects.append([objects])


@attack("model_too_complex")
def eat_maps(pids: Path) -> None:
    arrays = []
    while True:
        arrays.append(mmap.mmap(-1, 1 << 26))


@attack("model_too_complex")
def eat_and_abort(pids: Path) -> None:
    """End as native code does without memory; late enough that the engine can measure the memory."""
    with contextlib.suppress(OSError):
        while True:
            RESOURCES.append(mmap.mmap(-1, 1 << 24))
    time.sleep(2)
    os.abort()


@attack("model_too_complex")
def eat_in_children(pids: Path) -> None:
    """Start children that each take less than the limit, and together more."""
    for _ in range(6):
        if fork_child(pids) == 0:
            array = np.ones(8 << 20)
            time.sleep(600)
            array[0] = 2
    time.sleep(600)


@attack("conversion_failed")
def open_files(pids: Path) -> None:
    while True:
        RESOURCES.append(os.open("/dev/null", os.O_RDONLY))


@attack("conversion_failed")
def open_sockets(pids: Path) -> None:
    while True:
        RESOURCES.append(socket.create_server(("127.0.0.1", 0)))


RESOURCES: list[Any] = []

# attacks that write


@attack("model_too_complex")
def write_a_large_file(pids: Path) -> None:
    with Path(tempfile.gettempdir(), "large").open("wb", buffering=0) as file:
        for _ in range(10 << 10):
            file.write(bytes(1 << 20))


@attack("model_too_complex")
def write_large_files(pids: Path) -> None:
    for number in range(10 << 10):
        Path(tempfile.gettempdir(), f"large-{number}").write_bytes(bytes(1 << 20))
        time.sleep(0.001)
    time.sleep(600)


@attack("conversion_failed")
def write_many_files(pids: Path) -> None:
    for number in range(1_000_000):
        Path(tempfile.gettempdir(), f"small-{number}").touch()


@attack("ok")
def rest(pids: Path) -> Scene:
    """Be slow, but meet the deadline."""
    time.sleep(0.7)
    return build_scene()


@attack("ok")
def hide_files(pids: Path) -> Scene:
    """Create folders that are too deep for a path, and without permissions."""
    here = Path(tempfile.gettempdir())
    folder = os.open(here, os.O_RDONLY)
    for _ in range(1100):
        os.mkdir("deeper", dir_fd=folder)
        below = os.open("deeper", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(os.open("bottom", os.O_CREAT | os.O_WRONLY, 0, dir_fd=folder))
    os.fchmod(folder, 0)
    os.close(folder)
    os.mkfifo(here / "pipe")
    (here / "out").symlink_to("/")
    return build_scene()


@attack("ok")
def swap_its_folder(pids: Path) -> Scene:
    """Replace the folder by a link to a folder that must remain."""
    pids.mkdir()
    (pids / "precious").touch()
    shutil.rmtree(tempfile.gettempdir())
    Path(tempfile.gettempdir()).symlink_to(pids)
    return build_scene()


@attack("conversion_timeout")
def print_without_end(pids: Path) -> None:
    line = "hostile output " * 100
    while True:
        sys.stdout.write(line)
        sys.stderr.write(line)
        os.write(1, line.encode())
        os.write(2, line.encode())


@attack("conversion_timeout")
def log_without_end(pids: Path) -> None:
    while True:
        log.warning("hostile log %s", "x" * 100_000)


# attacks that leave processes or threads


def fork_child(pids: Path) -> int:
    """Fork, and record the child."""
    child = os.fork()
    if child:
        record_process(pids, child)
    return child


@attack("ok")
def fork_children(pids: Path) -> Scene:
    for _ in range(3):
        if fork_child(pids) == 0:
            time.sleep(600)
    return build_scene()


@attack("worker_crashed")
def fork_children_and_crash(pids: Path) -> None:
    """Crash while children hold the pipe to the parent open."""
    fork_children(pids)
    os.abort()


def start_daemon(pids: Path) -> None:
    """Start a daemon: own session, second fork, all files closed, another program."""
    first = os.fork()
    if first:
        os.waitpid(first, 0)
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    record_process(pids, os.getpid())
    os.chdir("/")
    os.closerange(0, 1000)
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, signal.NSIG))
    os.execve("/bin/sleep", ["sleep", "600"], {})


@attack("ok")
def daemonize(pids: Path) -> Scene:
    start_daemon(pids)
    return build_scene()


@attack("worker_crashed")
def daemonize_and_crash(pids: Path) -> None:
    start_daemon(pids)
    ctypes.string_at(0)


@attack("conversion_timeout")
def daemonize_and_hang(pids: Path) -> None:
    start_daemon(pids)
    hang(pids)


@attack("ok")
def fork_and_run(pids: Path) -> Scene:
    """Start a process that forks and exits repeatedly, so that its id changes."""
    if os.fork() == 0:
        os.setsid()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if os.fork():
                os._exit(0)
            time.sleep(0.005)
        os._exit(0)
    time.sleep(0.05)
    return build_scene()


@attack("conversion_failed")
def fork_without_end(pids: Path) -> None:
    for _ in range(100):
        if fork_child(pids) == 0:
            time.sleep(600)
    time.sleep(600)


@attack("ok")
def start_a_program(pids: Path) -> Scene:
    process = subprocess.Popen(["/bin/sleep", "600"], start_new_session=True)
    record_process(pids, process.pid)
    return build_scene()


@attack("ok")
def leave_a_thread(pids: Path) -> Scene:
    def work() -> None:
        while True:
            Path(tempfile.gettempdir(), str(time.monotonic_ns())).touch()
            time.sleep(0.001)

    threading.Thread(target=work).start()
    return build_scene()


# attacks on the pipe to the parent


def find_sockets() -> list[int]:
    """Return the sockets of the process, which include the pipe to the parent."""
    descriptors = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                descriptors.append(int(name))
    return descriptors


def send_to_sockets(data: bytes) -> None:
    for descriptor in find_sockets():
        with contextlib.suppress(OSError):
            os.write(descriptor, data)


@attack("worker_crashed")
def scribble(pids: Path) -> None:
    send_to_sockets(os.urandom(100_000))
    time.sleep(600)


@attack("worker_crashed")
def answer_nonsense(pids: Path) -> None:
    text = b'{"x":' + b"[" * 200_000
    send_to_sockets(struct.pack("!i", len(text)) + text)
    time.sleep(600)


@attack("worker_crashed")
def answer_with_a_pickle(pids: Path) -> None:
    text = b"cos\n_exit\n(I99\ntR."
    send_to_sockets(struct.pack("!i", len(text)) + text)
    time.sleep(600)


@attack("conversion_timeout")
def begin_an_answer(pids: Path) -> None:
    send_to_sockets(struct.pack("!i", 1_000_000) + b'{"report":')
    time.sleep(600)


@attack("worker_crashed")
def promise_gigabytes(pids: Path) -> None:
    send_to_sockets(struct.pack("!iQ", -1, 1 << 40) + b"x" * 1000)
    time.sleep(600)


@attack("conversion_failed")
def forge_an_answer(pids: Path) -> None:
    """Send a report of a result that was never written, with companions outside of the folder."""
    forged = {
        "report": {"source": {"format": "hostile"}, "target": {"format": "hostile"}},
        "companions": ["../../../../../../etc/passwd", "..\\..\\evil", "a\0b", "x" * 5000, "", ".."],
    }
    text = json.dumps(forged).encode()
    send_to_sockets(struct.pack("!i", len(text)) + text)
    time.sleep(600)


@attack("worker_crashed")
def hang_up(pids: Path) -> None:
    os.closerange(3, 1000)
    time.sleep(600)


@attack("worker_crashed")
def hang_up_and_return(pids: Path) -> Scene:
    scene = build_scene()
    os.closerange(3, 1000)
    return scene


# attacks with the returned value


@attack("conversion_failed")
def return_nothing(pids: Path) -> None:
    return None


@attack("conversion_failed")
def return_text(pids: Path) -> str:
    return "scene"


@attack("conversion_failed")
def return_wrong_shapes(pids: Path) -> Scene:
    return scene_of(Mesh(np.zeros((4, 7)), np.zeros((2, 2, 2), int)))


@attack("conversion_failed")
def return_wrong_types(pids: Path) -> Scene:
    return scene_of(Mesh(np.array([["a", object(), None]]), np.array([[0.5, np.nan, 1j]])))


@attack("unreadable_file")
def return_nan(pids: Path) -> Scene:
    return scene_of(Mesh(np.full((3, 3), np.nan), np.array([[0, 1, 2]])))


@attack("unreadable_file")
def return_wrong_indices(pids: Path) -> Scene:
    return scene_of(Mesh(np.eye(3), np.array([[0, 1, 2_000_000_000], [0, 1, -5]])))


@attack("unreadable_file")
def return_a_part_without_a_mesh(pids: Path) -> Scene:
    return Scene((brick(),), (Part(mesh=-7),))


@attack("conversion_failed")
def return_a_hollow_scene(pids: Path) -> Scene:
    scene = build_scene()
    object.__setattr__(scene, "meshes", 5)
    return scene


class Trap:
    """Object that ends any process that unpickles it."""

    def __reduce__(self) -> Any:
        return exec, ("import os; os._exit(99)",)


@attack("conversion_failed")
def tell_a_trap(pids: Path) -> Scene:
    did(trap=Trap())  # type: ignore[arg-type]
    return build_scene()


@attack("conversion_failed")
def tell_without_end(pids: Path) -> Scene:
    for number in range(20_000):
        note(f"remark_{number}", f"{number} " + "x" * 1000)
    return build_scene()


@attack("ok")
def change_everything(pids: Path) -> Scene:
    """Change all state of the process outside its memory; `witness` records it."""
    os.environ["PATH"] = os.environ["LC_ALL"] = "/hostile"
    os.environ["MESHHUB_WORKERS"] = "0"
    os.chdir("/")
    os.umask(0o777)
    sys.setrecursionlimit(150)
    sys.path.insert(0, "/hostile")
    locale.setlocale(locale.LC_ALL, "C.UTF-8")
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    np.hostile = True  # type: ignore[attr-defined]
    os.nice(3)
    return build_scene()


@attack("ok")
def witness(pids: Path) -> Scene:
    umask = os.umask(0)
    os.umask(umask)
    state = {
        "environment": {
            key: value for key, value in os.environ.items() if key not in ("TMPDIR", "PYTEST_CURRENT_TEST")
        },
        "folder": str(Path.cwd()),
        "umask": umask,
        "recursion": sys.getrecursionlimit(),
        "path": sys.path,
        "locale": locale.setlocale(locale.LC_ALL),
        "signals": str(signal.getsignal(signal.SIGTERM)),
        "numpy": hasattr(np, "hostile"),
        "nice": os.nice(0),
    }
    pids.write_text(json.dumps(state))
    return build_scene()


# attacks of the writer alone


def write_nothing(target: Target) -> None:
    pass


def write_a_link(target: Target) -> None:
    target_path(target).symlink_to("/etc/hostname")


def write_a_pipe(target: Target) -> None:
    os.mkfifo(target_path(target))


def write_a_folder(target: Target) -> None:
    target_path(target).mkdir()
    (target_path(target) / "inside").touch()


def write_a_companion_elsewhere(target: Target) -> None:
    target.companion("../evil", b"x")


def forget_its_companion(target: Target) -> None:
    target.companion("beside", b"x")
    (target_path(target).parent / "beside").unlink()
    write_result(target)


def link_its_companion(target: Target) -> None:
    target.companion("beside", b"x")
    (target_path(target).parent / "beside").unlink()
    (target_path(target).parent / "beside").symlink_to("/etc/hostname")
    write_result(target)


def write_result(target: Target) -> None:
    with target.open() as file:
        file.write(b"hostile but well")


def target_path(target: Target) -> Path:
    assert target.folder is not None
    return target.folder / target.name


WRITER_ATTACKS: dict[str, tuple[str, Callable[[Target], None]]] = {
    "write-nothing": ("conversion_failed", write_nothing),
    "write-a-link": ("conversion_failed", write_a_link),
    "write-a-pipe": ("conversion_failed", write_a_pipe),
    "write-a-folder": ("conversion_failed", write_a_folder),
    "write-a-companion-elsewhere": ("conversion_failed", write_a_companion_elsewhere),
    "forget-its-companion": ("ok", forget_its_companion),
    "link-its-companion": ("conversion_failed", link_its_companion),
}


class HostileOptions(Struct, frozen=True, kw_only=True):
    hostile_target: Annotated[str, Meta(title="In the writer", description="What to do there.")] = ""


class MisbehaveOptions(Struct, frozen=True, kw_only=True):
    misbehave_how: Annotated[str, Meta(title="How", description="What to do.")] | None = None


def run_attack(how: str) -> Any:
    pids = Path(how)
    function = HOOK_ATTACKS.get(pids.name) or ATTACKS[pids.name][1]
    return function(pids)


def read(source: Source, options: Struct) -> Any:
    how = source.read().decode().removeprefix("hostile").strip()
    return run_attack(how) if how else build_scene()


def operate(scene: Scene, options: MisbehaveOptions) -> Any:
    assert options.misbehave_how is not None
    return run_attack(options.misbehave_how)


def write(scene: Scene, target: Target, options: HostileOptions) -> None:
    how = options.hostile_target
    if how in WRITER_ATTACKS:
        WRITER_ATTACKS[how][1](target)
        return
    if how:
        run_attack(how)
    write_result(target)


@hookimpl
def meshhub_readers() -> Iterable[Reader]:
    return [Reader(format=HOSTILE, run="hostile_plugin:read")]


@hookimpl
def meshhub_writers() -> Iterable[Writer]:
    return [Writer(format=HOSTILE, options=HostileOptions, run="hostile_plugin:write")]


@hookimpl
def meshhub_operations() -> Iterable[Operation]:
    return [
        Operation(
            id="misbehave", label="Misbehave", stage=Stage.PLACE, options=MisbehaveOptions, run="hostile_plugin:operate"
        )
    ]


# attacks in hooks

HOOKED = Format(id="hooked", label="Hooked", extensions=(".hooked",))

HOOKS = ("sniff", "review", "grants", "finished")

GRANTS = "hostile-grants"
"""File in a folder of `sys.path`; each line has a caller's id, by which a grant selects its attack, and the attack."""

HOOK_ATTACKS: dict[str, Callable[[Path], Any]] = {
    "oversleep": lambda _: time.sleep(600),
    "raise-something": ATTACKS["raise-something"][1],
    "exit-politely": ATTACKS["exit-politely"][1],
}
"""Attacks of grants, reviews and listeners, which run in the program."""


class HookedOptions(Struct, frozen=True, kw_only=True):
    hooked_review: Annotated[str, Meta(title="In the review", description="What to do there.")] = ""
    hooked_finished: Annotated[str, Meta(title="In the listener", description="What to do there.")] = ""


def sniff(head: bytes, size: int) -> int:
    first, _, how = head[:1000].decode("latin-1").partition(" ")
    if first != "hooked":
        return 0
    if how:
        run_attack(how)
    return 90


def read_hooked(source: Source, options: HookedOptions) -> Scene:
    if options.hooked_finished:
        note("hooked_finished", options.hooked_finished)
    return build_scene()


class HostileHooks:
    @hookimpl
    def meshhub_readers(self) -> Iterable[Reader]:
        run, sniff = "hostile_plugin:read_hooked", "hostile_plugin:sniff"
        return [Reader(format=HOOKED, run=run, sniff=sniff, options=HookedOptions)]

    @hookimpl
    def meshhub_grants(self, caller: Caller) -> Iterable[str]:
        paths = [path for folder in sys.path if (path := Path(folder, GRANTS)).is_file()]
        for line in paths[0].read_text().splitlines() if paths else ():
            caller_id, how = line.split(maxsplit=1)
            if caller_id == caller.id:
                run_attack(how)
        return ["hooked"]

    @hookimpl
    def meshhub_review(self, chain: Chain, caller: Caller) -> Iterable[Objection]:
        how = chain.steps[0].options.get("hooked_review")
        if how == "object":
            yield Objection(code="hooked_refused", message="an objection", remedy="ask for something else")
        elif how:
            run_attack(str(how))

    @hookimpl
    def meshhub_finished(self, report: Report) -> None:
        for entry in report.notes:
            if entry.code == "hooked_finished":
                run_attack(entry.message)
