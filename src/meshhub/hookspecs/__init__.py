"""Hooks that a plug-in can implement, and the marker for its implementations.

    from meshhub import hookimpl

    @hookimpl
    def meshhub_readers():
        return [Reader(...)]

Hooks return plain data, and none is `firstresult`. The registry calls each plug-in separately: if one raises, the
registry records a fault, and the other plug-ins still load.
"""

from __future__ import annotations

from meshhub.hookspecs import events, formats, operations, plans, recipes, storages
from meshhub.hookspecs.marker import PROJECT, hookimpl, hookspec

MODULES = (formats, operations, recipes, storages, plans, events)

__all__ = ["MODULES", "PROJECT", "hookimpl", "hookspec"]
