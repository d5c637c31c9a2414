"""Cutting the bottom off a whole scene, part by part, at one height."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

import numpy as np

from meshhub.builtin_plugins.flatten_base import FlattenBaseOptions
from meshhub.builtin_plugins.flatten_base.cap import Capped, capped
from meshhub.builtin_plugins.flatten_base.cut import Plane, opened
from meshhub.builtin_plugins.flatten_base.soundness import Soundness, shells_below, soundness, soundness_of_each
from meshhub.errors import InvalidOption
from meshhub.geometry import bounds, compacted, placed_mesh
from meshhub.notes import did, note
from meshhub.scene import Float64, Mesh, Part, Scene

EVASIONS = (0.0, 1.0, 2.7, 7.3, 19.7)
"""How much higher than asked for, in steps, a cut is tried that would not close; the base is put back."""

NEAR = 4.0
"""Vertices so many 32-bit steps from the plane are taken to lie in it."""

NAMED = 5


_Key = tuple[int, bytes, float]


class _Cut(NamedTuple):
    """A mesh that was cut once, for all parts that are cut alike.

    name:   of the first of these parts
    matrix: where the mesh stood when it was cut
    lost:   how many of its shells lay wholly below
    bodies: how many are left
    """

    name: str
    matrix: Float64
    made: Capped
    lost: int
    bodies: int = 0


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
    parts = work.cut()
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
        self.compact: dict[int, Mesh] = {}
        self.alike = Counter(self._key(part) for part in scene.parts)
        self.done: dict[_Key, _Cut] = {}
        self.vanished: list[str] = []
        self.robbed: list[str] = []
        self.torn: list[str] = []
        self.unsound: list[str] = []
        self.parts_cut = self.shells_removed = self.loops = 0
        self.base_area = 0.0
        self.stands = False

    @property
    def meshes(self) -> list[Mesh]:
        """What was cut, in the order of the first parts."""
        return [cut.made.mesh for cut in self.done.values()]

    def _key(self, part: Part) -> _Key:
        """What parts have in common that are cut alike: they differ only in X and Y."""
        return part.mesh, part.transform[:3, :3].tobytes(), float(part.transform[2, 3])

    def cut(self) -> list[Part]:
        """The parts after the cut, without those of which nothing is left."""
        kept: list[tuple[Part, str, _Key | None]] = []
        for place, part in enumerate(self.scene.parts):
            if part.mesh not in self.compact:
                self.compact[part.mesh] = compacted(self.scene.meshes[part.mesh])
            mesh = self.compact[part.mesh]
            name = part.name or mesh.name or f"part {place + 1}"
            level = mesh.vertices @ part.transform[2, :3] + part.transform[2, 3]
            if len(level) == 0 or float(level.min()) >= self.height - self.near:
                self.stands |= bool((level[mesh.faces] <= self.height + self.near).all(axis=1).any())
                kept.append((part, name, None))
            elif float(level.max()) <= self.height + self.near:
                self.vanished.append(name)
            else:
                key = self._key(part)
                if key not in self.done:
                    self.done[key] = self._first(part, name)
                kept.append((part, name, key))
        self._check()
        number = {key: len(self.scene.meshes) + at for at, key in enumerate(self.done)}
        parts = (part if key is None else self._placed(part, name, key, number[key]) for part, name, key in kept)
        return [part for part in parts if part is not None]

    def _first(self, part: Part, name: str) -> _Cut:
        """The part's mesh, cut at the height asked for."""
        matrix = part.transform
        if self.alike[self._key(part)] > 1:
            matrix = matrix.copy()
            matrix[:2, 3] = 0
        mesh = placed_mesh(self.compact[part.mesh], matrix)
        plane = next(self._planes())
        return _Cut(name, matrix, _closed(mesh, plane), shells_below(mesh, plane))

    def _check(self) -> None:
        """See that all that was cut is as sound as it was, if that is possible by any of the evasions."""
        found = soundness_of_each(self.meshes)
        for (key, cut), after in zip(list(self.done.items()), found, strict=True):
            self.done[key] = self._evaded(key, cut, after) if after.bad else cut._replace(bodies=after.bodies)

    def _evaded(self, key: _Key, cut: _Cut, after: Soundness) -> _Cut:
        """The best that can be made of a mesh whose cut has unsound edges."""
        mesh = placed_mesh(self.compact[key[0]], cut.matrix)
        made = cut.made
        if soundness(mesh).bad == 0:
            for plane in islice(self._planes(), 1, None):
                tried = _closed(mesh, plane)
                now = soundness(tried.mesh)
                if now.bad < after.bad:
                    made, after = tried, now
                if now.bad == 0:
                    break
            if after.bad:
                self.unsound.append(cut.name)
        return cut._replace(made=made, bodies=after.bodies)

    def _placed(self, part: Part, name: str, key: _Key, index: int) -> Part | None:
        """The part with its cut mesh, or None when nothing of it is left."""
        cut = self.done[key]
        self.parts_cut += 1
        if cut.lost:
            self.robbed.append(name)
        if cut.made.open:
            self.torn.append(name)
        self.shells_removed += cut.lost
        self.loops += cut.made.loops
        self.base_area += cut.made.area
        shift = np.eye(4)
        if self.alike[key] > 1:
            shift[:2, 3] = part.transform[:2, 3]
        return replace(part, mesh=index, transform=shift) if len(cut.made.mesh.faces) else None

    def _planes(self) -> Iterator[Plane]:
        for times in EVASIONS:
            yield Plane(self.height + times * 4 * self.near, self.height, self.near, self.grid)

    def tell(self, made: Scene) -> None:
        """Say what was cut, and what did not come out as one would wish."""
        if self.vanished:
            note("parts_below_cut", f"{_named(self.vanished)} lay wholly below the cut and vanished")
        if self.robbed:
            note(
                "shells_below_cut",
                f"{self.shells_removed} separate pieces of {_named(self.robbed)} lay wholly below the cut and vanished",
            )
        if not (self.loops or self.torn or self.stands):
            note(
                "no_flat_base",
                "nothing was cut through: all that reaches below the cut lay wholly below it and vanished, and what is "
                "left has no flat base; ask for more or less with 'flatten_base_mm'",
            )
        if self.torn:
            note(
                "open_section",
                f"the cut through {_named(self.torn)} could be closed only in part, because the surface is open or "
                "inconsistent there; add 'repair'",
            )
        if self.unsound:
            note("cut_not_closed", f"the cut through {_named(self.unsound)} left edges open; add 'repair'")
        uses = Counter(part.mesh for part in made.parts)
        own = sorted(index for index in uses if index < len(self.scene.meshes))
        bodies = {len(self.scene.meshes) + at: cut.bodies for at, cut in enumerate(self.done.values())}
        for index, found in zip(own, soundness_of_each([made.meshes[index] for index in own]), strict=True):
            bodies[index] = found.bodies
        did(
            parts_cut=self.parts_cut,
            parts_removed=len(self.vanished),
            shells_removed=self.shells_removed,
            loops_closed=self.loops,
            base_area_mm2=self.base_area,
            bodies_after=sum(bodies[index] * times for index, times in uses.items()),
            faces_before=self.scene.face_count,
            faces_after=made.face_count,
        )


def _closed(mesh: Mesh, plane: Plane) -> Capped:
    """The mesh cut and capped."""
    made = capped(opened(mesh, plane), plane)
    return made._replace(mesh=compacted(made.mesh))


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
