"""Words and numbers in the language of the command line."""

from __future__ import annotations

from meshhub.cli.locale import ENGLISH, language
from meshhub.errors import format_number


def tr(text: str) -> str:
    """Return a word or sentence in the language of the locale; without a translation, unchanged."""
    if language() == ENGLISH:
        # the list of commands imports no catalog
        return text
    from meshhub.cli.catalogs import texts

    return texts().words.get(text, text)


def labeled(label: str, text: str) -> str:
    """Return a text after its label in the language of the locale, such as "error: the file is empty"."""
    return f"{tr(label)}{tr(': ')}{text}"


def headings(*names: str) -> tuple[str, ...]:
    """Return the headings of columns in the language of the locale."""
    return tuple(map(tr, names))


def count(number: int, one: str, many: str) -> str:
    """Return a number with its noun, such as "1 face" or "1,400 faces"."""
    return f"{show_number(number)} {tr(one if number == 1 else many)}"


def show_number(value: float, digits: int = 6) -> str:
    """Format a number with the marks of the language: whole ones with every digit, others with significant digits."""
    text = f"{value:,}" if isinstance(value, int) else format_number(value, digits)
    return localize(text)


def localize(text: str) -> str:
    """Replace the English marks of thousands and decimals in the text of a number."""
    # imported here, because the list of commands has no numbers
    from meshhub.cli.catalogs import host_texts

    return host_texts().localize(text)
