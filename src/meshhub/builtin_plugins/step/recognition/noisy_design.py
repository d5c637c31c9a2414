"""Parameters of the surfaces of a noisy mesh: those that a designer entered, where the noise allows them.

Fits to noisy points are off by a part of the noise: a fillet does not quite touch its walls, and a corner of three
fillets has four radii. Relations that hold within the uncertainty of the fits are made exact, all at once: the sum of
squared changes, each in its own uncertainty, is as small as possible.
"""

# why this way: docs/decisions/0064-small-features-of-noisy-meshes.md
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.step.surfaces.arrays import normalize
from meshhub.builtin_plugins.step.surfaces.surface_array import SurfaceArray, SurfaceKind
from meshhub.builtin_plugins.step.surfaces.surfaces import distances
from meshhub.model.scene import Float64
from meshhub.toolkit.geometry import IntIndex

_MAX_DEVIATIONS = 4.0
"""Uncertainties by which a relation may be violated before, and at least as many deviations of the noise, because fits
also have systematic errors."""

_MAX_ROOM_RATIO = 8.0
"""Largest violation of a relation over that by systematic errors: a radius that noise hides is not any radius."""

_MAX_TURN_RAD = np.radians(0.3)
"""Radians; angle between axes that systematic errors cause."""

_STEPS_MM = (1.0, 0.5, 0.25, 0.1, 0.05, 0.01)
"""Steps of radii that a designer enters."""

_MAX_ROUNDED_DEVIATIONS = 2.5
"""Uncertainties by which a radius is rounded."""

_MAX_ROUNDED_RATIO = 0.1
"""Part of the step by which a radius is rounded; by chance, a fifth of all radii are so near."""

_STEP = 1e-6
"""Step of numeric derivatives, millimeters or radians."""

_AXIS_WEIGHT = 1e6
"""Information on the length of an axis; a turn by 2°, which also changes the number along the axis, costs nothing."""

_RANK_RATIOS = (1e-2, 1e-3, 1e-4, 1e-4, 1e-5, 1e-5, 1e-5)
"""Singular value over the largest one, below which relations say the same, in each Newton step.

Relations that say the same once all axes are exact contradict each other while these are off by a degree.
"""

_COLUMNS = 8
"""Numbers of a surface: origin, axis, radius, second."""

Relation = Callable[[Float64], Float64]
"""Function of all numbers (s, 8) that is zero where a relation holds."""


def _pack(surfaces: SurfaceArray) -> Float64:
    return np.column_stack([surfaces.origin, surfaces.axis, surfaces.radius, surfaces.second])


def _unpack(surfaces: SurfaceArray, numbers: Float64) -> SurfaceArray:
    axis = normalize(numbers[:, 3:6])
    return replace(surfaces, origin=numbers[:, :3], axis=axis, radius=numbers[:, 6], second=numbers[:, 7])


def information(surfaces: SurfaceArray, index: IntIndex, points: Float64, sigma: Float64) -> Float64:
    """Return the information matrix (s, 8, 8) of the numbers of each surface.

    Args:
        surfaces: (s,) surfaces.
        index: (n,) surface of each point.
        points: (n, 3) points.
        sigma: mm, deviation of the noise.
    """
    numbers = _pack(surfaces)
    scale = np.ones(len(surfaces))
    np.maximum.at(scale, index, np.linalg.norm(points - surfaces.origin[index], axis=1))
    columns = []
    for k in range(_COLUMNS):
        step = np.zeros_like(numbers)
        step[:, k] = _STEP
        ahead, behind = (distances(_unpack(surfaces, numbers + sign * step).take(index), points) for sign in (1, -1))
        columns.append((ahead - behind) / (2 * _STEP))
    result = np.empty((len(surfaces), _COLUMNS, _COLUMNS))
    for i in range(_COLUMNS):
        for j in range(i, _COLUMNS):
            result[:, i, j] = result[:, j, i] = np.bincount(index, columns[i] * columns[j], len(surfaces))
    result /= sigma[:, None, None] ** 2
    # numbers that points do not determine, such as the height of an origin, stay
    ridge = np.array([1e-4] * 3 + [1e-2] * 3 + [1e-4, 1e-4]) / sigma[:, None] ** 2
    result += np.eye(_COLUMNS) * ridge[:, None, :]
    # axes keep their lengths
    result[:, 3:6, 3:6] += _AXIS_WEIGHT * surfaces.axis[:, :, None] * surfaces.axis[:, None, :]
    return result


