"""An S3 server on a real port (moto), and a server whose responses a test scripts."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

SETTINGS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="session")
def client(endpoint: str) -> Any:
    """Return another program's client, with the buckets `models` and `private`."""
    client = boto3.client(
        "s3", endpoint_url=endpoint, aws_access_key_id="key", aws_secret_access_key="secret", region_name="us-east-1"
    )
    for bucket in ("models", "private"):
        client.create_bucket(Bucket=bucket)
    return client


@pytest.fixture
def environment(endpoint: str, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**SETTINGS, "AWS_ENDPOINT_URL": endpoint, "MESHHUB_S3_BUCKETS": "models, absent"}.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def scripted(environment: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., list[bytes]]]:
    """Return a function that starts a server; its n-th connection gets the n-th response, then the last one.

    A response is bytes, or a function that writes to the socket. The function returns the list of requests.
    """
    listeners: list[socket.socket] = []

    def start(*responses: Any) -> list[bytes]:
        requests: list[bytes] = []
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def serve(connection: socket.socket, response: Any) -> None:
            with connection:
                try:
                    requests.append(connection.recv(65_536))
                    response(connection) if callable(response) else connection.sendall(response)
                except OSError:
                    pass

        def accept() -> None:
            count = 0
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                response = responses[min(count, len(responses) - 1)]
                threading.Thread(target=serve, args=(connection, response), daemon=True).start()
                count += 1

        threading.Thread(target=accept, daemon=True).start()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{listener.getsockname()[1]}")
        return requests

    yield start
    for listener in listeners:
        listener.close()
