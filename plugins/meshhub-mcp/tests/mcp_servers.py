"""Server under test, and the tools that it has."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

TOOLS = {
    "check_model",
    "convert",
    "explain",
    "inspect",
    "list_models",
    "plan_limits",
    "quote_model",
    "render",
    "supported",
}


class Server(NamedTuple):
    """A running server, its address, and the folder that it allows."""

    url: str
    folder: Path
    environment: dict[str, str]
