"""Lines of keys in TOML files, for messages."""

from __future__ import annotations

import re

_LINE = re.compile(
    r"\s*(?:\[\[?\s*(?P<table>[^\[\]]+)\]\]?|(?P<key>[^=\s#\[][^=#]*?)\s*=)",
)
"""Header of a table, or the key of a line."""


def find_line(text: str, names: tuple[str, ...]) -> int | None:
    """Return the number of the line of a TOML file that sets a key.

    Args:
        names: Tables and key; the tables of an array are numbered from 0: ("breaks", "0", "from").
    Returns:
        Line of the key, otherwise of the innermost table; None if only a full TOML parser could find it.
    """
    table: list[str] = []
    counts: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = _LINE.match(line)
        if match is None:
            continue
        words = [word.strip().strip("\"'") for word in (match["table"] or match["key"]).split(".")]
        if match["table"]:
            if line.lstrip().startswith("[["):
                counts[match["table"]] = counts.get(match["table"], -1) + 1
                words.append(str(counts[match["table"]]))
            table, words = words, []
        # a line below the key, such as a table in it, locates the key too
        if (*table, *words)[: len(names)] == names:
            return number
    return find_line(text, names[:-1]) if len(names) > 1 else None
