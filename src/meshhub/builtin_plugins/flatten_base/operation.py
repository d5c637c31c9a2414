"""Cut off the bottom of the whole scene, part by part, at one height."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

import numpy as np

from meshhub.builtin_plugins.flatten_base import FlattenBaseOptions
from meshhub.builtin_plugins.flatten_base.cap import CappedMesh, cap_mesh
from meshhub.builtin_plugins.flatten_base.cut import Plane, count_shells_below, cut_mesh
from meshhub.errors import InvalidOption, format_count, format_number, quote
from meshhub.model.notes import did, note
from meshhub.model.progress import track
from meshhub.model.scene import Float64, Mesh, Part, Scene
from meshhub.toolkit.geometry import bounds, compacted, placed_mesh, without_unused_meshes
from meshhub.toolkit.validity import MeshCheck, check_mesh, check_meshes, find_damage, note_damage

RETRY_STEPS = (0.0, 1.0, 2.7, 7.3, 19.7)
"""Upward shifts of the cut, in units of four tolerances. A cut that does not close is retried slightly higher, and its
base is moved back to the requested height."""

TOLERANCE_STEPS = 4.0
"""float32 steps at the scene's highest coordinate; vertices closer to the plane count as in it."""

MAX_LISTED_NAMES = 5
"""Maximum parts named in a note; keeps it readable."""

MAX_NAME_LENGTH = 60
"""Maximum characters of a part's name in a note; keeps it readable."""


_Key = tuple[int, bytes, float]


class _CutPart(NamedTuple):
    """Mesh that was cut once, for all parts that need the same cut.

    name:           name of the first of these parts
    matrix:         transform of the mesh during the cut
    shells_removed: number of shells that were completely below the cut
    bodies:         number of bodies after the cut
    """

    name: str
    matrix: Float64
    result: CappedMesh
    shells_removed: int
    bodies: int = 0


def run(scene: Scene, options: FlattenBaseOptions) -> Scene:
    """Cut off the lowest `flatten_base_mm` of the scene, and cap each part where it was cut.

    The remaining part keeps its height above Z = 0. Parts completely below the cut are removed.

    Args:
        scene: Millimeters, Z up.
        options: `flatten_base_mm` is the height to cut off; None leaves the scene unchanged.
    Returns:
        Cut scene; parts completely above the cut and copies that need the same cut still share meshes.
    Raises:
        InvalidOption: The cut would leave nothing.
    """
    depth_mm = options.flatten_base_mm
    if depth_mm is None:
        return scene
    box = bounds(scene)
    lowest, highest = float(box[0, 2]), float(box[1, 2])
    tolerance, grid = (
        TOLERANCE_STEPS * float(np.spacing(np.float32(np.abs(box[:, axes]).max()))) for axes in (2, slice(0, 2))
    )
    height = lowest + depth_mm
    if height >= highest - tolerance:
        raise InvalidOption(
            f"option '{{flatten_base_mm}}' {format_number(depth_mm)} would cut away the whole model, which is "
            f"{format_number(highest - lowest, 6)} mm high; reduce it",
            options=("flatten_base_mm",),
        )
    cutter = _SceneCutter(scene, height, tolerance, grid)
    parts = cutter.cut_parts()
    if not parts:
        raise InvalidOption(
            f"option '{{flatten_base_mm}}' {format_number(depth_mm)} would leave nothing of the model; reduce it",
            options=("flatten_base_mm",),
        )
    result = replace(scene, meshes=(*scene.meshes, *cutter.meshes), parts=tuple(parts))
    cutter.report(result)
    did(cut_height_mm=depth_mm, base_z_mm=height)
    return without_unused_meshes(result)


