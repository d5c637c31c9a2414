"""Take from meshhub what Windows does not have, and use it: `python without_posix.py TASK FOLDER`.

Libraries are imported first, because they are built for this system. Worker processes take the same names away if
PYTHONPATH has a sitecustomize.py that calls `leave_posix_before_import`.
"""

from __future__ import annotations

import importlib
import importlib.abc
import multiprocessing
import os
import pkgutil
import shutil
import ssl
import sys
from multiprocessing import resource_tracker
from pathlib import Path
from types import ModuleType

POSIX_MODULES = ("fcntl", "grp", "posix", "pwd", "resource", "syslog", "termios", "tty")

POSIX_NAMES = {
    "os": (
        "O_DIRECTORY O_NOCTTY O_NOFOLLOW O_NONBLOCK P_ALL P_PID WEXITED WNOHANG WNOWAIT chown fchmod fchown fork "
        "forkpty getegid geteuid getgid getpgid getuid killpg mkfifo nice pidfd_open posix_spawn pread pwrite "
        "register_at_fork sched_getaffinity sendfile setpgid setsid statvfs sysconf uname wait waitid"
    ),
    "signal": (
        "ITIMER_PROF ITIMER_REAL SIGALRM SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGPROF SIGQUIT SIGSTOP SIGTSTP "
        "SIGUSR1 SIGUSR2 SIGWINCH SIGXCPU SIGXFSZ SIG_BLOCK SIG_SETMASK SIG_UNBLOCK alarm pause "
        "pthread_kill pthread_sigmask setitimer siginterrupt sigpending sigwait"
    ),
    "socket": "AF_UNIX SO_REUSEPORT recv_fds send_fds",
}
"""Names of the standard library that Windows lacks."""

MODEL = Path(__file__).parent.parent.parent / "examples" / "bracket.stl"

LIBRARIES = (
    "asyncio click concurrent.futures email.message fast_simplification isal.isal_zlib json logging.config manifold3d "
    "msgspec multiprocessing.connection multiprocessing.forkserver multiprocessing.popen_spawn_posix numpy "
    "platformdirs pluggy pyarrow.compute pyarrow.csv rich.console rich.progress rich.table scipy.sparse scipy.spatial "
    "shutil subprocess tempfile"
).split()
"""Modules that the base uses."""

SERVICE_LIBRARIES = (
    "anyio.to_thread brotli httpx limits litestar.testing multipart opentelemetry.sdk "
    "opentelemetry.instrumentation.asgi prometheus_client psycopg pytest redis.asyncio sqlalchemy.orm uvicorn"
).split()
"""Modules that the service and other extras use."""


class _PosixModules(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, *_: object) -> None:
        if name in POSIX_MODULES:
            raise ModuleNotFoundError(f"Windows has no module {name!r}", name=name)


class _WindowsModule(ModuleType):
    """A module of the standard library without the names that Windows lacks."""

    def __init__(self, module: ModuleType, missing: str) -> None:
        names = {name: value for name, value in vars(module).items() if name not in missing.split()}
        super().__init__(module.__name__)
        vars(self).update(names)


def leave_posix(libraries: list[str]) -> None:
    """Import libraries, and hide POSIX from the modules that are imported after them."""
    for library in libraries:
        importlib.import_module(library)
    for name in POSIX_MODULES:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, _PosixModules())
    for name, missing in POSIX_NAMES.items():
        sys.modules[name] = _WindowsModule(sys.modules[name], missing)
    sys.platform = "win32"
    multiprocessing.get_all_start_methods = lambda: ["spawn"]  # type: ignore[method-assign]

    def fail() -> None:
        raise ModuleNotFoundError("Windows has no resource tracker")

    resource_tracker.ensure_running = fail


class _BeforeImport(importlib.abc.MetaPathFinder):
    def find_spec(self, name: str, *_: object) -> None:
        if name == "meshhub":
            sys.meta_path.remove(self)
            leave_posix(LIBRARIES)


def leave_posix_before_import() -> None:
    """Hide POSIX when meshhub is imported: Python has started the process by then."""
    sys.meta_path.insert(0, _BeforeImport())


def convert(folder: Path) -> None:
    """Convert in this process, and in a worker that is canceled the second time."""
    from meshhub import Cancel, Canceled, Isolated, Registry

    registry = Registry(entry_points=False)
    for target in ("ply", "obj", "glb", "3mf"):
        registry.convert(MODEL, folder / f"model.{target}", overwrite=False)
    cancel = Cancel()
    with Registry(entry_points=False, engine=Isolated(workers=1)) as isolated:
        report = isolated.convert(folder / "model.3mf", folder / "isolated.stl", cancel=cancel, timeout=60)
        assert report.target.faces == registry.inspect(MODEL).model.faces
        cancel()
        try:
            isolated.convert(folder / "model.3mf", folder / "canceled.stl", cancel=cancel, timeout=60)
        except Canceled:
            assert not (folder / "canceled.stl").exists()
        else:
            raise AssertionError("the conversion was not canceled")


def use_command_line(folder: Path) -> None:
    from click.testing import CliRunner

    from meshhub.cli import root

    shutil.copy(MODEL, folder / "model.stl")
    os.chdir(folder)
    for arguments in (["convert", "model.stl", "cli.glb"], ["doctor"], ["plugins"]):
        result = CliRunner().invoke(root, arguments)
        assert result.exit_code == 0, (arguments, result.output, result.exception)


def use_service(folder: Path) -> None:
    """Import every module, and convert over HTTP."""
    from litestar.testing import TestClient

    import meshhub
    from meshhub.http import Settings, create_app

    for module in pkgutil.walk_packages(meshhub.__path__, "meshhub."):
        importlib.import_module(module.name)
    # the standard library would read the certificates of Windows
    ssl.SSLContext._windows_cert_stores = ()  # type: ignore[attr-defined]
    settings = Settings(workers=1, database_url=f"sqlite:///{folder / 'keys.db'}")
    with TestClient(create_app(settings)) as client:
        response = client.post(
            "/convert", data={"target": "ply", "input_format": "stl"}, files={"file": MODEL.read_bytes()}
        )
        assert response.status_code == 200, response.text
        assert response.content.startswith(b"ply")


TASKS = {
    "library": (LIBRARIES, convert),
    "command-line": (LIBRARIES, use_command_line),
    "service": ([*LIBRARIES, *SERVICE_LIBRARIES], use_service),
}

if __name__ == "__main__":
    libraries, task = TASKS[sys.argv[1]]
    leave_posix(libraries)
    task(Path(sys.argv[2]))
