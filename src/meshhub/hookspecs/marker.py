"""pluggy markers of this project."""

from __future__ import annotations

import pluggy

PROJECT = "meshhub"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
