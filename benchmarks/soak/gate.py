"""Gate that pauses all clients while the service is measured."""

from __future__ import annotations

import threading


class Gate:
    """Gate that clients pass while it is open; it counts the clients that wait while it is closed."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._open = True
        self.waiting = 0

    def wait(self) -> None:
        """Wait until the gate is open."""
        with self._changed:
            self.waiting += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._open)
            self.waiting -= 1

    @property
    def is_closed(self) -> bool:
        """Whether clients should stop and wait."""
        return not self._open

    def close(self, clients: int, seconds: float) -> bool:
        """Close the gate; return whether this many clients waited before the timeout."""
        with self._changed:
            self._open = False
            return self._changed.wait_for(lambda: self.waiting >= clients, seconds)

    def open(self) -> None:
        """Open the gate."""
        with self._changed:
            self._open = True
            self._changed.notify_all()
