"""Printers of storages: which a caller may use, their states, and the addresses of their files."""

# why this way: docs/decisions/0062-network-printers.md
from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from urllib.parse import quote

from meshhub.errors import PremiumRequired, RequestError
from meshhub.errors import quote as quote_value
from meshhub.model.capabilities import SCHEME, NetworkPrinter, Storage
from meshhub.model.plans import Caller
from meshhub.pipeline.declarations import load
from meshhub.pipeline.storages import Storages

_PRINTER = re.compile(rf"({SCHEME})://[^/?#\\\s]{{1,100}}")


def find_storages(storages: Storages, caller: Caller) -> Mapping[str, Storage]:
    """Return the storages with printers that a caller may use, by scheme."""
    return {
        scheme: declared.capability
        for scheme, declared in storages.items()
        if declared.capability.printers and not declared.missing and caller.plan.allows(declared.capability.requires)
    }


def list_printers(storages: Storages, caller: Caller) -> list[NetworkPrinter]:
    """Return the printers that a caller may use, with their states. Raises MeshhubError, OSError."""
    usable = find_storages(storages, caller)
    if not usable:
        return []
    # no other command needs threads
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(len(usable)) as pool:
        lists = pool.map(lambda item: load(item[1].printers or "")(item[0]), usable.items())
        return [printer for printers in lists for printer in printers]


def address_file(storages: Storages, caller: Caller, printer: str, name: str, *, start: bool) -> str:
    """Return the address of a file on a printer.

    Args:
        storages: Storages by scheme.
        caller: Its entitlements decide about the storage.
        printer: Address of the printer, as `list_printers` returns it.
        name: Name of the file.
        start: Whether it is printed as soon as it is stored.
    Raises:
        RequestError: The address has another form, or the printer does not take the file.
        PremiumRequired: The plan does not include the storage.
    """
    match = _PRINTER.fullmatch(printer)
    storage = find_storages(storages, caller).get(match[1]) if match else None
    if match and storage is None and match[1] in storages and storages[match[1]].capability.printers:
        raise PremiumRequired(
            f"the plan {caller.plan.id!r} does not include printers; use the key of a plan that does",
            values={"plan": caller.plan.label},
        )
    if storage is None:
        raise RequestError(f"{quote_value(printer)} is not a printer; name one of the list of printers")
    if not name.lower().endswith(storage.prints):
        kinds = ", ".join(storage.prints[:3])
        raise RequestError(f"printers print {kinds}, not {quote_value(PurePosixPath(name).suffix)}; slice the model")
    if start and not storage.start_query:
        raise RequestError(f"{quote_value(printer)} starts no print; send the file, and start it there")
    return f"{printer}/{quote(name, safe='')}{storage.start_query if start else ''}"
