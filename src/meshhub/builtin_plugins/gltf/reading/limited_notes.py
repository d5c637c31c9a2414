"""Notes about a file that may have thousands of the same kind."""

from __future__ import annotations

from collections import Counter

from meshhub.model.notes import note

_MAX_NOTES_PER_CODE_COUNT = 5
"""Notes of one code that are reported in full; more would hide the other codes."""


class LimitedNotes:
    """Reports the first notes of each code in full, and counts the others."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._reported: set[tuple[str, str]] = set()

    def add(self, code: str, message: str) -> None:
        """Report a note once."""
        if (code, message) in self._reported:
            return
        self._counts[code] += 1
        if self._counts[code] <= _MAX_NOTES_PER_CODE_COUNT:
            self._reported.add((code, message))
            note(code, message)

    def count_rest(self) -> None:
        """Report how many notes of each code were not reported in full."""
        for code, count in self._counts.items():
            if count > _MAX_NOTES_PER_CODE_COUNT:
                note(code, f"and {count - _MAX_NOTES_PER_CODE_COUNT} more of this kind")
