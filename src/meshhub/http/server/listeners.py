"""Sockets on which the service accepts connections: an address and port, a Unix socket, or those of a supervisor."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from meshhub.errors import InvalidSettings

_FIRST_DESCRIPTOR = 3
"""Descriptor of the first inherited socket, see sd_listen_fds(3)."""


@contextlib.contextmanager
def open_listeners(host: str, port: int, unix_socket: str | None) -> Iterator[list[socket.socket]]:
    """Open the sockets, and close them at the end.

    Sockets that a supervisor such as systemd passes replace the others.

    Args:
        host: Address to listen on.
        port: Port; 0 selects a free one.
        unix_socket: Path of a Unix socket, which replaces address and port; removed at the end.
    Raises:
        InvalidSettings: An inherited descriptor is not a listening stream socket.
        OSError: The address is not available.
    """
    with contextlib.ExitStack() as stack:
        listeners = _take_inherited()
        for listener in listeners:
            stack.callback(listener.close)
        if not listeners:
            listeners = [stack.enter_context(_listen_unix(unix_socket) if unix_socket else _listen(host, port))]
        yield listeners


@contextlib.contextmanager
def listen_on_loopback(ports: Iterable[int]) -> Iterator[list[socket.socket]]:
    """Open a socket for programs of this machine alone, whatever sockets a supervisor passes. Raises OSError.

    Args:
        ports: Ports to try in this order; if none of them is free, the system selects one.
    """
    with contextlib.ExitStack() as stack:
        for port in (*ports, 0):
            try:
                listener = stack.enter_context(_listen("127.0.0.1", port))
                # two programs can bind one port with SO_REUSEADDR, but only one can listen
                listener.listen()
            except OSError:
                if port == 0:
                    raise
            else:
                break
        yield [listener]


def describe(listener: socket.socket) -> str:
    """Return the address of a listener for the log."""
    address = listener.getsockname()
    if isinstance(address, str | bytes):
        return f"on the Unix socket {os.fsdecode(address) or '(without a name)'}"
    return f"http://[{address[0]}]:{address[1]}" if ":" in address[0] else f"http://{address[0]}:{address[1]}"


def _take_inherited() -> list[socket.socket]:
    """Return the sockets that the supervisor passes to this process; child processes must not take them too."""
    process = os.environ.pop("LISTEN_PID", "")
    count = os.environ.pop("LISTEN_FDS", "")
    os.environ.pop("LISTEN_FDNAMES", None)
    if process != str(os.getpid()) or not count.isdecimal():
        return []
    listeners = []
    for descriptor in range(_FIRST_DESCRIPTOR, _FIRST_DESCRIPTOR + int(count)):
        os.set_inheritable(descriptor, False)
        listener = _adopt(descriptor)
        if listener.type != socket.SOCK_STREAM or not listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            raise InvalidSettings(f"inherited descriptor {descriptor} is not a listening stream socket (LISTEN_FDS)")
        listeners.append(listener)
    return listeners


def _adopt(descriptor: int) -> socket.socket:
    listener = socket.socket(fileno=descriptor)
    if listener.family in (socket.AF_INET, socket.AF_INET6):
        # asyncio sets TCP_NODELAY only for this protocol, which the system may report as 0
        return socket.socket(listener.family, listener.type, socket.IPPROTO_TCP, fileno=listener.detach())
    return listener


@contextlib.contextmanager
def _listen(host: str, port: int) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # without it, later responses of a connection take 40 ms, because asyncio sets TCP_NODELAY only for sockets of this
    # protocol
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        try:
            if sys.platform != "win32":
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, port))
        except OSError as error:
            raise OSError(error.errno, f"cannot listen on {host}:{port}: {error.strerror or error}") from error
        yield listener


@contextlib.contextmanager
def _listen_unix(path: str) -> Iterator[socket.socket]:
    """Listen on a Unix socket; replace one that a killed service left, and remove it at the end."""
    if not hasattr(socket, "AF_UNIX"):
        raise InvalidSettings("this system has no Unix sockets; use --host and --port")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        try:
            if _is_abandoned(path):
                Path(path).unlink()
            listener.bind(path)
        except OSError as error:
            raise OSError(error.errno, f"cannot listen on {path}: {error.strerror or error}") from error
        try:
            yield listener
        finally:
            with contextlib.suppress(OSError):
                Path(path).unlink()


def _is_abandoned(path: str) -> bool:
    """Return whether a path is a Unix socket on which no program listens."""
    try:
        if not stat.S_ISSOCK(Path(path).lstat().st_mode):
            return False
    except OSError:
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            return True
    return False
