"""Options of single files of a request with several: the form field `file_options`."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from meshhub.errors import InvalidOption

FIELD = "file_options"
"""Name of the form field."""

FileOptions = Mapping[str, Mapping[str, bool | int | float | str | None]]
"""Options by file: by its index in the upload, or by its path in an archive."""

_DECODER = msgspec.json.Decoder(dict[str, dict[str, bool | int | float | str | None]])


def parse_file_options(text: str) -> FileOptions:
    """Parse the field; empty text has no options. Raises InvalidOption."""
    if not text.strip():
        return {}
    try:
        return _DECODER.decode(text)
    except msgspec.DecodeError as error:
        raise InvalidOption(
            f'option \'{FIELD}\' must be JSON by file, such as {{"0": {{"input_unit": "m"}}}}: {error}'
        ) from None
