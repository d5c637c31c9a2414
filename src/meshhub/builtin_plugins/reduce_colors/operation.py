"""Reduce the colors of a scene to a palette, and report how exact the result is."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.reduce_colors import MAX_FILAMENT_COUNT, ReduceColorsOptions
from meshhub.builtin_plugins.reduce_colors.borders import smooth_borders
from meshhub.builtin_plugins.reduce_colors.dither import find_thresholds
from meshhub.builtin_plugins.reduce_colors.filament_files import parse_filaments
from meshhub.builtin_plugins.reduce_colors.filaments import check_color
from meshhub.builtin_plugins.reduce_colors.leaves import Leaves
from meshhub.builtin_plugins.reduce_colors.palette import (
    ColorBins,
    choose_filaments,
    cluster_palette,
    see_through,
    weigh_flat_samples,
)
from meshhub.builtin_plugins.reduce_colors.quantize import Quantizer
from meshhub.builtin_plugins.reduce_colors.subdivide import (
    MAX_LEAF_COUNT,
    Samples,
    elect_labels,
    spread_samples,
    subdivide,
)
from meshhub.errors import format_number
from meshhub.model.destination import get_destination
from meshhub.model.notes import did, note
from meshhub.model.scene import Division, Float32, Float64, Int32, Material, Mesh, Scene, UInt8
from meshhub.toolkit.geometry import face_normals, weld
from meshhub.toolkit.surface_colors import Surface, SurfaceColors

REPORT_RATIO = 4
"""Cells that share one sample of the report; their mean over the surface is exact enough."""

LEAVES_PER_DITHER_CELL = 6
"""Leaves per dithered cell; cells grow so that all leaves fit into MAX_LEAF_COUNT."""


class _Palette(NamedTuple):
    """Colors to use.

    quantizer: its palette has the colors that the filaments show
    colors: (n, 3) colors of the filaments themselves
    names: names of the filaments
    """

    quantizer: Quantizer
    colors: UInt8
    names: list[str]


class _Faces(NamedTuple):
    """Triangles of all surfaces of a scene, one surface after the other.

    first:  (s + 1,) first triangle of each surface, then the number of triangles
    scale:  (m,) millimeters per unit of length in the largest part
    uses:   (m,) area in all parts that place the triangle, relative to the largest
    points: (p, 3) welded positions of all surfaces
    corners: (m, 3) points of the triangles
    """

    first: NDArray[np.intp]
    scale: Float64
    uses: Float64
    points: Float64
    corners: Int32


def run(scene: Scene, options: ReduceColorsOptions) -> Scene:
    """Reduce the colors of the scene to a few, with one material for each.

    Args:
        scene: Millimeters, Z up.
        options: Number of colors or filaments, and the fineness of the borders.
    Returns:
        Scene whose triangles have flat materials; parts with a common mesh and material still share a mesh.
    """
    surfaces = list(dict.fromkeys(Surface(part.mesh, part.material) for part in scene.parts))
    background = check_color("reduce_colors_background", options.reduce_colors_background)
    colors = SurfaceColors(scene, surfaces, background, emission=options.reduce_colors_emission)
    faces = _collect_faces(scene, surfaces)
    leaves = Leaves(
        faces.points,
        faces.corners,
        np.arange(len(faces.corners), dtype=np.int32),
        np.broadcast_to(np.eye(3, dtype=np.float32), (len(faces.corners), 3, 3)),
        np.zeros(len(faces.corners), np.uint8),
        np.ones(len(faces.corners), np.float32),
    )
    cell, every = options.reduce_colors_cell_mm, np.arange(len(leaves.face))
    area = leaves.areas() * np.square(faces.scale)
    samples = spread_samples(leaves, every, _count_cells(area, cell, colors))
    sampled = colors.sample(samples.face, samples.weights)
    corners = faces.points[faces.corners[samples.face]]
    points = np.einsum("kc,kcd->kd", samples.weights, corners) * faces.scale[samples.face, None]
    weight = weigh_flat_samples(points, sampled, _weigh_samples(area * faces.uses, samples), cell)
    palette = _choose_palette(sampled, weight, options)
    painter = _Painter(faces, colors, palette.quantizer, options)
    entry = painter.quantize(samples.face, samples.weights, sampled)
    leaves = elect_labels(leaves, every, samples.owner, entry, len(palette.names))
    leaves = subdivide(leaves, faces.scale, painter.label, len(palette.names), cell)
    if options.reduce_colors_borders == "smooth" and options.reduce_colors_dither == "none":
        leaves = smooth_borders(leaves, faces.scale, len(palette.names), cell)
    _report(leaves, faces, colors, palette, options)
    return _build_scene(scene, surfaces, faces, leaves, palette)


def _collect_faces(scene: Scene, surfaces: list[Surface]) -> _Faces:
    scales_of: dict[Surface, list[float]] = {surface: [] for surface in surfaces}
    for part in scene.parts:
        longest = float(np.linalg.norm(part.transform[:3, :3], axis=0).max())
        scales_of[Surface(part.mesh, part.material)].append(longest)
    points, corners, scales, counts = [np.empty((0, 3))], [np.empty((0, 3), np.int32)], [np.empty(0)], [np.empty(0)]
    offset = 0
    for surface in surfaces:
        mesh = scene.meshes[surface.mesh]
        first, index = weld(mesh.vertices)
        points.append(mesh.vertices[first])
        corners.append(index[mesh.faces] + np.int32(offset))
        offset += len(first)
        # the parts share the triangles, so details that suffice for the largest part suffice for the others
        largest = max(scales_of[surface])
        scales.append(np.full(len(mesh.faces), largest))
        relative_areas = np.square(np.array(scales_of[surface]) / (largest or 1.0))
        counts.append(np.full(len(mesh.faces), float(relative_areas.sum())))
    sizes = [len(rows) for rows in corners]
    return _Faces(
        np.cumsum(sizes),
        np.concatenate(scales),
        np.concatenate(counts),
        np.concatenate(points),
        np.concatenate(corners),
    )


def _count_cells(area: Float64, cell: float, colors: SurfaceColors) -> Float64:
    """Return the areas (k,) in cells to sample; 0 without colors, where the fewest samples show all there is."""
    return area / cell**2 if colors.has_color else np.zeros(len(area))


def _weigh_samples(area: Float64, samples: Samples) -> Float64:
    """Divide the area of each leaf among its samples."""
    result: Float64 = (area / np.maximum(np.bincount(samples.owner, minlength=len(area)), 1))[samples.owner]
    return result


def _choose_palette(sampled: UInt8, weight: Float64, options: ReduceColorsOptions) -> _Palette:
    """Return the filaments of the options, or a palette that suits the sampled colors (k, 3) by their weights (k,)."""
    bins = ColorBins(sampled, weight)
    if options.reduce_colors_palette is None:
        entries = cluster_palette(bins, _limit_count(options.reduce_colors or MAX_FILAMENT_COUNT))
        names = [f"Filament {number}" for number in range(1, len(entries) + 1)]
        return _Palette(Quantizer(entries, "oklab"), entries, names)
    filaments = parse_filaments(options.reduce_colors_palette)
    entries = np.array([filament.color for filament in filaments], np.uint8)
    chosen = choose_filaments(bins, entries, _limit_count(options.reduce_colors or len(filaments)))
    names = [filaments[number].name or f"Filament {number + 1}" for number in chosen]
    quantizer = Quantizer(entries[chosen], "ciede2000")
    if options.reduce_colors_wall_mm is not None:
        transmission_mm = np.array([filaments[number].transmission_mm for number in chosen])
        largest = int(np.bincount(quantizer.assign(sampled), weight).argmax())
        seen = see_through(entries[chosen], transmission_mm, options.reduce_colors_wall_mm, largest)
        quantizer = Quantizer(seen, "ciede2000")
    return _Palette(quantizer, entries[chosen], names)


def _limit_count(count: int) -> int:
    """Return the number of filaments, at most those that the target prints with.

    A writer that drops one of 16 filaments later adds 0.4 to 1.1 to the mean difference.
    """
    limit = get_destination().max_colors
    if limit is None or count <= limit:
        return count
    note(
        "filaments_limited",
        f"the target prints with at most {limit} filaments, so {limit} were chosen instead of {count}",
        limit=limit,
        count=count,
    )
    return limit


class _Painter:
    """Assigns points of the surface to entries of the palette."""

    def __init__(
        self, faces: _Faces, colors: SurfaceColors, quantizer: Quantizer, options: ReduceColorsOptions
    ) -> None:
        self._faces, self._colors, self._quantizer = faces, colors, quantizer
        self._is_dithered = options.reduce_colors_dither != "none"
        normals = face_normals(faces.points, faces.corners)
        self._axis = np.abs(normals).argmax(axis=1)
        area_mm2 = float((np.linalg.norm(normals, axis=1) / 2 * np.square(faces.scale)).sum())
        min_cell = float(np.sqrt(area_mm2 * LEAVES_PER_DITHER_CELL / MAX_LEAF_COUNT))
        self._cell_mm = max(options.reduce_colors_cell_mm, min_cell)

    def label(self, face: Int32, weights: Float32) -> UInt8:
        """Return the palette entry (k,) of each point, which has a face (k,) and barycentric coordinates (k, 3)."""
        return self.quantize(face, weights, self._colors.sample(face, weights))

    def quantize(self, face: Int32, weights: Float32, colors: UInt8) -> UInt8:
        """Return the entry (k,) for each point, as `label` does; `colors` (k, 3) are the colors of the points."""
        if not self._is_dithered:
            return self._quantizer.assign(colors)
        corners = self._faces.points[self._faces.corners[face]]
        points = np.einsum("kc,kcd->kd", weights, corners) * self._faces.scale[face, None]
        return self._quantizer.assign_dithered(colors, find_thresholds(points, self._axis[face], self._cell_mm))


def _report(
    leaves: Leaves, faces: _Faces, colors: SurfaceColors, palette: _Palette, options: ReduceColorsOptions
) -> None:
    """Report the color differences of the result, the areas of the filaments, and whether the leaves sufficed."""
    cell = options.reduce_colors_cell_mm
    area = leaves.areas() * np.square(faces.scale[leaves.face])
    samples = spread_samples(leaves, np.arange(len(area)), _count_cells(area, cell, colors) / REPORT_RATIO, 1)
    sampled = colors.sample(samples.face, samples.weights)
    difference = palette.quantizer.measure(sampled, leaves.label[samples.owner])
    area *= faces.uses[leaves.face]
    share = _weigh_samples(area, samples)
    order = np.argsort(difference, kind="stable")
    total = np.cumsum(share[order])
    areas = np.bincount(leaves.label, area, minlength=len(palette.names))
    used = np.flatnonzero(areas > 0)
    did(
        leaves=len(leaves.face),
        delta_e_mean=round(float(share @ difference) / max(float(total[-1]), 1e-300), 2),
        delta_e_p95=round(float(difference[order][np.searchsorted(total, 0.95 * total[-1])]), 2),
        filaments=[palette.names[number] for number in used],
        filament_colors=[_format_color(palette.colors[number]) for number in used],
        filament_areas_mm2=[round(float(areas[number]), 2) for number in used],
    )
    if (palette.quantizer.palette != palette.colors).any():
        did(filament_seen_colors=[_format_color(palette.quantizer.palette[number]) for number in used])
    unused = len(palette.names) - len(used)
    if unused and options.reduce_colors_palette is None:
        note(
            "filaments_unused",
            f"{unused} of {len(palette.names)} colors {'has' if unused == 1 else 'have'} only details narrower than "
            f"{format_number(cell)} mm, so no area got {'it' if unused == 1 else 'them'}; lower "
            "{reduce_colors_cell_mm} or {reduce_colors}",
            options=("reduce_colors_cell_mm", "reduce_colors"),
            count=unused,
            total=len(palette.names),
        )
    if not colors.has_color:
        note("no_colors", "the model has no colors, so all of it became one; color it first, or omit the option")
    if len(leaves.face) >= 0.99 * MAX_LEAF_COUNT:
        note(
            "color_detail_limited",
            f"the colors need more than {MAX_LEAF_COUNT} triangles at {format_number(cell)} mm, so the finest details "
            "are missing; raise {reduce_colors_cell_mm}",
            options=("reduce_colors_cell_mm",),
            limit=MAX_LEAF_COUNT,
            size=float(cell),
        )


def _format_color(color: UInt8) -> str:
    return "#{:02X}{:02X}{:02X}".format(*color.tolist())


def _build_scene(scene: Scene, surfaces: list[Surface], faces: _Faces, leaves: Leaves, palette: _Palette) -> Scene:
    """Return the scene with the leaves as triangles, and one material for each entry of the palette in use."""
    used, index = np.unique(leaves.label, return_inverse=True)
    materials = []
    for number in used:
        red, green, blue = (palette.colors[number] / 255).tolist()
        materials.append(Material(palette.names[number], (red, green, blue, 1.0)))
    order = np.argsort(leaves.face, kind="stable")
    bounds = np.searchsorted(leaves.face[order], faces.first)
    meshes = []
    for place, surface in enumerate(surfaces):
        rows, first = order[bounds[place] : bounds[place + 1]], faces.first[place]
        division = Division(faces.corners[first : faces.first[place + 1]], leaves.face[rows] - first)
        meshes.append(_build_mesh(scene.meshes[surface.mesh], leaves, rows, division, index[rows].astype(np.int32)))
    number_of = {surface: number for number, surface in enumerate(surfaces)}
    parts = [replace(part, mesh=number_of[Surface(part.mesh, part.material)], material=None) for part in scene.parts]
    return replace(scene, meshes=tuple(meshes), parts=tuple(parts), materials=tuple(materials), images=())


def _build_mesh(mesh: Mesh, leaves: Leaves, rows: NDArray[np.intp], division: Division, material: Int32) -> Mesh:
    """Return a mesh of the leaves `rows`; a mesh without split triangles keeps its vertices.

    Args:
        mesh: Mesh before the division.
        rows: (k,) leaves of this mesh.
        division: Division of its triangles into these leaves, over the points of the leaves.
        material: (k,) material of each of the leaves.
    """
    if len(rows) == len(mesh.faces):
        return replace(mesh, uv=None, colors=None, face_material=material)
    corners = leaves.corners[rows]
    if mesh.normals is None:
        points, index = np.unique(corners, return_inverse=True)
        result = Mesh(
            leaves.points[points], index.reshape(-1, 3).astype(np.int32), face_material=material, name=mesh.name
        )
        return _add_division(result, corners, division)
    own = mesh.normals[mesh.faces[division.owner]]
    normals = np.einsum("lcw,lwd->lcd", leaves.weights[rows], own).reshape(-1, 3)
    length = np.linalg.norm(normals, axis=1, keepdims=True)
    normals = normals / np.where(length > 0, length, 1)
    # equal corners share a vertex, and rounding removes the noise of the interpolation
    keys = np.concatenate([corners.reshape(-1, 1).astype(np.float64), np.rint(normals * 2**20)], axis=1)
    first, vertex = weld(keys)
    result = Mesh(
        leaves.points[corners.ravel()[first]],
        vertex.reshape(-1, 3),
        normals=normals[first],
        face_material=material,
        name=mesh.name,
    )
    return _add_division(result, corners, division)


def _add_division(mesh: Mesh, corners: Int32, division: Division) -> Mesh:
    """Return the mesh with its division; `division` and the corners (k, 3) index the points of the leaves."""
    vertex_of = np.empty(int(corners.max()) + 1, np.int32)
    vertex_of[corners] = mesh.faces
    return mesh.with_division(replace(division, triangles=vertex_of[division.triangles]))