class Relations:
    """Relations between surfaces that hold within the uncertainty of their fits."""

    def __init__(self, surfaces: SurfaceArray, matrices: Float64, sigma: Float64) -> None:
        self.surfaces = surfaces
        self.sigma = sigma
        self.start = self.numbers = _pack(surfaces)
        self.covariance = np.linalg.inv(matrices)
        self.matrices = matrices
        self.chosen: list[tuple[list[int], Relation]] = []

    def offer(self, members: list[int], relation: Relation, room: float | None = None) -> bool:
        """Add a relation of some surfaces if it holds within uncertainty; return whether it does.

        Args:
            members: Surfaces.
            relation: Function that is zero where the relation holds.
            room: Difference that fits cause by systematic errors; default: `_MAX_DEVIATIONS` in millimeters.
        """
        if room is None:
            room = _MAX_DEVIATIONS * float(self.sigma[members].max())
        value = relation(self.start)
        jacobian = self._derive(members, relation, self.start)
        variance = sum(
            np.einsum("ij,jk,ik->i", jacobian[:, place], self.covariance[member], jacobian[:, place])
            for place, member in enumerate(members)
        )
        allowed = np.clip(_MAX_DEVIATIONS * np.sqrt(variance), room, _MAX_ROOM_RATIO * room)
        if not (np.abs(value) <= allowed).all():
            return False
        self.chosen.append((members, relation))
        return True

    def _derive(self, members: list[int], relation: Relation, numbers: Float64) -> Float64:
        """Return the derivatives (values, members, 8)."""
        columns = []
        for member in members:
            for k in range(_COLUMNS):
                ahead, behind = numbers.copy(), numbers.copy()
                ahead[member, k] += _STEP
                behind[member, k] -= _STEP
                columns.append((relation(ahead) - relation(behind)) / (2 * _STEP))
        return np.stack(columns, axis=1).reshape(-1, len(members), _COLUMNS)

    def _linearize(self, numbers: Float64) -> tuple[Float64, Float64]:
        """Return the derivatives (k, 8 s) and the values (k,) of all relations."""
        rows, values = [np.empty((0, numbers.size))], [np.empty(0)]
        for members, relation in self.chosen:
            jacobian = self._derive(members, relation, numbers)
            row = np.zeros((len(jacobian), *numbers.shape))
            row[:, members] = jacobian
            rows.append(row.reshape(len(jacobian), -1))
            values.append(relation(numbers))
        return np.concatenate(rows), np.concatenate(values)

    def solve(self) -> SurfaceArray:
        """Return the surfaces with all relations."""
        count, size = len(self.surfaces), self.start.size
        # in units of the uncertainty of each surface, the smallest change is the most likely one
        unit = np.linalg.inv(np.linalg.cholesky(self.matrices)).transpose(0, 2, 1)
        numbers = self.numbers
        for rank_ratio in _RANK_RATIOS if self.chosen else ():
            rows, values = self._linearize(numbers)
            # axes keep their lengths, or levers would be shortened instead of moved
            lengths = np.zeros((count, *numbers.shape))
            lengths[np.arange(count), np.arange(count), 3:6] = numbers[:, 3:6]
            rows, values = np.concatenate([rows, lengths.reshape(count, size)]), np.append(values, np.zeros(count))
            right = rows @ (numbers - self.start).ravel() - values
            scaled = np.einsum("rsi,sij->rsj", rows.reshape(len(rows), count, _COLUMNS), unit).reshape(len(rows), size)
            weight = 1 / np.maximum(np.linalg.norm(scaled, axis=1), 1e-300)
            change = np.linalg.lstsq(scaled * weight[:, None], right * weight, rank_ratio)[0]
            numbers = self.start + np.einsum("sij,sj->si", unit, change.reshape(numbers.shape))
            numbers[:, 3:6] = normalize(numbers[:, 3:6])
        self.numbers = numbers
        return _unpack(self.surfaces, numbers)


