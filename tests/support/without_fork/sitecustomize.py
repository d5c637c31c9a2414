"""Take `fork` and Unix sockets from this process, as on Windows: `tox -e no-fork` puts this folder into PYTHONPATH.

Python imports this file when it starts, also in the processes that tests and meshhub start. `tests/test_windows.py`
hides more, and tests less.
"""

import multiprocessing
import os
import socket


def _connect_pair(family=socket.AF_INET, kind=socket.SOCK_STREAM, protocol=0):
    """Return two connected sockets, without a Unix socket."""
    with socket.socket(family, kind, protocol) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        first = socket.socket(family, kind, protocol)
        first.connect(listener.getsockname())
        second, _ = listener.accept()
    return first, second


for _name in ("fork", "forkpty"):
    if hasattr(os, _name):
        delattr(os, _name)
if hasattr(socket, "AF_UNIX"):
    del socket.AF_UNIX
    socket.socketpair = _connect_pair
multiprocessing.get_all_start_methods = lambda: ["spawn"]
