"""The synchronous client, from the asynchronous one."""

from __future__ import annotations

import re
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "meshhub" / "client" / "asynchronous.py"

_WORDS = {
    "AsyncClient": "Client",
    "AsyncIterator": "Iterator",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "aclose": "close",
    "aiter_bytes": "iter_bytes",
    "aiter_lines": "iter_lines",
    "aread": "read",
    "asynccontextmanager": "contextmanager",
    "asyncio": "time",
}
"""Names of the asynchronous client with those of the synchronous one."""


def page() -> str:
    """Return the module of the synchronous client."""
    _, _, text = SOURCE.read_text(encoding="utf-8").partition("\n\n")
    text = re.sub(r"await asyncio\.to_thread\(([\w.]+), ", r"\1(", text)
    text = re.sub(r"\b(async|await) ", "", text)
    text = re.sub(r"\w+", lambda match: _WORDS.get(match[0], match[0]), text)
    # imports in the order of their names
    text = text.replace(
        "import time\nimport contextlib\nimport tempfile\n", "import contextlib\nimport tempfile\nimport time\n"
    )
    docstring = '"""Synchronous client. Generated from asynchronous.py by `python docs/make_reference.py`."""'
    return f"{docstring}\n\n{text}"