class _SceneCutter:
    """Cut of one scene, which cuts each mesh once for all parts that need the same cut."""

    def __init__(self, scene: Scene, height: float, tolerance: float, grid: float) -> None:
        self.scene, self.height, self.tolerance = scene, height, tolerance
        # a power of two, so that grid points are exact in float32
        self.grid = float(2.0 ** np.ceil(np.log2(grid)))
        self.compact: dict[int, Mesh] = {}
        self.uses = Counter(self._key(part) for part in scene.parts)
        self.cuts: dict[_Key, _CutPart] = {}
        self.removed_names: list[str] = []
        self.shells_removed_names: list[str] = []
        self.open_names: list[str] = []
        self.parts_cut = self.shells_removed = self.loops = 0
        self.base_area = 0.0
        self.has_base_before = False

    @property
    def meshes(self) -> list[Mesh]:
        """The cut meshes, in the order of their first parts."""
        return [cut.result.mesh for cut in self.cuts.values()]

    def _key(self, part: Part) -> _Key:
        """Return a key that is equal for parts that differ only by a translation in X and Y."""
        return part.mesh, part.transform[:3, :3].tobytes(), float(part.transform[2, 3])

    def cut_parts(self) -> list[Part]:
        """Return the parts after the cut, without those that were removed."""
        kept: list[tuple[Part, str, _Key | None]] = []
        for place, part in track(enumerate(self.scene.parts)):
            if part.mesh not in self.compact:
                self.compact[part.mesh] = compacted(self.scene.meshes[part.mesh])
            mesh = self.compact[part.mesh]
            name = part.name or mesh.name or f"part {place + 1}"
            level = mesh.vertices @ part.transform[2, :3] + part.transform[2, 3]
            if len(level) == 0 or float(level.min()) >= self.height - self.tolerance:
                self.has_base_before |= bool((level[mesh.faces] <= self.height + self.tolerance).all(axis=1).any())
                kept.append((part, name, None))
            elif float(level.max()) <= self.height + self.tolerance:
                self.removed_names.append(name)
            else:
                key = self._key(part)
                if key not in self.cuts:
                    self.cuts[key] = self._cut_first(part, name)
                kept.append((part, name, key))
        self._check_cuts()
        number = {key: len(self.scene.meshes) + at for at, key in enumerate(self.cuts)}
        parts = (part if key is None else self._place(part, name, key, number[key]) for part, name, key in kept)
        return [part for part in parts if part is not None]

    def _cut_first(self, part: Part, name: str) -> _CutPart:
        """Cut the part's mesh at the requested height."""
        matrix = part.transform
        if self.uses[self._key(part)] > 1:
            matrix = matrix.copy()
            matrix[:2, 3] = 0
        mesh = placed_mesh(self.compact[part.mesh], matrix)
        plane = next(self._planes())
        return _CutPart(name, matrix, _cut_and_cap(mesh, plane), count_shells_below(mesh, plane))

    def _check_cuts(self) -> None:
        """Check all cut meshes together, and retry the cuts that left invalid edges."""
        checks = check_meshes(self.meshes)
        for (key, cut), check in zip(list(self.cuts.items()), checks, strict=True):
            self.cuts[key] = self._retry(key, cut, check) if check.defects else cut._replace(bodies=check.shells)

    def _retry(self, key: _Key, cut: _CutPart, check: MeshCheck) -> _CutPart:
        """Return the best of several slightly higher cuts, if the mesh was valid before the cut."""
        mesh = placed_mesh(self.compact[key[0]], cut.matrix)
        best = cut.result
        if check_mesh(mesh).defects == 0:
            for plane in islice(self._planes(), 1, None):
                result = _cut_and_cap(mesh, plane)
                result_check = check_mesh(result.mesh)
                if result_check.defects < check.defects:
                    best, check = result, result_check
                if result_check.defects == 0:
                    break
            note_damage(quote(cut.name), find_damage(best.mesh))
        return cut._replace(result=best, bodies=check.shells)

    def _place(self, part: Part, name: str, key: _Key, index: int) -> Part | None:
        """Return the part with its cut mesh, or None if the mesh has no faces left."""
        cut = self.cuts[key]
        self.parts_cut += 1
        if cut.shells_removed:
            self.shells_removed_names.append(name)
        if cut.result.open_edges:
            self.open_names.append(name)
        self.shells_removed += cut.shells_removed
        self.loops += cut.result.loops
        self.base_area += cut.result.area
        shift = np.eye(4)
        if self.uses[key] > 1:
            shift[:2, 3] = part.transform[:2, 3]
        return replace(part, mesh=index, transform=shift) if len(cut.result.mesh.faces) else None

    def _planes(self) -> Iterator[Plane]:
        for steps in RETRY_STEPS:
            yield Plane(self.height + steps * 4 * self.tolerance, self.height, self.tolerance, self.grid)

    def report(self, result: Scene) -> None:
        """Write the notes and figures of the cut."""
        self._write_notes()
        uses = Counter(part.mesh for part in result.parts)
        uncut = sorted(index for index in uses if index < len(self.scene.meshes))
        bodies = {len(self.scene.meshes) + at: cut.bodies for at, cut in enumerate(self.cuts.values())}
        for index, check in zip(uncut, check_meshes([result.meshes[index] for index in uncut]), strict=True):
            bodies[index] = check.shells
        did(
            parts_cut=self.parts_cut,
            parts_removed=len(self.removed_names),
            shells_removed=self.shells_removed,
            loops_closed=self.loops,
            base_area_mm2=self.base_area,
            bodies_after=sum(bodies[index] * times for index, times in uses.items()),
            faces_before=self.scene.face_count,
            faces_after=result.face_count,
        )

    def _write_notes(self) -> None:
        if self.removed_names:
            note(
                "parts_below_cut",
                f"completely below the cut and removed: {_list_names(self.removed_names)}",
                count=len(self.removed_names),
            )
        if self.shells_removed_names:
            note(
                "shells_below_cut",
                f"removed {format_count(self.shells_removed, 'shell', 'shells')} "
                f"of {_list_names(self.shells_removed_names)}, completely below the cut",
                count=self.shells_removed,
            )
        if not (self.loops or self.open_names or self.has_base_before):
            note(
                "no_flat_base",
                "the model has no flat base: each shell is completely above or below the cut; change {flatten_base_mm}",
                options=("flatten_base_mm",),
            )
        if self.open_names:
            note(
                "open_section",
                f"the cut through {_list_names(self.open_names)} is only partly closed, because the surface is open or "
                "inconsistent there; use {repair}",
                options=("repair",),
                count=len(self.open_names),
            )


def _cut_and_cap(mesh: Mesh, plane: Plane) -> CappedMesh:
    result = cap_mesh(cut_mesh(mesh, plane), plane)
    return result._replace(mesh=compacted(result.mesh))


def _list_names(names: list[str]) -> str:
    listed = ", ".join(repr(name[:MAX_NAME_LENGTH]) for name in names[:MAX_LISTED_NAMES])
    return listed if len(names) <= MAX_LISTED_NAMES else f"{listed} and {len(names) - MAX_LISTED_NAMES} more"
