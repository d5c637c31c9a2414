"""Cutting the bottom off a whole scene, part by part, at one height."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from meshhub.builtin_plugins.flatten_base import FlattenBaseOptions
from meshhub.builtin_plugins.flatten_base.cap import Capped, capped
from meshhub.builtin_plugins.flatten_base.cut import Plane, opened
from meshhub.errors import InvalidOption
from meshhub.geometry import bounds, compacted, placed_mesh, weld
from meshhub.notes import did, note
from meshhub.scene import Mesh, Part, Scene
from meshhub.topology import EdgeStatistics, edge_statistics, edges, shells, without_degenerate

EVASIONS = (0.0, 1.0, 2.7, 7.3, 19.7)
"""How much higher than asked for, in steps, a cut is tried that would not close; the base is put back."""

NEAR = 4.0
"""Vertices so many 32-bit steps from the plane are taken to lie in it."""

NAMED = 5


class Soundness(NamedTuple):
    """The edges and bodies of a mesh as an STL file would hold them."""

    edges: EdgeStatistics
    bodies: int

    @property
    def bad(self) -> int:
        """How many edges are unsound."""
        return sum(self.edges)


def run(scene: Scene, options: FlattenBaseOptions) -> Scene:
    """The scene without its lowest `flatten_base_mm`, each part closed where it was cut.

    What is left stays at its height. Parts wholly below vanish; parts wholly above keep their shared
    mesh, and so do copies of one part that are cut alike.

    Raises InvalidOption when nothing would be left.
    """
    depth = options.flatten_base_mm
    if depth is None:
        return scene
    box = bounds(scene)
    lowest, highest = float(box[0, 2]), float(box[1, 2])
    near, grid = (NEAR * float(np.spacing(np.float32(np.abs(box[:, axes]).max()))) for axes in (2, slice(0, 2)))
    height = lowest + depth
    if height >= highest - near:
        raise InvalidOption(
            f"option 'flatten_base_mm' {depth:g} would cut the whole model away: it is {highest - lowest:.6g} mm high; "
            "ask for less"
        )
    work = _Work(scene, height, near, grid)
    parts = [left for place, part in enumerate(scene.parts) if (left := work.cut(part, place)) is not None]
    if not parts:
        raise InvalidOption(f"option 'flatten_base_mm' {depth:g} would leave nothing of the model; ask for less")
    made = replace(scene, meshes=(*scene.meshes, *work.meshes), parts=tuple(parts))
    work.tell(made)
    did(cut_height_mm=depth, base_z_mm=height)
    return _without_unused_meshes(made)


class _Work:
    """The cutting of a scene, which remembers what it has cut."""

    def __init__(self, scene: Scene, height: float, near: float, grid: float) -> None:
        self.scene, self.height, self.near = scene, height, near
        # a power of two, so that what is on the grid stays on it in 32 bits
        self.grid = float(2.0 ** np.ceil(np.log2(grid)))
        self.meshes: list[Mesh] = []
        self.compact: dict[int, Mesh] = {}
        self.bodies: dict[int, int] = {}
        self.done: dict[tuple[int, bytes, float], tuple[int, Capped]] = {}
        self.alike = Counter(self._key(part) for part in scene.parts)
        self.vanished: list[str] = []
        self.torn: list[str] = []
        self.unsound: list[str] = []
        self.parts_cut = self.loops = 0
        self.base_area = 0.0

    def _key(self, part: Part) -> tuple[int, bytes, float]:
        """What parts have in common that are cut alike: they differ only in X and Y."""
        return part.mesh, part.transform[:3, :3].tobytes(), float(part.transform[2, 3])

    def cut(self, part: Part, place: int) -> Part | None:
        """The part after the cut, or None when nothing of it is left."""
        if part.mesh not in self.compact:
            self.compact[part.mesh] = compacted(self.scene.meshes[part.mesh])
        mesh = self.compact[part.mesh]
        if len(mesh.faces) == 0:
            return part
        level = mesh.vertices @ part.transform[2, :3] + part.transform[2, 3]
        if float(level.min()) >= self.height - self.near:
            return part
        name = part.name or mesh.name or f"part {place + 1}"
        if float(level.max()) <= self.height + self.near:
            self.vanished.append(name)
            return None
        self.parts_cut += 1
        key = self._key(part)
        shift = np.eye(4)
        if key not in self.done:
            matrix = part.transform
            if self.alike[key] > 1:
                matrix = matrix.copy()
                matrix[:2, 3] = 0
            made = self._closed(placed_mesh(mesh, matrix), name)
            self.done[key] = len(self.scene.meshes) + len(self.meshes), made
            self.meshes.append(made.mesh)
        index, made = self.done[key]
        if self.alike[key] > 1:
            shift[:2, 3] = part.transform[:2, 3]
        if made.open:
            self.torn.append(name)
        self.loops += made.loops
        self.base_area += made.area
        return replace(part, mesh=index, transform=shift) if len(made.mesh.faces) else None

    def _closed(self, mesh: Mesh, name: str) -> Capped:
        """The cut and capped mesh: as sound as it was, if that is possible by any of the evasions."""
        best: tuple[int, Capped, int] | None = None
        before: Soundness | None = None
        for plane in self._planes():
            made = capped(opened(mesh, plane), plane)
            made = made._replace(mesh=compacted(made.mesh))
            after = soundness(made.mesh)
            if best is None or after.bad < best[0]:
                best = after.bad, made, after.bodies
            if after.bad == 0:
                break
            if before is None:
                before = soundness(mesh)
                if before.bad:
                    break
        assert best is not None
        if best[0] and before is not None and before.bad == 0:
            self.unsound.append(name)
        self.bodies[len(self.scene.meshes) + len(self.meshes)] = best[2]
        return best[1]

    def _planes(self) -> Iterator[Plane]:
        for times in EVASIONS:
            yield Plane(self.height + times * 4 * self.near, self.height, self.near, self.grid)

    def tell(self, made: Scene) -> None:
        """Say what was cut, and what did not come out as one would wish."""
        if self.vanished:
            note("parts_below_cut", f"{_named(self.vanished)} lay wholly below the cut and vanished")
        if self.torn:
            note(
                "open_section",
                f"the cut through {_named(self.torn)} could be closed only in part, because the surface is open or "
                "inconsistent there; add 'repair'",
            )
        if self.unsound:
            note("cut_not_closed", f"the cut through {_named(self.unsound)} left edges open; add 'repair'")
        for part in made.parts:
            if part.mesh not in self.bodies:
                self.bodies[part.mesh] = soundness(made.meshes[part.mesh]).bodies
        did(
            parts_cut=self.parts_cut,
            parts_removed=len(self.vanished),
            loops_closed=self.loops,
            base_area_mm2=self.base_area,
            bodies_after=sum(self.bodies[part.mesh] for part in made.parts),
            faces_before=self.scene.face_count,
            faces_after=made.face_count,
        )


def soundness(mesh: Mesh) -> Soundness:
    """The mesh's edges and bodies, where points that are equal in 32 bits are one."""
    if len(mesh.faces) == 0:
        return Soundness(EdgeStatistics(0, 0, 0), 0)
    _, index = weld(mesh.vertices.astype(np.float32))
    faces = without_degenerate(index[mesh.faces])
    found = edges(faces)
    return Soundness(edge_statistics(faces, found), shells(faces, found)[0])


def _named(names: list[str]) -> str:
    listed = ", ".join(repr(name[:60]) for name in names[:NAMED])
    return listed if len(names) <= NAMED else f"{listed} and {len(names) - NAMED} more"


def _without_unused_meshes(scene: Scene) -> Scene:
    """The scene without meshes that no part places any more."""
    used = sorted({part.mesh for part in scene.parts})
    number = {index: place for place, index in enumerate(used)}
    return replace(
        scene,
        meshes=tuple(scene.meshes[index] for index in used),
        parts=tuple(replace(part, mesh=number[part.mesh]) for part in scene.parts),
    )
