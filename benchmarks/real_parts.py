"""Selection of real parts for comparisons with PrusaSlicer."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import manifold3d
import numpy as np
from numpy.typing import NDArray

from meshhub import MeshhubError, Registry
from meshhub.model.scene import Mesh, Part, Scene
from meshhub.toolkit.geometry import extremes, soup

Surface = tuple[NDArray[np.float64], NDArray[np.int32]]


def read_parts(
    registry: Registry,
    folder: Path,
    suffixes: Collection[str],
    max_bytes: int,
    faces_range: range,
    choose_scale: Callable[[NDArray[np.float64]], float | None],
    min_volume_mm3: float = 0.0,
) -> Iterator[tuple[str, Surface]]:
    """Yield the path in the folder and the surface of readable files that are closed solids after `repair`.

    The order is random, but always the same; of several equal shapes, there is one.

    Args:
        registry: Reads the files.
        folder: Files and folders.
        suffixes: Suffixes of files that are used, in lower case.
        max_bytes: Size of the largest file that is used.
        faces_range: Number of faces of the surfaces that are used.
        choose_scale: Returns the scale of a surface with sides (3,), or None to leave it out.
        min_volume_mm3: Volume above which a scaled surface is used.
    """
    seen = set()
    paths = sorted(folder.rglob("*"))
    random.Random(0).shuffle(paths)
    for path in paths:
        if path.suffix.lower() not in suffixes or path.stat().st_size > max_bytes:
            continue
        try:
            vertices, faces = soup(registry.read(path, repair=True))
        except (MeshhubError, ValueError):
            continue
        if len(faces) not in faces_range:
            continue
        low, high = extremes(vertices)
        scale = choose_scale(high - low)
        if scale is None:
            continue
        vertices = (vertices - low) * scale
        solid = manifold3d.Manifold(manifold3d.Mesh64(vertices, faces.astype(np.uint64)))
        if solid.status() != manifold3d.Error.NoError or solid.volume() <= min_volume_mm3:
            continue
        key = (len(faces), round(solid.volume()))
        if key not in seen:
            seen.add(key)
            yield path.relative_to(folder).as_posix().replace(",", "_"), (vertices, faces)


def make_scene(surface: Surface) -> Scene:
    """Return a scene of one mesh."""
    return Scene((Mesh(*surface),), (Part(0),))
