"""Open the store of jobs that the settings name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from meshhub.errors import InvalidSettings, MissingDependency
from meshhub.service.settings import load

if TYPE_CHECKING:
    from meshhub.service.jobs.store import JobStore


def open_store() -> JobStore:
    """Open the store of the settings. Raise MissingDependency, InvalidSettings."""
    try:
        from meshhub.service.jobs.opening import open_store
    except ImportError as error:
        raise MissingDependency(str(error)) from error
    loaded = load()
    try:
        return open_store(loaded.settings)
    except InvalidSettings as error:
        raise loaded.located(error) from error
