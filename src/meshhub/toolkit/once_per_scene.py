"""Intermediate results that several checks need of one scene, or of one mesh."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar, TypeVarTuple, cast
from weakref import WeakKeyDictionary

Owner = TypeVar("Owner")
T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")


class _Result(Generic[T]):
    """Result for one scene, and the other arguments that it is for; None before the first."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.arguments: tuple[object, ...] | None = None
        self.value: T | None = None


class OncePerScene(Generic[Owner, T, *Arguments]):
    """Decorator that computes a result once per scene, also if threads ask for it at the same time.

    It keeps the result of the latest other arguments as long as the scene lives, so the result must not hold the scene.
    """

    def __init__(self, compute: Callable[[Owner, *Arguments], T]) -> None:
        self.__doc__ = compute.__doc__
        self._compute = compute
        self._known: WeakKeyDictionary[Owner, _Result[T]] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def __call__(self, scene: Owner, *arguments: *Arguments) -> T:
        """Return the result for a scene, or for a mesh."""
        with self._lock:
            known = self._known.setdefault(scene, _Result())
        with known.lock:
            if known.arguments != arguments:
                known.value, known.arguments = self._compute(scene, *arguments), arguments
            return cast(T, known.value)
