"""Intermediate results that several checks need of one scene."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar, TypeVarTuple
from weakref import WeakKeyDictionary

from meshhub.model.scene import Scene

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")


class OncePerScene(Generic[T, *Arguments]):
    """Decorator that computes a result once per scene, also if threads ask for it at the same time.

    It keeps the result of the latest other arguments as long as the scene lives, so the result must not hold the scene.
    """

    def __init__(self, compute: Callable[[Scene, *Arguments], T]) -> None:
        self.__doc__ = compute.__doc__
        self._compute = compute
        self._known: WeakKeyDictionary[Scene, tuple[tuple[*Arguments], T]] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def __call__(self, scene: Scene, *arguments: *Arguments) -> T:
        """Return the result for a scene."""
        with self._lock:
            known = self._known.get(scene)
            if known is None or known[0] != arguments:
                known = self._known[scene] = (arguments, self._compute(scene, *arguments))
            return known[1]
