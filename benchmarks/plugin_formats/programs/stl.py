"""Binary STL, in which the programs of this folder write what they read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_FACET = [("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")]


def write_stl(path: str, parts: list[tuple[NDArray[np.float64], NDArray[np.int64]]]) -> None:
    """Write parts of (points, triangles); without triangles, write no file."""
    corners = [points[faces] for points, faces in parts if len(faces)]
    if not corners:
        return
    facets = np.zeros(sum(map(len, corners)), _FACET)
    facets["corners"] = np.concatenate(corners)
    Path(path).write_bytes(bytes(80) + np.uint32(len(facets)).tobytes() + facets.tobytes())


def read_stl(path: Path) -> NDArray[np.float64]:
    """Return the corners of the triangles, (n, 3, 3), of a binary file, or of a text file of OpenSceneGraph."""
    data = path.read_bytes()
    if data.startswith(b"solid") and b"facet" in data:
        words = np.array(data.split())
        places = np.flatnonzero(words == b"vertex")
        return words[places[:, None] + np.arange(1, 4)].astype(np.float64).reshape(-1, 3, 3)
    # a file that is shorter than its header has no triangles
    count = max(len(data) - 84, 0) // np.dtype(_FACET).itemsize
    return np.frombuffer(data, _FACET, count, 84 if count else 0)["corners"].astype(np.float64)


def place(
    points: NDArray[np.float64], faces: NDArray[np.int64], matrix: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Transform points as columns; a mirror turns the triangles, so that they still face outward."""
    step = -1 if np.linalg.det(matrix[:3, :3]) < 0 else 1
    return points @ matrix[:3, :3].T + matrix[:3, 3], faces[:, ::step]
