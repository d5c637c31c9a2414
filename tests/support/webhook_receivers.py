"""Receivers of webhooks."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Receiver:
    """HTTP server that records messages; the first responses have the given statuses, later ones 200."""

    def __init__(self, *statuses: int) -> None:
        self.messages: list[tuple[dict[str, str], bytes]] = []
        queue = list(statuses)
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.messages.append(({name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(queue.pop(0) if queue else 200)
                self.send_header("Location", "/elsewhere")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook?x=1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop to listen."""
        self.server.shutdown()
        self.server.server_close()
