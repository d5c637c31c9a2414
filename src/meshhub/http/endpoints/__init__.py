"""The endpoints, in the order of the OpenAPI document. A module has the handlers with their descriptions."""

# why this way: docs/decisions/0060-addresses.md
from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import get_args

from meshhub.http.description.endpoint import Endpoint, Tag


def _find() -> Iterator[Endpoint]:
    """Yield the endpoints of all modules in this folder."""
    for module in pkgutil.iter_modules(__path__):
        yield from getattr(importlib.import_module(f"{__name__}.{module.name}"), "ENDPOINTS", ())


ENDPOINTS = tuple(sorted(_find(), key=lambda endpoint: get_args(Tag).index(endpoint.tag)))
"""Every endpoint of the service, by tag and module; the files of the page are beside them."""
