"""Server with the toy format in a separate process, for tests that kill it: `python job_server.py FOLDER`."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from http_serving import serving
from meshhub.engine.isolated import Isolated


def main() -> None:
    folder = Path(sys.argv[1])
    with serving(folder, {"workers": 2}, Isolated(workers=3)) as running:
        (folder / "port").write_text(str(running.port))
        threading.Event().wait()


if __name__ == "__main__":
    main()
