"""Division of the parts of a scene into closed pieces, which become parts in the same places."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from manifold3d import Manifold

from meshhub.errors import quote
from meshhub.model.scene import Float64, Mesh, Part, Scene
from meshhub.toolkit.combining import note_overlaps, unite_bodies
from meshhub.toolkit.geometry import placed_mesh, without_unused_meshes
from meshhub.toolkit.names import letters
from meshhub.toolkit.solids import Solids
from meshhub.toolkit.validity import find_invalid_edge


class Piece(NamedTuple):
    """Piece of a part.

    solid: its volume, placed like the part, but without its translation
    kind:  word in the name of an additional piece, such as "dowel"; "" for a piece of the part itself
    """

    solid: Manifold
    kind: str = ""


class InvalidEdge(NamedTuple):
    """Edge that is invalid in files.

    name:  name of the divided part; "part" without one
    place: (3,) middle of the edge in the scene, millimeters
    """

    name: str
    place: Float64


class Divider:
    """Division of the parts of one scene, which divides each mesh once for all parts that need the same pieces.

    invalid: an edge of each divided part with pieces whose edges are invalid in files
    """

    def __init__(self, scene: Scene, repair_option: str) -> None:
        """Prepare the division of a scene; messages about invalid meshes advise the option."""
        self.scene = scene
        self.invalid: list[InvalidEdge] = []
        self._solids = Solids.of(scene.meshes, len(scene.materials), repair_option)
        self._meshes: list[Mesh] = []
        self._pieces: dict[Hashable, list[tuple[int, str]]] = {}
        self._invalid_places: dict[Hashable, Float64] = {}
        self._numbers: Counter[str] = Counter()

    def divide(self, part: Part, cut: Callable[[Manifold], Sequence[Piece]], key: Hashable = None) -> list[Part]:
        """Divide one part.

        Args:
            part: Part of the scene.
            cut: Returns the pieces of a solid, which is placed like the part, but without its translation.
            key: Value that is equal for cuts that give equal pieces.
        Returns:
            Parts named NAME-a, NAME-b, …; a single piece keeps the name of the part.
        Raises:
            ConversionFailed: The part is not a solid.
        """
        linear = part.transform.copy()
        linear[:3, 3] = 0
        whole_key = part.mesh, linear.tobytes(), key
        if whole_key not in self._pieces:
            mesh = placed_mesh(self.scene.meshes[part.mesh], linear)
            name = part.name or mesh.name
            solid = self._solids.to_solid(mesh, name)
            union = unite_bodies(solid)
            if union is not solid:
                note_overlaps(quote(name or "part"))
            self._pieces[whole_key] = self._store(mesh, cut(union), whole_key)
        pieces = self._pieces[whole_key]
        # pieces are already turned and scaled, so only the translation is left
        transform = np.eye(4)
        transform[:3, 3] = part.transform[:3, 3]
        name = part.name or self.scene.meshes[part.mesh].name
        if whole_key in self._invalid_places:
            place = self._invalid_places[whole_key] + part.transform[:3, 3]
            self.invalid.append(InvalidEdge(name or "part", place))
        return [
            replace(
                part, mesh=index, transform=transform, name=self._next_name(name, kind) if len(pieces) > 1 else name
            )
            for index, kind in pieces
        ]

    def finish(self, parts: Sequence[Part]) -> Scene:
        """Return the scene with other parts: those that were not divided, and the pieces of the divided ones."""
        meshes = (*self.scene.meshes, *self._meshes)
        return without_unused_meshes(replace(self.scene, meshes=meshes, parts=tuple(parts)))

    def _store(self, mesh: Mesh, pieces: Sequence[Piece], key: Hashable) -> list[tuple[int, str]]:
        """Store the meshes of pieces, and an invalid edge; return the index and the kind of each."""
        begin = len(self.scene.meshes) + len(self._meshes)
        for number, piece in enumerate(pieces):
            result = self._solids.to_mesh(piece.solid, mesh)
            place = find_invalid_edge(result)
            if place is not None:
                self._invalid_places.setdefault(key, place)
            suffix = f"-{letters(number)}" if mesh.name and len(pieces) > 1 else ""
            self._meshes.append(replace(result, name=mesh.name + suffix))
        return [(begin + number, piece.kind) for number, piece in enumerate(pieces)]

    def _next_name(self, name: str, kind: str) -> str:
        """Return a name that no other piece has; the letters continue over all parts of one name."""
        base = f"{name or 'part'}-{kind}" if kind else name or "part"
        self._numbers[base] += 1
        return f"{base}-{letters(self._numbers[base] - 1)}"
