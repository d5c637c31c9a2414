"""Solids of Manifold whose faces keep normals, texture coordinates, colors and materials through boolean operations.

A solid has the attributes as properties of its vertices, and the materials as original ids of its faces. Faces that an
operation adds, such as the caps of a cut, have other ids; `to_mesh` gives them the appearance of the nearest surface.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from manifold3d import Error, Manifold, Mesh64
from numpy.typing import NDArray

from meshhub.errors import ConversionFailed, quote
from meshhub.model.scene import Float64, Int32, Mesh
from meshhub.toolkit.colors import has_color_seam
from meshhub.toolkit.geometry import (
    IntIndex,
    chosen_faces,
    compacted,
    distinct,
    face_normals,
    unit_vectors,
    weld,
    welded,
)
from meshhub.toolkit.patches import divide_patches
from meshhub.toolkit.topology import Index, first_members
from meshhub.toolkit.touching_edges import separate_touching_edges
from meshhub.toolkit.validity import find_damage, without_empty_faces

TOLERANCE_STEPS = 2.0
"""float32 steps at the largest coordinate; files merge points that are closer, so solids have none that are closer."""

SIMPLIFICATION_STEPS = (1.0, 3.0, 9.0)
"""Tolerances, relative to that of files, to simplify a solid with, in this order, until rounding does not spoil it."""

MIN_SEAM_WIDTH = 1e-4
"""Difference of texture coordinates at one point that counts as a seam; it is above the noise of interpolation."""


@dataclass(frozen=True)
class Solids:
    """Conversion of meshes to solids and back, for meshes that operations combine.

    normals, uv, colors: whether the vertices have these attributes
    first_id:            original id of faces of material -1
    material_count:      number of materials of the scene
    repair_option:       option that messages about invalid meshes advise
    """

    normals: bool
    uv: bool
    colors: bool
    first_id: int
    material_count: int
    repair_option: str

    @classmethod
    def of(cls, meshes: Sequence[Mesh], material_count: int, repair_option: str) -> Solids:
        """Return the conversion with the attributes of all meshes."""
        has_normals, has_uv, has_colors = (
            any(getattr(mesh, name) is not None for mesh in meshes) for name in ("normals", "uv", "colors")
        )
        return cls(
            has_normals, has_uv, has_colors, Manifold.reserve_ids(material_count + 1), material_count, repair_option
        )

    @property
    def _has_attributes(self) -> bool:
        return self.normals or self.uv or self.colors

    def to_solid(self, mesh: Mesh, name: str) -> Manifold:
        """Return the solid that a mesh bounds.

        Args:
            mesh: Closed surface, millimeters, in any place.
            name: Name of the part for the message of an error.
        Raises:
            ConversionFailed: The mesh is open, non-manifold or inside out.
        """
        mesh, point, _ = separate_touching_edges(self.complete(compacted(mesh)), quote(name or "model"))
        material = np.full(len(mesh.faces), -1) if mesh.face_material is None else mesh.face_material
        order = np.argsort(material, kind="stable")
        materials, begin = np.unique(material[order], return_index=True)
        first = first_members(point, int(point.max(initial=-1)) + 1)
        duplicates = np.setdiff1d(np.arange(len(point)), first)
        native = Mesh64(
            self._properties(mesh),
            mesh.faces[order].astype(np.uint64),
            duplicates.astype(np.uint64),
            first[point[duplicates]].astype(np.uint64),
            run_index=np.append(3 * begin, 3 * len(order)).astype(np.uint64),
            run_original_id=(self.first_id + 1 + materials).astype(np.uint32),
            # Manifold simplifies flat faces regardless of their attributes, except across ids
            face_id=np.arange(len(order), dtype=np.uint64) if self._has_attributes else None,
            tolerance=find_tolerance(mesh.vertices),
        )
        solid = Manifold(native)
        if solid.status() == Error.NotManifold and native.merge():
            solid = Manifold(native)
        if solid.status() != Error.NoError or solid.volume() <= 0:
            state = "inside out" if solid.status() == Error.NoError else "open or non-manifold"
            raise ConversionFailed(
                f"{f'part {quote(name)}' if name else 'a part'} is {state}, so it does not bound a solid; use "
                f"'{{{self.repair_option}}}'",
                options=(self.repair_option,),
            )
        return solid

    def to_mesh(self, solid: Manifold, original: Mesh) -> Mesh:
        """Return the surface of a solid that was made from a mesh, with its name.

        Added faces get the appearance of the nearest surface of the solid or, if the solid has only added faces, of the
        original mesh. Points that files would round to the same position are merged before.
        """
        mesh = self._convert(solid, original)
        for steps in SIMPLIFICATION_STEPS:
            if find_damage(mesh).is_clean:
                return mesh
            mesh = self._convert(solid.simplify(steps * find_tolerance(mesh.vertices)), original)
        return without_empty_faces(mesh)

    def _convert(self, solid: Manifold, original: Mesh) -> Mesh:
        native = solid.to_mesh64()
        ids = np.repeat(np.asarray(native.run_original_id, np.int64), np.diff(native.run_index) // 3)
        material = (ids - self.first_id - 1).astype(np.int32)
        is_new = (material < -1) | (material >= self.material_count)
        rows = np.asarray(native.vert_properties)
        if is_new.all():
            # a solid without a face of the mesh, such as a peg, may lack the properties
            rows = np.pad(rows[:, :3], ((0, 0), (0, 3 * self.normals + 2 * self.uv + 4 * self.colors)))
        faces = np.asarray(native.tri_verts, np.int64).astype(np.int32)
        mesh = self._with_attributes(rows, faces, np.where(is_new, -1, material), original.name)
        if is_new.all() and len(faces):
            return self._paint_like(mesh, original)
        return compacted(_paint(mesh, is_new) if is_new.any() else mesh)

    def complete(self, mesh: Mesh) -> Mesh:
        """Return a mesh with all attributes: flat normals, white, and the lower left corner of the image by default."""
        if self.normals and mesh.normals is None:
            corners = mesh.faces.ravel()
            normals = np.repeat(unit_vectors(face_normals(mesh.vertices, mesh.faces)), 3, axis=0)
            mesh = Mesh(
                mesh.vertices[corners],
                np.arange(len(corners), dtype=np.int32).reshape(-1, 3),
                normals.astype(np.float32),
                None if mesh.uv is None else mesh.uv[corners],
                None if mesh.colors is None else mesh.colors[corners],
                mesh.face_material,
                mesh.name,
            )
        count = len(mesh.vertices)
        return replace(
            mesh,
            uv=np.zeros((count, 2), np.float32) if self.uv and mesh.uv is None else mesh.uv,
            colors=np.full((count, 4), 255, np.uint8) if self.colors and mesh.colors is None else mesh.colors,
        )

    def _paint_like(self, mesh: Mesh, original: Mesh) -> Mesh:
        """Paint all faces of a mesh like the nearest surface of another mesh."""
        original = self.complete(original)
        count = len(original.faces)
        material = np.full(count, -1, np.int32) if original.face_material is None else original.face_material
        rows = np.concatenate([self._properties(original), self._properties(mesh)])
        faces = np.concatenate([original.faces, mesh.faces + len(original.vertices)])
        materials = np.concatenate([material, np.full(len(mesh.faces), -1, np.int32)])
        joined = self._with_attributes(rows, faces, materials, mesh.name)
        painted = _paint(joined, np.arange(len(faces)) >= count)
        return chosen_faces(painted, np.arange(count, len(painted.faces)))

    def _properties(self, mesh: Mesh) -> Float64:
        columns = [values for values in (mesh.normals, mesh.uv, mesh.colors) if values is not None]
        return np.column_stack([mesh.vertices, *columns]).astype(np.float64)

    def _with_attributes(self, rows: Float64, faces: Int32, material: Int32, name: str) -> Mesh:
        """Return the mesh of vertices (n, k), whose properties interpolation may have changed."""
        widths = np.cumsum([3, 3 * self.normals, 2 * self.uv])
        points, normals, uv, colors = np.split(rows, widths, axis=1)
        return Mesh(
            points,
            faces,
            unit_vectors(normals).astype(np.float32) if self.normals else None,
            uv.astype(np.float32) if self.uv else None,
            np.rint(np.clip(colors, 0, 255)).astype(np.uint8) if self.colors else None,
            material if (material >= 0).any() else None,
            name,
        )


def split_solid(solid: Manifold, axis: int, offset: float) -> tuple[Manifold, Manifold]:
    """Cut a solid at a plane perpendicular to an axis; return the lower and the higher half.

    The cutter is a box, because Manifold rotates its own half-spaces, so that vertices are not exactly in the plane.
    """
    low, high = np.array(solid.bounding_box()).reshape(2, 3)
    size = high - low + 1
    corner = low - size
    corner[axis] = offset
    inside, outside = solid.split(Manifold.cube((3 * size).tolist()).translate(corner.tolist()))
    return _remove_slivers(outside), _remove_slivers(inside)


def _remove_slivers(solid: Manifold) -> Manifold:
    """Remove the shells that are thinner than the tolerance, such as those of a face that is almost in a plane."""
    shells = solid.decompose()
    kept = [shell for shell in shells if abs(shell.volume()) > solid.get_tolerance() * shell.surface_area() / 2]
    return solid if len(kept) == len(shells) else Manifold.compose(kept)


def find_tolerance(points: Float64) -> float:
    """Return the distance below which files may round points (n, 3) to the same position."""
    return TOLERANCE_STEPS * float(np.spacing(np.float32(np.abs(points).max(initial=1e-3))))


def surface_of(solid: Manifold) -> Mesh:
    """Return the surface of a solid without its attributes."""
    native = solid.to_mesh64()
    points = np.asarray(native.vert_properties)[:, :3]
    return Mesh(*welded(Mesh(points, np.asarray(native.tri_verts, np.int64).astype(np.int32))))


def _paint(mesh: Mesh, is_new: NDArray[np.bool_]) -> Mesh:
    """Give new faces the attributes of the nearest vertices of the other faces, and their own normals.

    Where the attributes or materials of the nearest surface change, new faces are divided, so that no face blends two
    surfaces.
    """
    from scipy.spatial import cKDTree  # imported here because the import takes longer than most cuts

    old_faces, new_faces = mesh.faces[~is_new], mesh.faces[is_new]
    old = np.unique(old_faces)
    points, corner = distinct(mesh.vertices[new_faces.ravel()])
    source = old[cKDTree(mesh.vertices[old]).query(points)[1]]
    triangles = corner.reshape(-1, 3)
    material = None
    if mesh.face_material is not None:
        of_vertex = np.full(len(mesh.vertices), -1, np.int32)
        of_vertex[old_faces.ravel()] = np.repeat(mesh.face_material[~is_new], 3)
        material = of_vertex[source]
    if _has_seam(mesh, old, points) or (material is not None and (material != material[0]).any()):
        divided = divide_patches(triangles, _label(mesh, source, material))
        owner = divided.find_nearest(points)
        corners = divided.place_corners(points)[divided.triangles].reshape(-1, 3)
        return _replace_faces(
            mesh, is_new, corners, np.repeat(source[owner], 3), None if material is None else material[owner]
        )
    chosen = None if material is None else material[triangles[:, 0]]
    return _replace_faces(mesh, is_new, points[triangles].reshape(-1, 3), source[triangles.ravel()], chosen)


def _has_seam(mesh: Mesh, old: Index, points: Float64) -> bool:
    """Return whether any of the points (k, 3) has several colors or texture coordinates, at the vertices `old`."""
    if mesh.uv is None and mesh.colors is None:
        return False
    _, index = weld(np.concatenate([points, mesh.vertices[old]]))
    near = index[len(points) :] < len(points)
    rows, number = old[near], index[len(points) :][near]
    if len(rows) == 0:
        return False
    if mesh.colors is not None and has_color_seam(mesh.colors[rows], number):
        return True
    if mesh.uv is None:
        return False
    steps = np.rint(mesh.uv[rows].astype(np.float64) / MIN_SEAM_WIDTH)
    return len(weld(np.column_stack([number, steps]))[0]) > len(np.unique(number))


def _label(mesh: Mesh, source: IntIndex, material: Int32 | None) -> Int32:
    """Return a label (k,) for each source vertex (k,) and its material (k,); equal attributes give equal labels."""
    columns: list[NDArray[Any]] = [np.zeros((len(source), 1)) if material is None else material[:, None]]
    columns += [values[source] for values in (mesh.uv, mesh.colors) if values is not None]
    return weld(np.concatenate(columns, axis=1, dtype=np.float64))[1]


def _replace_faces(
    mesh: Mesh, is_new: NDArray[np.bool_], corners: Float64, source: IntIndex, material: Int32 | None
) -> Mesh:
    """Replace the new faces by others.

    Args:
        mesh: Mesh with all faces.
        is_new: (m,) which faces to replace.
        corners: (3t, 3) corners of the other faces.
        source: (3t,) vertex that has the attributes of each corner.
        material: (t,) materials of the other faces.
    """
    flat = np.repeat(
        unit_vectors(face_normals(corners, np.arange(len(corners), dtype=np.int32).reshape(-1, 3))), 3, axis=0
    )
    columns: list[NDArray[Any]] = [corners, flat if mesh.normals is not None else corners[:, :0]]
    columns += [values[source] for values in (mesh.uv, mesh.colors) if values is not None]
    first, index = weld(np.column_stack(columns).astype(np.float64))
    row = source[first]
    faces = np.concatenate([mesh.faces[~is_new], index.reshape(-1, 3) + len(mesh.vertices)])
    return Mesh(
        np.concatenate([mesh.vertices, corners[first]]),
        faces,
        None if mesh.normals is None else np.concatenate([mesh.normals, flat[first]]),
        None if mesh.uv is None else np.concatenate([mesh.uv, mesh.uv[row]]),
        None if mesh.colors is None else np.concatenate([mesh.colors, mesh.colors[row]]),
        None
        if mesh.face_material is None or material is None
        else np.concatenate([mesh.face_material[~is_new], material]),
        mesh.name,
    )
