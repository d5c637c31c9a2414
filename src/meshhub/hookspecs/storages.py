"""Hooks that add storages of files."""

from __future__ import annotations

from collections.abc import Iterable

from meshhub.hookspecs.marker import hookspec
from meshhub.model.capabilities import Storage


@hookspec
def meshhub_storages() -> Iterable[Storage]:  # type: ignore[empty-body]
    """Declare storages, such as one for addresses that begin with s3://. Called once, when a registry is built.

    A storage opens addresses that a person names: text with its scheme, passed to a method of `Registry` or to the
    command line. The HTTP service never calls a storage, and a model cannot refer to an address.
    """
