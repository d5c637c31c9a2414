"""The hooks a plug-in may implement, and the marker it implements them with.

    from meshhub import hookimpl

    @hookimpl
    def meshhub_readers():
        return [Reader(...)]

Every hook returns plain data; none is `firstresult`. The registry calls each plug-in by itself, so
one that raises becomes a fault and hurts no other.
"""

from __future__ import annotations

from meshhub.hookspecs import events, formats, operations, plans
from meshhub.hookspecs.marker import PROJECT, hookimpl, hookspec

MODULES = (formats, operations, plans, events)

__all__ = ["MODULES", "PROJECT", "hookimpl", "hookspec"]
