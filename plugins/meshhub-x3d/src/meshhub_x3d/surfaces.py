"""Polygons with attributes of their corners, and the meshes that they become."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from meshhub import Mesh, UnreadableFile
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import distinct, signed_volume, unit_vectors
from meshhub.toolkit.polygons import triangulate_corners
from meshhub_x3d.fields import Index


@dataclass(frozen=True)
class Surface:
    """Polygons, counter-clockwise seen from outside.

    Attributes:
        points: (n, 3) positions.
        counts: (p,) corners of each polygon.
        corners: (counts.sum(),) rows of `points`.
        attributes: "normals", "uv" and "colors": (k, 2 to 4) values, and their row at each corner.
        is_computed: Whether points come from a formula, so that triangles may have no area.
        is_solid: Whether the surface is closed, so that it can be turned outward.
    """

    points: Float64
    counts: Index
    corners: Index
    attributes: Mapping[str, tuple[Float64, Index]] = field(default_factory=dict)
    is_computed: bool = False
    is_solid: bool = False


def make_grid(points: Float64, uv: Float64) -> Surface:
    """Return the cells of a grid (rows, columns, 3) as triangles, with texture coordinates (rows, columns, 2).

    Rows go up and columns counter-clockwise, seen from above, on a surface around the Y axis.
    """
    rows, columns = points.shape[:2]
    index = np.arange(rows * columns).reshape(rows, columns)
    a, b, c, d = index[:-1, :-1], index[:-1, 1:], index[1:, 1:], index[1:, :-1]
    corners = np.stack([a, b, c, a, c, d], axis=-1).reshape(-1).astype(np.int64)
    return Surface(
        points.reshape(-1, 3),
        np.full(len(corners) // 3, 3, np.int64),
        corners,
        {"uv": (uv.reshape(-1, 2), corners)},
        is_computed=True,
    )


def join(surfaces: list[Surface], *, is_solid: bool = False) -> Surface:
    """Return computed surfaces with texture coordinates as one."""
    starts = np.cumsum([0, *(len(each.points) for each in surfaces)])
    uv_starts = np.cumsum([0, *(len(each.attributes["uv"][0]) for each in surfaces)])
    uv = np.concatenate([each.attributes["uv"][0] for each in surfaces])
    rows = [each.attributes["uv"][1] + start for each, start in zip(surfaces, uv_starts, strict=False)]
    return Surface(
        np.concatenate([each.points for each in surfaces]),
        np.concatenate([each.counts for each in surfaces]),
        np.concatenate([each.corners + start for each, start in zip(surfaces, starts, strict=False)]),
        {"uv": (uv, np.concatenate(rows))},
        is_computed=True,
        is_solid=is_solid,
    )


def to_mesh(surface: Surface, *, textured: bool, is_flipped: bool) -> Mesh | None:
    """Return the triangles of a surface, or None without one; equal corners share a vertex.

    Args:
        surface: The polygons.
        textured: Whether to keep texture coordinates.
        is_flipped: Whether the polygons are clockwise seen from outside.
    Raises:
        UnreadableFile: A corner is not a row of the points.
    """
    try:
        triangles, _ = triangulate_corners(surface.points, surface.counts, surface.corners)
    except ValueError as error:
        raise UnreadableFile(f"a mesh is damaged ({error}); export the model again") from None
    points, point_of = distinct(surface.points)
    columns = [point_of[surface.corners[triangles]]]
    values: dict[str, NDArray[np.float64]] = {}
    for name, (table, rows) in surface.attributes.items():
        if name != "uv" or textured:
            values[name], row_of = distinct(table)
            columns.append(row_of[rows[triangles]])
    if surface.is_computed:
        keep = (columns[0] != np.roll(columns[0], 1, axis=1)).all(axis=1)
        columns = [column[keep] for column in columns]
    if len(columns[0]) == 0:
        return None
    vertices, index = distinct(np.stack([column.ravel() for column in columns], axis=1).astype(np.int32))
    faces = index.reshape(-1, 3)
    positions = points[vertices[:, 0]]
    if surface.is_solid:
        is_flipped = signed_volume(positions, faces) < 0
    arrays = {name: table[vertices[:, 1 + number]] for number, (name, table) in enumerate(values.items())}
    normals, uv, colors = (arrays.get(name) for name in ("normals", "uv", "colors"))
    return Mesh(
        positions,
        faces[:, ::-1] if is_flipped else faces,
        normals=None if normals is None else unit_vectors(normals).astype(np.float32),
        uv=None if uv is None else uv.astype(np.float32),
        colors=None if colors is None else np.rint(np.clip(np.nan_to_num(colors), 0, 1) * 255).astype(np.uint8),
    )
