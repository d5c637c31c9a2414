"""Colors of data: values at points become vertex colors, values in cells materials of faces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from meshhub import Material, note
from meshhub.model.scene import Float64, Int32, UInt8
from meshhub_meshio import ColorMap, MeshioOptions
from meshhub_meshio.surface import Surface

if TYPE_CHECKING:
    import meshio

_MAPS: dict[ColorMap, str] = {
    "viridis": "440154 482878 3e4989 31688e 26828e 1f9e89 35b779 6ece58 b5de2b fde725",
    "coolwarm": "3b4cc0 6788ee 9abbff c9d7f0 edd1c2 f7a889 e26952 b40426",
    "turbo": "30123b 4662d7 36aaf9 1ae4b6 72fe5e c8ef34 faba39 f66b19 ca2a04 7a0403",
    "gray": "000000 ffffff",
}
"""Colors at equal distances, between which a map is linear."""

_MISSING = (128, 128, 128, 255)
"""Color of a value that is not a number."""

MAX_STEPS_COUNT = 64
"""Maximum materials of data in cells; integers with fewer values have one for each."""


def list_data(mesh: meshio.Mesh) -> list[str]:
    """Return the names of the data at points and in cells."""
    return [*mesh.point_data, *(name for name in mesh.cell_data if name not in mesh.point_data)]


def color_points(mesh: meshio.Mesh, options: MeshioOptions) -> UInt8 | None:
    """Return (n, 4) colors of the points; None if the data are in cells, or no data are requested."""
    if options.meshio_color_by not in mesh.point_data:
        return None
    values = _measure(mesh.point_data[options.meshio_color_by], len(mesh.points))
    return _map(_scale(values, options), options.meshio_color_map)


def color_faces(
    mesh: meshio.Mesh, surface: Surface, options: MeshioOptions
) -> tuple[Int32 | None, tuple[Material, ...]]:
    """Return the material of each face, and the materials; None for data at points, or without requested data."""
    name = options.meshio_color_by
    if name is None or name in mesh.point_data:
        return None, ()
    if name not in mesh.cell_data:
        known = ", ".join(list_data(mesh)) or "none"
        note(
            "data_missing",
            f"the file has no data {name!r} for {{meshio_color_by}}; it has: {known:.100}",
            options=("meshio_color_by",),
        )
        return None, ()
    blocks = [_measure(block, len(cells.data)) for block, cells in zip(mesh.cell_data[name], mesh.cells, strict=True)]
    begins = np.cumsum([0, *map(len, blocks)])
    values = np.concatenate([np.empty(0), *blocks])[begins[surface.block] + surface.cell]
    finite = np.isfinite(values)
    distinct = np.unique(values[finite])
    if len(distinct) > MAX_STEPS_COUNT:
        low, high = _find_range(values, options)
        # the middles of equal intervals
        distinct = low + (np.arange(MAX_STEPS_COUNT) + 0.5) * (high - low) / MAX_STEPS_COUNT
    bounds = (distinct[1:] + distinct[:-1]) / 2
    material = np.full(len(values), len(distinct), np.int32)
    material[finite] = np.searchsorted(bounds, values[finite])
    palette = _map(_scale(distinct, options, values), options.meshio_color_map) / 255
    materials = [
        Material(name=f"{name} {value:.6g}", base_color=(float(r), float(g), float(b), 1.0))
        for value, (r, g, b, _) in zip(distinct.tolist(), palette.tolist(), strict=True)
    ]
    if not finite.all():
        gray = _MISSING[0] / 255
        materials.append(Material(name=f"{name} missing", base_color=(gray, gray, gray, 1.0)))
    return material, tuple(materials)


def _measure(data: object, count: int) -> Float64:
    """Return one number for each point or cell: that of scalars, the length of vectors and tensors."""
    values = np.asarray(data)
    if len(values) != count or values.dtype.kind not in "biuf":
        return np.full(count, np.nan)
    values = values.astype(np.float64)
    return values if values.ndim == 1 else np.linalg.norm(values.reshape(count, -1), axis=1)


def _find_range(values: Float64, options: MeshioOptions) -> tuple[float, float]:
    """Return the values of the first and the last color."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    low = low if options.meshio_color_min is None else options.meshio_color_min
    high = high if options.meshio_color_max is None else options.meshio_color_max
    return low, high


def _scale(values: Float64, options: MeshioOptions, all_values: Float64 | None = None) -> Float64:
    """Return fractions from 0 to 1; NaN stays."""
    low, high = _find_range(values if all_values is None else all_values, options)
    return np.clip((values - low) / ((high - low) or 1.0), 0.0, 1.0)


def _map(fractions: Float64, name: ColorMap) -> UInt8:
    """Return (n, 4) colors of fractions."""
    stops = np.array([tuple(bytes.fromhex(color)) for color in _MAPS[name].split()], np.float64)
    positions = np.linspace(0.0, 1.0, len(stops))
    colors = np.full((len(fractions), 4), 255.0)
    is_missing = np.isnan(fractions)
    for channel in range(3):
        colors[:, channel] = np.interp(np.where(is_missing, 0.0, fractions), positions, stops[:, channel])
    colors[is_missing] = _MISSING
    result: UInt8 = np.rint(colors).astype(np.uint8)
    return result