def _axis(numbers: Float64, surface: int) -> Float64:
    axis: Float64 = numbers[surface, 3:6]
    return axis


def _origin(numbers: Float64, surface: int) -> Float64:
    origin: Float64 = numbers[surface, :3]
    return origin


def _lean(numbers: Float64, one: int, other: int) -> Float64:
    """Return zero for perpendicular axes."""
    return np.array([_axis(numbers, one) @ _axis(numbers, other)])


def _turn(numbers: Float64, one: int, other: int) -> Float64:
    """Return zero for parallel axes."""
    return np.cross(_axis(numbers, one), _axis(numbers, other))


def _center(numbers: Float64, one: int, other: int) -> Float64:
    """Return zero if the origin of a surface lies on the axis of the first one."""
    offset = _origin(numbers, other) - _origin(numbers, one)
    return offset - (offset @ _axis(numbers, one)) * _axis(numbers, one)


def _level(numbers: Float64, one: int, other: int) -> float:
    """Return the height of the origin of a surface over that of the first one, along the axis of the first one."""
    return float((_origin(numbers, other) - _origin(numbers, one)) @ _axis(numbers, one))


def _along_coordinate(surface: int, beside: list[int]) -> Relation:
    """Return the relation of an axis along a coordinate axis; `beside`: the other two."""
    return lambda numbers: numbers[surface, 3:6][beside]


def _equal_to(surface: int, column: int, target: float) -> Relation:
    """Return the relation of a number that has a value."""
    return lambda numbers: np.array([numbers[surface, column] - target])


def find_relations(surfaces: SurfaceArray, pairs: NDArray[np.intp], matrices: Float64, sigma: Float64) -> Relations:
    """Find the relations between surfaces.

    Args:
        surfaces: (s,) surfaces.
        pairs: (k, 2) surfaces of neighboring regions.
        matrices: (s, 8, 8) information matrices.
        sigma: (s,) mm, deviation of the noise.
    """
    relations = Relations(surfaces, matrices, sigma)
    for number in np.flatnonzero(surfaces.kind != SurfaceKind.SPHERE).tolist():
        main = int(np.argmax(np.abs(surfaces.axis[number])))
        beside = [k for k in range(3) if k != main]
        relations.offer([number], _along_coordinate(number, beside), _MAX_TURN_RAD)
    for pair in pairs.tolist():
        one, other = sorted(pair, key=lambda number: int(surfaces.kind[number]))
        kinds = SurfaceKind(int(surfaces.kind[one])), SurfaceKind(int(surfaces.kind[other]))
        if kinds in _RULES:
            _RULES[kinds](relations, one, other)
    return relations


def _relate_planes(relations: Relations, one: int, other: int) -> None:
    relations.offer([one, other], lambda n: _lean(n, one, other), _MAX_TURN_RAD)


def _relate_plane_and_cylinder(relations: Relations, one: int, other: int) -> None:
    """A plane touches a cylinder along a line, or cuts it across."""
    if relations.offer([one, other], lambda n: _lean(n, one, other), _MAX_TURN_RAD):
        side = float(np.sign(_level(relations.start, one, other)))
        relations.offer([one, other], lambda n: np.array([_level(n, one, other) - side * n[other, 6]]))
    else:
        relations.offer([one, other], lambda n: _turn(n, one, other), _MAX_TURN_RAD)


