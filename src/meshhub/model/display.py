"""How notebooks show a scene. `meshhub` sets this: what draws a scene builds upon the model, and is imported late."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from meshhub.model.scene import Scene

describe_scene: Callable[[Scene], str]
"""Return a scene as HTML."""
