"""The running app of a user: one process holds a lock, and a second one sends it its files."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote_from_bytes

import platformdirs

from meshhub.errors import MeshhubError, ServiceUnreachable

_START_TIMEOUT_S = 30.0
"""Seconds in which the process with the lock writes its address: it may just have started."""

_RETRY_S = 0.1
"""Seconds between two looks for the address."""

_REQUEST_TIMEOUT_S = 10.0
"""Seconds for the response of the running app."""

_MAX_PORTS_COUNT = 3
"""Maximum ports that are kept: the first one, and those that replaced it while another program had it."""

_MIN_PORT, _MAX_PORT = 1024, 65_535
"""Ports that a program may use without privileges."""


class Address(NamedTuple):
    """Address of the running app."""

    port: int
    token: str

    @property
    def url(self) -> str:
        """The address of its page; the token is behind #, so that no log of requests has it."""
        return f"http://127.0.0.1:{self.port}/#token={self.token}"


class Instance:
    """Lock and address of the app of this user, in a folder that only this user can read."""

    def __init__(self) -> None:
        """Create the folder. Raises OSError."""
        folder = platformdirs.user_state_path("meshhub", appauthor=False)
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            # an OSError, which ends a command with the status of an output that cannot be written
            raise FileExistsError(
                f"{folder} must be a folder, where the app keeps its address, but is a file; move the file"
            ) from error
        self._lock_path = folder / "app.lock"
        self._address_path = folder / "app.json"
        self._ports_path = folder / "app-ports.json"
        self._lock: int | None = None

    def acquire(self) -> bool:
        """Return whether this process is now the app; it stays so until it ends. Raises OSError."""
        lock = os.open(self._lock_path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock(lock)
        except (BlockingIOError, PermissionError):
            os.close(lock)
            return False
        except OSError as error:
            os.close(lock)
            raise OSError(error.errno, error.strerror, str(self._lock_path)) from error
        self._lock = lock
        # of a process that was killed
        self._address_path.unlink(missing_ok=True)
        return True

    def publish(self, address: Address) -> None:
        """Write the address for further processes of this user, and its port for the next start. Raises OSError."""
        descriptor = os.open(self._address_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(address._asdict(), file)
        self._keep_port(address.port)

    def read_ports(self) -> list[int]:
        """Return the ports of earlier starts, the first choice first; an empty list if the file is missing or damaged.

        Browsers keep the settings of the page by its port.
        """
        ports = None
        with contextlib.suppress(OSError, ValueError, RecursionError):
            ports = json.loads(self._ports_path.read_text(encoding="utf-8"))
        if not isinstance(ports, list):
            return []
        return [port for port in ports if type(port) is int and _MIN_PORT <= port <= _MAX_PORT][:_MAX_PORTS_COUNT]

    def _keep_port(self, port: int) -> None:
        """Keep a port for the next start; without it, the next start only takes another one."""
        ports = self.read_ports()
        if port in ports:
            return
        # the first port has the settings of the most starts
        kept = [*ports[: _MAX_PORTS_COUNT - 1], port]
        with contextlib.suppress(OSError):
            descriptor = os.open(self._ports_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(kept, file)

    def release(self) -> None:
        """Remove the address, and release the lock."""
        self._address_path.unlink(missing_ok=True)
        if self._lock is not None:
            os.close(self._lock)

    def find(self) -> Address:
        """Return the address of the running app. Raises ServiceUnreachable."""
        deadline = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline:
            # the file is missing or empty while the app starts
            with contextlib.suppress(OSError, ValueError, TypeError):
                return Address(**json.loads(self._address_path.read_text(encoding="utf-8")))
            time.sleep(_RETRY_S)
        raise ServiceUnreachable(f"another meshhub app runs, but has not started after {_START_TIMEOUT_S:g} s; end it")


def send_files(address: Address, paths: Iterable[Path]) -> int:
    """Open files in the running app; return the number of its tabs. Raises MeshhubError."""
    import http.client

    # not urllib: the environment may name a proxy
    connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=_REQUEST_TIMEOUT_S)
    # JSON cannot hold names that are not UTF-8
    body = json.dumps([quote_from_bytes(os.fsencode(path.absolute())) for path in paths])
    headers = {"X-Meshhub-Token": address.token, "Content-Type": "application/json"}
    try:
        connection.request("POST", "/local/files", body, headers)
        response = connection.getresponse()
        payload = json.loads(response.read())
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise ServiceUnreachable(f"the running meshhub app does not respond: {error}; end it, and try again") from error
    finally:
        connection.close()
    if response.status >= 400:
        message, code = payload["error"], payload["error_code"]
        raise MeshhubError(message, error_code=code)
    tabs: int = payload["tabs"]
    return tabs


def _lock(descriptor: int) -> None:
    """Lock a file for this process. Raises OSError if another process has locked it."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