def _relate_plane_and_torus(relations: Relations, one: int, other: int) -> None:
    """A plane touches a torus along a circle."""
    if relations.offer([one, other], lambda n: _turn(n, one, other), _MAX_TURN_RAD):
        side = float(np.sign(_level(relations.start, one, other)))
        relations.offer([one, other], lambda n: np.array([_level(n, one, other) - side * n[other, 7]]))


def _relate_cylinder_and_sphere(relations: Relations, one: int, other: int) -> None:
    """A ball ends a cylinder."""
    if relations.offer([one, other], lambda n: np.array([n[one, 6] - n[other, 6]])):
        relations.offer([one, other], lambda n: _center(n, one, other))


def _relate_cylinders(relations: Relations, one: int, other: int) -> None:
    relations.offer([one, other], lambda n: np.array([n[one, 6] - n[other, 6]]))


def _relate_cylinder_and_cone(relations: Relations, one: int, other: int) -> None:
    if relations.offer([one, other], lambda n: _turn(n, one, other), _MAX_TURN_RAD):
        relations.offer([one, other], lambda n: _center(n, one, other))


def _relate_cylinder_and_torus(relations: Relations, one: int, other: int) -> None:
    """A torus rounds the rim of a cylinder, or bends it."""
    if relations.offer([one, other], lambda n: _turn(n, one, other), _MAX_TURN_RAD):
        if relations.offer([one, other], lambda n: _center(n, one, other)):
            side = float(np.sign(relations.start[one, 6] - relations.start[other, 6]))
            relations.offer([one, other], lambda n: np.array([n[one, 6] - n[other, 6] - side * n[other, 7]]))
    elif relations.offer([one, other], lambda n: np.array([n[one, 6] - n[other, 7]])):
        relations.offer([one, other], lambda n: _lean(n, one, other), _MAX_TURN_RAD)
        relations.offer([one, other], lambda n: np.array([_level(n, other, one)]))

        def reach(numbers: Float64) -> float:
            return float((_origin(numbers, one) - _origin(numbers, other)) @ _turn(numbers, one, other))

        side = float(np.sign(reach(relations.start)))
        relations.offer([one, other], lambda n: np.array([reach(n) - side * n[other, 6]]))


_RULES = {
    (SurfaceKind.PLANE, SurfaceKind.PLANE): _relate_planes,
    (SurfaceKind.PLANE, SurfaceKind.CYLINDER): _relate_plane_and_cylinder,
    (SurfaceKind.PLANE, SurfaceKind.TORUS): _relate_plane_and_torus,
    (SurfaceKind.CYLINDER, SurfaceKind.CYLINDER): _relate_cylinders,
    (SurfaceKind.CYLINDER, SurfaceKind.SPHERE): _relate_cylinder_and_sphere,
    (SurfaceKind.CYLINDER, SurfaceKind.CONE): _relate_cylinder_and_cone,
    (SurfaceKind.CYLINDER, SurfaceKind.TORUS): _relate_cylinder_and_torus,
}
"""Relations of neighbors by their kinds."""


def round_radii(relations: Relations) -> None:
    """Add the radii with fewest decimals within uncertainty as relations."""
    surfaces, numbers = relations.surfaces, relations.numbers
    has_radius = np.isin(surfaces.kind, (SurfaceKind.CYLINDER, SurfaceKind.SPHERE, SurfaceKind.TORUS))
    has_tube = surfaces.kind == SurfaceKind.TORUS
    for column, chosen in ((6, has_radius), (7, has_tube)):
        for number in np.flatnonzero(chosen).tolist():
            deviation = float(np.sqrt(relations.covariance[number, column, column]))
            for step in _STEPS_MM:
                target = round(float(numbers[number, column]) / step) * step
                allowed = min(_MAX_ROUNDED_DEVIATIONS * deviation, _MAX_ROUNDED_RATIO * step)
                if target > 0 and abs(target - numbers[number, column]) <= allowed:
                    relations.chosen.append(([number], _equal_to(number, column, target)))
                    break
