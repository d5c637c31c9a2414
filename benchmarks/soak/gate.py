"""Where clients wait while the service is looked at."""

from __future__ import annotations

import threading


class Gate:
    """Clients go on while it is open, and are counted while they wait."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._open = True
        self.waiting = 0

    def passing(self) -> None:
        """Wait while it is closed."""
        with self._changed:
            self.waiting += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._open)
            self.waiting -= 1

    @property
    def shut(self) -> bool:
        """Whether clients should come and wait."""
        return not self._open

    def close(self, clients: int, seconds: float) -> bool:
        """Close it and wait for so many clients; whether they all came."""
        with self._changed:
            self._open = False
            return self._changed.wait_for(lambda: self.waiting >= clients, seconds)

    def open(self) -> None:
        """Let them go on."""
        with self._changed:
            self._open = True
            self._changed.notify_all()
