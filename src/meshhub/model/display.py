"""How notebooks show a scene; set by the package `meshhub`, because the code for it depends on the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from meshhub.model.scene import Scene

describe_scene: Callable[[Scene], str]
"""Return a scene as HTML."""
