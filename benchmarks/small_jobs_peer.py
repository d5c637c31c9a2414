"""Service that converts with trimesh in a pool of processes, for `small_jobs.py`; it isolates no caller."""

from __future__ import annotations

import io
import multiprocessing
import os
import socket
import sys
from concurrent.futures import ProcessPoolExecutor
from typing import Annotated

import anyio.to_thread
import trimesh
import uvicorn
from fastapi import FastAPI, Form, Response, UploadFile

app = FastAPI()
# forked children of a server with threads may wait forever for a lock
pool = ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn"))


def convert_bytes(content: bytes, target: str) -> bytes:
    """Return an STL file in another format."""
    mesh = trimesh.load_mesh(io.BytesIO(content), file_type="stl")
    result = mesh.export(file_type=target)
    return result if isinstance(result, bytes) else result.encode()


@app.get("/health/ready")
def ready() -> None:
    """Convert nothing; the pool starts its processes at the first request."""


@app.post("/convert")
async def convert(file: UploadFile, target: Annotated[str, Form()]) -> Response:
    """Convert a file."""
    future = pool.submit(convert_bytes, await file.read(), target)
    return Response(await anyio.to_thread.run_sync(future.result))


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(f"http://127.0.0.1:{listener.getsockname()[1]}", file=sys.stderr, flush=True)
        uvicorn.run(app, fd=listener.fileno(), log_level="warning", access_log=False)
