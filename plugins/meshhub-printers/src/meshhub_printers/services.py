"""Services of printers: what each answers about its state and its files, and how it takes a file."""

from __future__ import annotations

import errno
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote

import httpx

from meshhub_printers.hosts import Host, PrinterError, describe_file

CONNECT_TIMEOUT_S = 5.0
"""Seconds to connect; printers are in the same network."""

ANSWER_TIMEOUT_S = 60.0
"""Seconds for an answer, because services examine a file after its upload."""

IDLE = frozenset(
    {"operational", "ready", "standby", "complete", "completed", "cancelled", "canceled", "idle", "finished", "stopped"}
)
"""States in which a print may start."""


class Service(ABC):
    """Service of one printer. Methods raise PrinterError."""

    default_storage: str

    def __init__(self, host: Host, name: str) -> None:
        """Name the printer."""
        self.host, self.name = host, name
        self.storage = host.storage or self.default_storage

    def _connect(self) -> httpx.Client:
        """Return a client for one request; the host may store a file twice, so none stays open."""
        return httpx.Client(
            base_url=self.host.url.rstrip("/"),
            headers={"X-Api-Key": self.host.key} if self.host.key else {},
            timeout=httpx.Timeout(ANSWER_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
            # a redirect would send the key to another host
            follow_redirects=False,
            # printers are in the local network, which proxies do not reach
            trust_env=False,
        )

    @abstractmethod
    def read_state(self) -> str:
        """Return the state in lower case, such as "ready" or "printing"."""

    @abstractmethod
    def has_file(self, path: str) -> bool:
        """Return whether a file exists."""

    @abstractmethod
    def read_free_bytes(self) -> int | None:
        """Return the free bytes; None if the service does not state them."""

    @abstractmethod
    def upload(self, file: Path, path: str, *, overwrite: bool, start: bool) -> bool:
        """Send a file; return whether its print started."""

    def ask(self, path: str) -> Any:
        """Return the JSON of an address; None if it does not exist."""
        with self._translate_errors(), self._connect() as client:
            response = client.get(path)
        if response.status_code == httpx.codes.NOT_FOUND:
            return None
        self.check(response)
        return self._decode(response)

    def send(self, method: str, path: str, **content: Any) -> httpx.Response:
        """Send a file, once: a repetition could start a second print."""
        with self._translate_errors(is_upload=True), self._connect() as client:
            response = client.request(method, path, **content)
        self.check(response)
        return response

    def check(self, response: httpx.Response) -> None:
        """Raise PrinterError for an answer that reports a failure."""
        status = response.status_code
        if status < 300:
            return
        if status in (401, 403):
            raise PrinterError(errno.EACCES, f"{self.name} rejects the key; correct it in {describe_file()}")
        if status in (413, 507):
            raise PrinterError(errno.ENOSPC, f"{self.name} has no room for the file; delete files there")
        if status == httpx.codes.CONFLICT:
            raise PrinterError(errno.EBUSY, f"{self.name} is busy, or the file exists and is in use; try again later")
        raise PrinterError(errno.EIO, f"{self.name} answers with status {status}; see its log, and check its url")

    def _decode(self, response: httpx.Response) -> Any:
        try:
            return response.json()
        except ValueError:
            raise PrinterError(errno.EIO, f"{self.name} does not answer as {self.host.kind}; check its url") from None

    @contextmanager
    def _translate_errors(self, *, is_upload: bool = False) -> Iterator[None]:
        try:
            yield
        except (httpx.ConnectError, httpx.ConnectTimeout):
            raise PrinterError(
                errno.EHOSTUNREACH, f"{self.name} cannot be reached; switch it on, or check its url"
            ) from None
        except httpx.HTTPError as error:
            remedy = "look at the printer before you send it again" if is_upload else "try again"
            raise PrinterError(
                errno.EIO, f"{self.name} ended the transfer ({type(error).__name__}); {remedy}"
            ) from None


def _split(path: str) -> tuple[str, str]:
    folder, _, name = path.rpartition("/")
    return folder, name


class OctoPrint(Service):
    """OctoPrint: https://docs.octoprint.org/en/master/api/files.html."""

    default_storage = "local"

    def read_state(self) -> str:
        """Return the state of the connection, or "closed"."""
        answer = self.ask("/api/connection") or {}
        return str(answer.get("current", {}).get("state", "unknown")).lower()

    def has_file(self, path: str) -> bool:
        """Return whether a file exists."""
        parts = path.split("/")
        # OctoPrint 1.11 answers with status 500 for a file in a folder that does not exist
        paths = ("/".join(parts[: count + 1]) for count in range(len(parts)))
        return all(self.ask(f"/api/files/{self.storage}/{quote(place)}") is not None for place in paths)

    def read_free_bytes(self) -> int | None:
        """Return the free bytes."""
        free = (self.ask(f"/api/files/{self.storage}") or {}).get("free")
        return int(free) if isinstance(free, int | float) else None

    def upload(self, file: Path, path: str, *, overwrite: bool, start: bool) -> bool:
        """Send a file."""
        folder, name = _split(path)
        fields = {"path": folder, "print": str(start).lower(), "noOverwrite": str(not overwrite).lower()}
        with file.open("rb") as stream:
            response = self.send("POST", f"/api/files/{self.storage}", data=fields, files=_part(name, stream))
        return bool(self._decode(response).get("effectivePrint"))


class Moonraker(Service):
    """Moonraker: https://moonraker.readthedocs.io/en/latest/external_api/file_manager/."""

    default_storage = "gcodes"

    def read_state(self) -> str:
        """Return the state of the print if Klipper is ready, otherwise that of Klipper."""
        info = (self.ask("/server/info") or {}).get("result", {})
        state = str(info.get("klippy_state", "unknown")).lower()
        if state != "ready":
            return state
        answer = (self.ask("/printer/objects/query?print_stats") or {}).get("result", {})
        return str(answer.get("status", {}).get("print_stats", {}).get("state", state)).lower()

    def has_file(self, path: str) -> bool:
        """Return whether a file exists."""
        answer = (self.ask(f"/server/files/list?root={self.storage}") or {}).get("result", [])
        return any(entry.get("path") == path for entry in answer)

    def read_free_bytes(self) -> int | None:
        """Return the free bytes."""
        answer = (self.ask(f"/server/files/directory?path={self.storage}") or {}).get("result", {})
        free = answer.get("disk_usage", {}).get("free")
        return int(free) if isinstance(free, int | float) else None

    def upload(self, file: Path, path: str, *, overwrite: bool, start: bool) -> bool:  # noqa: ARG002
        """Send a file, which replaces one of the same name."""
        folder, name = _split(path)
        fields = {"root": self.storage, "path": folder, "print": str(start).lower()}
        with file.open("rb") as stream:
            response = self.send("POST", "/server/files/upload", data=fields, files=_part(name, stream))
        return bool(self._decode(response).get("print_started"))


class PrusaLink(Service):
    """PrusaLink: https://github.com/prusa3d/Prusa-Link-Web/blob/master/spec/openapi.yaml."""

    default_storage = "usb"

    def read_state(self) -> str:
        """Return the state."""
        answer = self.ask("/api/v1/status") or {}
        return str(answer.get("printer", {}).get("state", "unknown")).lower()

    def has_file(self, path: str) -> bool:
        """Return whether a file exists."""
        return self.ask(f"/api/v1/files/{self.storage}/{quote(path)}") is not None

    def read_free_bytes(self) -> int | None:
        """Return the free bytes of the storage."""
        for storage in (self.ask("/api/v1/storage") or {}).get("storage_list", []):
            if storage.get("path", "").strip("/") == self.storage:
                free = storage.get("free_space")
                return int(free) if isinstance(free, int | float) else None
        return None

    def upload(self, file: Path, path: str, *, overwrite: bool, start: bool) -> bool:
        """Send a file."""
        headers = {
            "Content-Type": "application/octet-stream",
            "Content-Length": str(file.stat().st_size),
            "Overwrite": "?1" if overwrite else "?0",
            "Print-After-Upload": "?1" if start else "?0",
        }
        with file.open("rb") as stream:
            self.send("PUT", f"/api/v1/files/{self.storage}/{quote(path)}", content=stream, headers=headers)
        return start


def _part(name: str, stream: BinaryIO) -> dict[str, tuple[str, BinaryIO, str]]:
    return {"file": (name, stream, "application/octet-stream")}


SERVICES: dict[str, type[Service]] = {"octoprint": OctoPrint, "moonraker": Moonraker, "prusalink": PrusaLink}
"""Services by kind."""
