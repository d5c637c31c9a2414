"""Remarks about a file that may have thousands of the same kind."""

from __future__ import annotations

from collections import Counter

from meshhub.model.notes import note

SHOWN = 5


class Findings:
    """Tells the first few remarks of a code in full, and the number of the others at the end."""

    def __init__(self) -> None:
        """Nothing is found yet."""
        self._counts: Counter[str] = Counter()
        self._told: set[tuple[str, str]] = set()

    def add(self, code: str, message: str) -> None:
        """Tell a remark, once."""
        if (code, message) in self._told:
            return
        self._counts[code] += 1
        if self._counts[code] <= SHOWN:
            self._told.add((code, message))
            note(code, message)

    def close(self) -> None:
        """Tell how many remarks were kept back."""
        for code, count in self._counts.items():
            if count > SHOWN:
                note(code, f"and {count - SHOWN} more of this kind")
