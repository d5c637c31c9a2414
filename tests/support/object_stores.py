"""S3-compatible server of the tests, on a real port."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

BUCKET = "meshhub-jobs"


@dataclass(frozen=True)
class ObjectServer:
    """Address of a bucket, and the variables with which programs reach it."""

    url: str
    environment: dict[str, str]


@contextlib.contextmanager
def object_server() -> Iterator[ObjectServer]:
    """Start a server with an empty bucket."""
    moto: Any = pytest.importorskip("moto.server", reason="the S3 server of the tests is moto; see tox -e cluster")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    environment = {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
    }
    import boto3

    client = boto3.client(
        "s3",
        endpoint_url=environment["AWS_ENDPOINT_URL"],
        aws_access_key_id="key",
        aws_secret_access_key="secret",
        region_name="us-east-1",
    )
    client.create_bucket(Bucket=BUCKET)
    try:
        yield ObjectServer(f"s3://{BUCKET}", environment)
    finally:
        server.stop()
