"""Judge of repaired STL files. It uses numpy, scipy and manifold3d, and no code of any entrant."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import manifold3d
import numpy as np
from benchmarks.repair.shapes import Faces, Points, Soup
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

MAX_DISTANCE_RATIO = 0.005
"""Root mean square distance between result and truth, in either direction, per diagonal of the truth."""

MAX_VOLUME_RATIO = 0.05
"""Difference of the volumes per volume of the truth."""

SAMPLE_COUNT = 30_000
"""Points on each surface."""

_RECORD = np.dtype([("normal", "<f4", 3), ("corner", "<f4", (3, 3)), ("attribute", "<u2")])


@dataclass(frozen=True, eq=False)
class Case:
    """A file to repair, and what is right.

    parts:  meshes of the file, each a solid of the STL file
    expect: "solid", "sheet" or "valid"
    truth:  surface that a solid must have
    bodies: closed shells that a solid must have; None: not judged
    volume: whether the volume of the truth is judged too, and whether the result has surfaces that it has not; a file
        with holes is no whole truth
    """

    name: str
    group: str
    parts: tuple[Soup, ...]
    expect: str = "solid"
    truth: Soup | None = None
    bodies: int | None = None
    volume: bool = True


@dataclass(frozen=True)
class Verdict:
    """What is right about a result; None where a column does not apply."""

    right: bool
    closed: bool | None = None
    shape: bool | None = None
    bodies: bool | None = None
    unchanged: bool | None = None
    sheet: bool | None = None
    reasons: tuple[str, ...] = field(default=())


def read_stl(path: Path) -> Points:
    """Read the corners (m, 3, 3) of a binary or text STL file."""
    data = path.read_bytes()
    count = int.from_bytes(data[80:84], "little") if len(data) >= 84 else -1
    if len(data) == 84 + 50 * count:
        return np.frombuffer(data, _RECORD, count, 84)["corner"].astype(np.float32)
    rows = [line.split()[1:4] for line in data.decode(errors="replace").splitlines() if line.strip()[:6] == "vertex"]
    return np.array(rows, np.float64).reshape(-1, 3, 3).astype(np.float32)


def write_stl(path: Path, parts: tuple[Soup, ...]) -> None:
    """Write meshes: one as binary STL, several as named solids of a text file."""
    if len(parts) == 1:
        points, faces = parts[0]
        rows = np.zeros(len(faces), _RECORD)
        rows["corner"] = points[faces]
        path.write_bytes(b"case".ljust(80, b"\0") + len(faces).to_bytes(4, "little") + rows.tobytes())
        return
    lines = []
    for number, (points, faces) in enumerate(parts):
        lines.append(f"solid part{number}")
        for corner in points[faces].astype(np.float32):
            lines.append("facet normal 0 0 0\nouter loop")
            lines += [f"vertex {' '.join(str(value) for value in point)}" for point in corner]
            lines.append("endloop\nendfacet")
        lines.append(f"endsolid part{number}")
    path.write_text("\n".join(lines) + "\n", encoding="ascii")


def judge(case: Case, source: Path, result: Path) -> Verdict:
    """Judge a written file.

    Args:
        case: What is right.
        source: File that the entrant got.
        result: File that the entrant wrote.
    """
    try:
        corners = read_stl(result)
    except (OSError, ValueError) as error:
        return Verdict(False, reasons=(f"unreadable: {error}",))
    if len(corners) == 0 or not np.isfinite(corners).all():
        return Verdict(False, False, reasons=("no faces",))
    if case.expect == "valid":
        same = _same_triangles(read_stl(source), corners)
        return Verdict(same, unchanged=same, reasons=() if same else ("changed",))
    points, faces = _weld(corners)
    defects = _count_defects(points, faces)
    if case.expect == "sheet":
        before = _weld(read_stl(source))[1]
        open_ = defects[0] > 0 and len(faces) <= len(before) * 1.05
        return Verdict(open_, sheet=open_, reasons=() if open_ else ("closed as a solid",))
    return _judge_solid(case, points, faces, defects)


def _judge_solid(case: Case, points: Points, faces: Faces, defects: tuple[int, int, int]) -> Verdict:
    reasons = [
        f"{count} {word}" for count, word in zip(defects, ("open", "crowded", "inconsistent"), strict=True) if count
    ]
    volume = _volume(points, faces)
    if volume <= 0:
        reasons.append("no volume")
    if not reasons and manifold3d.Manifold(_native(points, faces)).status() != manifold3d.Error.NoError:
        reasons.append("not a manifold")
    closed = not reasons
    shape: bool | None = None
    if case.truth is not None:
        deviation = _distance(case.truth, (points, faces))
        if case.volume:
            deviation = max(deviation, _distance((points, faces), case.truth))
        ratio = abs(volume / _volume(*case.truth) - 1) if case.volume else 0.0
        shape = deviation <= MAX_DISTANCE_RATIO and ratio <= MAX_VOLUME_RATIO
        if not shape:
            reasons.append(f"{deviation:.2%} away, volume {ratio:.1%} off")
    bodies: bool | None = None
    if case.bodies is not None:
        count = _count_shells(faces)
        bodies = count == case.bodies
        if not bodies:
            reasons.append(f"{count} bodies instead of {case.bodies}")
    return Verdict(not reasons, closed, shape, bodies, reasons=tuple(reasons))


def _weld(corners: Points) -> Soup:
    points, index = np.unique(corners.reshape(-1, 3) + np.float32(0), axis=0, return_inverse=True)
    faces = index.reshape(-1, 3)
    a, b, c = faces.T
    return points.astype(np.float64), faces[(a != b) & (b != c) & (c != a)]


def _count_defects(points: Points, faces: Faces) -> tuple[int, int, int]:
    """Count the edges on one face, on more than two, and on two in the same direction."""
    begin, end = faces.ravel(), np.roll(faces, -1, axis=1).ravel()
    key = np.minimum(begin, end) * len(points) + np.maximum(begin, end)
    _, index, count = np.unique(key, return_inverse=True, return_counts=True)
    balance = np.bincount(index, np.where(begin < end, 1, -1))
    return int((count == 1).sum()), int((count > 2).sum()), int(((count == 2) & (balance != 0)).sum())


def _count_shells(faces: Faces) -> int:
    """Count the sets of faces that edges connect."""
    begin, end = faces.ravel(), np.roll(faces, -1, axis=1).ravel()
    key = np.minimum(begin, end) * (int(faces.max()) + 1) + np.maximum(begin, end)
    order = np.argsort(key, kind="stable")
    same = key[order[1:]] == key[order[:-1]]
    rows, columns = order[1:][same] // 3, order[:-1][same] // 3
    graph = coo_array((np.ones(len(rows)), (rows, columns)), (len(faces), len(faces)))
    return int(connected_components(graph, directed=False)[0])


def _native(points: Points, faces: Faces) -> manifold3d.Mesh64:
    return manifold3d.Mesh64(points, faces.astype(np.uint64))


def _volume(points: Points, faces: Faces) -> float:
    a, b, c = (points[faces[:, corner]] - points.mean(axis=0) for corner in range(3))
    return float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6)


def _sample(soup: Soup) -> Points:
    corner = soup[0][soup[1]]
    area = np.linalg.norm(np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]), axis=1)
    rng = np.random.default_rng(0)
    chosen = rng.choice(len(area), SAMPLE_COUNT, p=area / area.sum())
    r, s = np.sqrt(rng.random((SAMPLE_COUNT, 1))), rng.random((SAMPLE_COUNT, 1))
    return (1 - r) * corner[chosen, 0] + r * (1 - s) * corner[chosen, 1] + r * s * corner[chosen, 2]


def _distance(soup: Soup, other: Soup) -> float:
    """Return the root mean square distance of one surface from the other, per diagonal, less that of the samples."""
    diagonal = float(np.linalg.norm(np.ptp(soup[0][np.unique(soup[1])], axis=0)))
    samples = _sample(other)
    gap, nearest = cKDTree(samples).query(_sample(soup), k=2)
    # the typical distance of neighboring samples is noise, and not deviation
    noise = np.linalg.norm(samples[nearest[:, 0]] - samples[nearest[:, 1]], axis=1)
    return float(np.sqrt((np.maximum(gap[:, 0] - noise, 0) ** 2).mean())) / diagonal


def _same_triangles(before: Points, after: Points) -> bool:
    """Return whether two files have the same triangles, in any order."""
    if before.shape != after.shape:
        return False
    rows = []
    for corners in (before + np.float32(0), after + np.float32(0)):
        first = np.lexsort((corners[..., 2], corners[..., 1], corners[..., 0]), axis=1)[:, :1]
        turned = np.take_along_axis(corners, ((first + np.arange(3)) % 3)[..., None], axis=1).reshape(-1, 9)
        rows.append(turned[np.lexsort(turned.T)])
    return bool(np.array_equal(rows[0], rows[1]))
