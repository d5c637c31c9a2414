"""Hidden objects of files: left out with one note for all formats, or read if nothing else is in the file."""

from __future__ import annotations

from meshhub.model.notes import note


def report_hidden(count: int, *, is_read: bool = False) -> None:
    """Note the hidden objects of a file; nothing if it has none.

    A reader leaves out what the program that wrote the file does not show. If all objects with triangles are hidden, it
    reads them, because the choice in that program was about a view.

    Args:
        count: Objects that the file marks as hidden, without the objects below them.
        is_read: Whether they were read, because the file shows no other.
    """
    if count and is_read:
        note("hidden_read", "the file hides all of its objects; they were read")
    elif count:
        note(
            "hidden_ignored",
            f"left out hidden objects ({count}); show them in the program that wrote the file, and export it again",
            count=count,
        )
