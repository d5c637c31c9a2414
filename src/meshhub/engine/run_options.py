"""Keywords that the methods of `Registry` share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from meshhub.engine.contract import Cancel
from meshhub.model.convert_options import CheckOptions, ConvertOptions, PictureOptions, QuoteOptions
from meshhub.model.plans import LOCAL, Caller
from meshhub.model.progress import Listener


class RunOptions(ConvertOptions, total=False):
    """Keywords of all methods of `Registry` that run something; further keywords are the built-in options."""

    caller: Caller
    """Its plan decides about entitlements. Default: all of them."""

    timeout: float | None
    """Seconds until the engine stops. Default: no deadline."""

    cancel: Cancel | None
    """Stops the engine from another thread."""

    progress: Listener | None
    """Called in the calling thread with a `Progress` when a step begins, at most ten times a second while it runs, and
    at the end. An exception that it raises stops the engine and reaches the caller."""

    options: Mapping[str, object]
    """Options by name, for options of installed plug-ins and for names that a program computes."""


class RenderRunOptions(RunOptions, PictureOptions, total=False):
    """Keywords of `Registry.render`."""


class CheckRunOptions(RunOptions, CheckOptions, total=False):
    """Keywords of `Registry.check`."""


class QuoteRunOptions(RunOptions, QuoteOptions, total=False):
    """Keywords of `Registry.quote` and `Registry.estimate`."""


@dataclass(frozen=True)
class RunSettings:
    """Caller and limits of one run; see `RunOptions`."""

    caller: Caller
    timeout: float | None
    cancel: Cancel | None
    progress: Listener | None


def split_keywords(
    *,
    caller: Caller = LOCAL,
    timeout: float | None = None,
    cancel: Cancel | None = None,
    progress: Listener | None = None,
    options: Mapping[str, object] = MappingProxyType({}),
    **keywords: object,
) -> tuple[RunSettings, dict[str, object]]:
    """Return the settings of a run among its keywords, and its options by name."""
    return RunSettings(caller, timeout, cancel, progress), {**options, **keywords}
