"""Lists that the operator keeps for callers, such as their filaments: files by the id of an API key."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from meshhub.errors import InvalidOption
from meshhub.model.options import OptionField

INVENTORY = "@inventory"
"""Value of an option that stands for the list of the caller."""

MAX_INVENTORY_BYTES = 1 << 20
"""Maximum bytes of a list; a thousand filaments have a tenth of it."""

_DEFAULT = "default"
"""Name of the list of callers who have none of their own."""

log = logging.getLogger("meshhub.http")


def fill_inventories(
    folder: str | None, key_id: str, fields: Mapping[str, OptionField], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return options in which the content of the caller's list replaces `@inventory`.

    Only options that also take the content of a file can name it. A list is read for each request, so a new file
    counts at once.

    Args:
        folder: Folder with a file for each key, named by its id, and `default` for the others; None for no lists.
        key_id: Id of the caller's API key; "" without one.
        fields: All options by name.
        options: Options of a request by name.
    Raises:
        InvalidOption: The operator keeps no list for the caller.
    """
    return {
        name: _read_list(folder, key_id, fields[name])
        if isinstance(value, str) and value.strip() == INVENTORY and name in fields and fields[name].file_extensions
        else value
        for name, value in options.items()
    }


def list_inventory_options(folder: str | None, key_id: str, fields: Iterable[OptionField]) -> list[str]:
    """Return the names of the options for which the operator keeps a list for the caller; see `fill_inventories`."""
    return sorted(field.name for field in fields if _find_list(folder, key_id, field) is not None)


def _find_list(folder: str | None, key_id: str, field: OptionField) -> Path | None:
    stems = [] if folder is None else list(filter(None, (key_id, _DEFAULT)))
    paths = (Path(folder or "", stem + extension) for stem in stems for extension in field.file_extensions)
    return next(filter(Path.is_file, paths), None)


def _read_list(folder: str | None, key_id: str, field: OptionField) -> str:
    path = _find_list(folder, key_id, field)
    if path is not None:
        return _read_text(path, field)
    raise InvalidOption(
        f"option '{{{field.name}}}' is {INVENTORY}, but the service keeps no list for you; send the list itself",
        options=(field.name,),
    )


def _read_text(path: Path, field: OptionField) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_INVENTORY_BYTES + 1)
        if len(content) <= MAX_INVENTORY_BYTES:
            return content.decode("utf-8-sig")
        problem = f"over {MAX_INVENTORY_BYTES} bytes"
    except OSError as error:
        problem = str(error.strerror)
    except ValueError:
        problem = "it is not UTF-8 text"
    log.warning("list %s cannot be read: %s", path, problem)
    raise InvalidOption(
        f"option '{{{field.name}}}' is {INVENTORY}, but the service cannot read your list; send the list itself",
        options=(field.name,),
    )
