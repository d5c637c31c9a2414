"""References to objects of ufbx, some of which ufbx 0.0.5 does not count."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

_increment = ctypes.pythonapi.Py_IncRef
_increment.argtypes = [ctypes.py_object]
_increment.restype = None


def hold(element: Any) -> Any:
    """Return a scene, element or list of ufbx with one more reference, or None.

    In ufbx 0.0.5, getters of elements return the pointer of the scene without a reference of its own
    (`Element_from`), and array views release a reference that they never took. Without this call, Python frees objects
    that ufbx still uses, and the process crashes. Call it once for each access to an element, and before a view.

    The scene is then released at the end of the process, which ends with the conversion. A version of ufbx that counts
    references only loses memory by this call.
    """
    if element is not None:
        _increment(element)
    return element


def hold_all(elements: Iterable[Any]) -> list[Any]:
    """Return the elements of a list of ufbx, held."""
    return [hold(element) for element in hold(elements)]


def copy_array(values: Any, dtype: type[np.generic], width: int = 1) -> NDArray[Any]:
    """Return a list of ufbx as an array of its own: (n,), or (n, width)."""
    array = np.array(hold(values), dtype)
    return array.reshape(-1) if width == 1 else array.reshape(-1, width)
