"""Stand-ins for the services of printers, by their published interfaces."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "secret-key"


@dataclass
class Printer:
    """State of a stand-in, and what it received."""

    kind: str
    state: str
    free: int = 1 << 30
    files: dict[str, bytes] = field(default_factory=dict)
    starts: list[str] = field(default_factory=list)
    requests: list[tuple[str, str]] = field(default_factory=list)
    upload_status: int = 201
    accepts_starts: bool = True
    url: str = ""

    def answer(self, method: str, path: str, headers: Any, body: bytes) -> tuple[int, Any]:
        if headers.get("X-Api-Key") != KEY:
            return 401, {}
        return getattr(self, f"_{self.kind}")(method, path, headers, body)

    def _prusalink(self, method: str, path: str, headers: Any, body: bytes) -> tuple[int, Any]:
        if path == "/api/v1/status":
            return 200, {"printer": {"state": self.state}}
        if path == "/api/v1/storage":
            return 200, {"storage_list": [{"path": "/usb/", "free_space": self.free}]}
        name = path.removeprefix("/api/v1/files/usb/")
        if method == "GET":
            return (200, {"name": name}) if name in self.files else (404, {})
        if name in self.files and headers["Overwrite"] != "?1":
            return 409, {}
        return self._keep(name, body, start=headers["Print-After-Upload"] == "?1"), {}

    def _octoprint(self, method: str, path: str, headers: Any, body: bytes) -> tuple[int, Any]:
        if path == "/api/connection":
            return 200, {"current": {"state": self.state}}
        if path == "/api/files/local" and method == "GET":
            return 200, {"free": self.free, "files": []}
        if method == "GET":
            name = path.removeprefix("/api/files/local/")
            folders = {file.rpartition("/")[0] for file in self.files}
            if name.rpartition("/")[0] not in {"", *folders}:
                return 500, {}
            return (200, {}) if name in {*self.files, *folders} else (404, {})
        fields = _parse_form(headers["Content-Type"], body)
        start = fields["print"] == b"true"
        name = f"{fields['path'].decode()}/{fields['filename'].decode()}".lstrip("/")
        status = self._keep(name, fields["file"], start=start)
        return status, {"done": True, "effectivePrint": start and self.accepts_starts}

    def _moonraker(self, method: str, path: str, headers: Any, body: bytes) -> tuple[int, Any]:
        if path == "/server/info":
            return 200, {"result": {"klippy_state": "ready" if self.state != "error" else "error"}}
        if path.startswith("/printer/objects/query"):
            return 200, {"result": {"status": {"print_stats": {"state": self.state}}}}
        if path.startswith("/server/files/directory"):
            return 200, {"result": {"disk_usage": {"free": self.free}}}
        if method == "GET":
            return 200, {"result": [{"path": name} for name in self.files]}
        fields = _parse_form(headers["Content-Type"], body)
        start = fields["print"] == b"true"
        folder = fields["path"].decode()
        name = f"{folder}/{fields['filename'].decode()}".lstrip("/")
        return self._keep(name, fields["file"], start=start), {"print_started": start and self.accepts_starts}

    def _keep(self, name: str, content: bytes, *, start: bool) -> int:
        if self.upload_status < 300:
            self.files[name] = content
            if start and self.accepts_starts:
                self.starts.append(name)
        return self.upload_status


def _parse_form(content_type: str, body: bytes) -> dict[str, bytes]:
    boundary = b"--" + content_type.partition("boundary=")[2].encode()
    fields: dict[str, bytes] = {}
    for part in body.split(boundary)[1:-1]:
        head, _, value = part[2:-2].partition(b"\r\n\r\n")
        names = dict(item.split(b"=") for item in head.split(b"\r\n")[0].split(b"; ")[1:])
        fields[names[b"name"].strip(b'"').decode()] = value
        if b"filename" in names:
            fields["filename"] = names[b"filename"].strip(b'"')
    return fields


@contextmanager
def serving(printer: Printer) -> Iterator[Printer]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            printer.requests.append((self.command, self.path))
            status, content = printer.answer(self.command, self.path, self.headers, body)
            data = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = _answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    printer.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield printer
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
