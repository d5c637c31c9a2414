"""Rate and speed of correct repairs of defective meshes: meshhub compared with other libraries.

    MESHHUB_CORPUS=… python benchmarks/repair.py [--peers] [--failures]

A result is correct if an STL file of it is: closed, two faces at every edge, consistently wound, positive volume after
rounding to float32 and welding, and the root mean square distance of the input from it is at most 0.5 % of the input's
diagonal. Sheets are left out, because they have no correct closed form.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import os
import subprocess
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import which

import numpy as np
from scipy.spatial import cKDTree

from meshhub.builtin_plugins.repair import meshlab, operation
from meshhub.builtin_plugins.repair.validity import check_as_file
from meshhub.model.scene import Float64, Int32, Mesh
from meshhub.toolkit import topology
from meshhub.toolkit.geometry import weld

Soup = tuple[Float64, Int32]
RepairFunction = Callable[[Soup], Soup]

DEFECTS = frozenset(
    "boundary_edges nonmanifold_edges inconsistent_winding_edges inside_out duplicate_faces stray_fragments "
    "degenerate_faces".split()
)
FORMATS = frozenset((".stl", ".obj", ".ply", ".glb", ".gltf", ".gltf_packed", ".3mf"))
SHEETS = frozenset(("flat", "no_faces", "point_cloud"))
SHEETS_BY_EYE = (
    "issue_3269_texcoord_crash",  # five quads
    "regr_3429812",  # a quad drawn twice
    "octagon_preserved",  # an octagon
    "moebius",  # a strip
    "cornellbox_suzanne",  # the walls of a room, each a quad
    "issue-319-002",  # scraps of two roofs
)
"""Names of sheets that the index of the corpus does not tag."""
MAX_DISTANCE_RATIO = 0.005
"""Root mean square distance of the input from the result, relative to the input's diagonal."""


def real_meshes(corpus: Path) -> Iterator[tuple[str, Soup]]:
    """Yield the defective files of the corpus, with all parts merged, without sheets and unreadable files."""
    import trimesh

    with (corpus / "INDEX.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        tags = set(row["feature_tags"].split())
        name = row["file"]
        if not tags & DEFECTS or tags & SHEETS or Path(name).suffix.lower() not in FORMATS:
            continue
        if not row["n_faces"] or int(row["n_faces"]) < 4 or any(word in name for word in SHEETS_BY_EYE):
            continue
        with warnings.catch_warnings(), contextlib.suppress(Exception):
            warnings.simplefilter("ignore")
            kind = Path(name).suffix.lower()[1:].removesuffix("_packed")
            loaded = trimesh.load(corpus / name, file_type=kind, force="mesh", process=False)
            points, faces = np.array(loaded.vertices, np.float64), np.array(loaded.faces, np.int32)
            if np.isfinite(points).all() and len(faces):
                yield name, (points, faces)


def valid_meshes() -> list[tuple[str, Soup]]:
    """Return valid bodies to damage: round, with edges, with a handle, with a cavity."""
    return [
        ("ball", ball(24)),
        ("box", box()),
        ("ring", ring()),
        ("hollow", merge(ball(24), flip(ball(24, 0.5)))),
    ]


def ball(segments: int, radius: float = 1.0) -> Soup:
    """Return a closed sphere with this number of meridians."""
    theta = np.linspace(0, np.pi, segments // 2 + 1)
    phi = np.linspace(0, 2 * np.pi, segments + 1)
    t, p = np.meshgrid(theta, phi, indexing="ij")
    grid = np.stack([np.sin(t) * np.cos(p), np.sin(t) * np.sin(p), np.cos(t)], axis=-1) * radius
    return _weld_grid(grid)


def ring(segments: int = 32) -> Soup:
    """Return a torus."""
    a = np.linspace(0, 2 * np.pi, segments + 1)
    u, v = np.meshgrid(a, a, indexing="ij")
    grid = np.stack([(2 + np.cos(v)) * np.cos(u), (2 + np.cos(v)) * np.sin(u), np.sin(v)], axis=-1)
    return flip(_weld_grid(grid))


def box(cuts: int = 8) -> Soup:
    """Return a cube with a grid on every side."""
    line = np.linspace(-1, 1, cuts + 1)
    u, v = np.meshgrid(line, line, indexing="ij")
    sides = []
    for axis in range(3):
        for side in (-1, 1):
            grid = np.stack(np.roll([np.full_like(u, side), u, v], axis, axis=0), axis=-1)
            sides.append(_grid(grid if side > 0 else grid.transpose(1, 0, 2)))
    points, faces = merge(*sides)
    return _weld_faces(points, faces)


def _grid(grid: Float64) -> Soup:
    index = np.arange(grid.shape[0] * grid.shape[1]).reshape(grid.shape[:2])
    a, b, c, d = index[:-1, :-1].ravel(), index[1:, :-1].ravel(), index[1:, 1:].ravel(), index[:-1, 1:].ravel()
    return grid.reshape(-1, 3), np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)]).astype(np.int32)


def _weld_grid(grid: Float64) -> Soup:
    return _weld_faces(*_grid(grid))


def _weld_faces(points: Float64, faces: Int32) -> Soup:
    first, index = weld(np.round(points, 9))
    faces = index[faces]
    return points[first], topology.remove_degenerate_faces(faces)


def flip(soup: Soup) -> Soup:
    """Reverse all faces."""
    return soup[0], soup[1][:, ::-1]


def move(soup: Soup, *by: float) -> Soup:
    """Translate the mesh."""
    return soup[0] + np.array(by), soup[1]


def merge(*soups: Soup) -> Soup:
    """Merge several meshes into one."""
    offsets = np.cumsum([0] + [len(points) for points, _ in soups[:-1]])
    return np.concatenate([points for points, _ in soups]), np.concatenate(
        [faces + offset for (_, faces), offset in zip(soups, offsets, strict=True)]
    ).astype(np.int32)


def damaged_meshes() -> Iterator[tuple[str, Soup]]:
    """Yield valid bodies, each with every kind of damage."""
    for name, (points, faces) in valid_meshes():
        rng = np.random.default_rng(len(faces))
        count = len(faces)
        selected = rng.random(count) < 0.05
        middle = points[faces].mean(axis=1)
        corner = points[faces].reshape(-1, 3)
        separate_faces = np.arange(3 * count, dtype=np.int32).reshape(-1, 3)
        size = float(np.linalg.norm(np.ptp(points, axis=0)))
        yield f"{name}: faces deleted", (points, faces[~selected])
        yield f"{name}: a cap deleted", (points, faces[middle[:, 2] < 0.6 * points[:, 2].max()])
        yield (
            f"{name}: a corner deleted",
            (points, faces[middle @ [0.7, 0.5, 0.4] < 0.7 * (points @ [0.7, 0.5, 0.4]).max()]),
        )
        yield f"{name}: faces flipped", (points, np.where(selected[:, None], faces[:, ::-1], faces))
        yield f"{name}: inside out", flip((points, faces))
        yield f"{name}: faces doubled", (points, np.concatenate([faces, faces[selected]]))
        yield f"{name}: drawn on both sides", (points, np.concatenate([faces, faces[:, ::-1]]))
        yield f"{name}: corners jittered", (corner + rng.normal(0, 3e-7 * size, corner.shape), separate_faces)
        yield f"{name}: corners jittered more", (corner + rng.normal(0, 5e-6 * size, corner.shape), separate_faces)
        yield f"{name}: T-junctions", t_junctions(points, faces, selected)
        yield (
            f"{name}: a flap",
            merge((points, faces), (points[faces[:1]][0] * [[1], [1], [1.4]], np.array([[0, 1, 2]]))),
        )
        yield (
            f"{name}: a fin",
            (
                np.concatenate([points, points[faces[0]].mean(axis=0)[None] * 1.3]),
                np.concatenate([faces, [[faces[0, 0], faces[0, 1], len(points)]]]).astype(np.int32),
            ),
        )
        yield f"{name}: overlapping twin", merge((points, faces), move((points, faces), 0.3, 0.4, 0.5))
        yield (
            f"{name}: twin at a point",
            merge((points, faces), move((points, faces), *np.ptp(points, axis=0) * [0, 0, 1])),
        )
        yield f"{name}: fragments", merge((points, faces), *make_fragments(rng, points))
        yield f"{name}: degenerate faces", (points, np.concatenate([faces, faces[:9][:, [0, 0, 1]]]))
        yield (
            f"{name}: random windings",
            (points, np.where((rng.random(count) < 0.5)[:, None], faces[:, ::-1], faces)),
        )
        yield (
            f"{name}: everything",
            merge(
                (points, np.where((~selected & (rng.random(count) < 0.05))[:, None], faces[:, ::-1], faces)[~selected]),
                *make_fragments(rng, points),
                (points, faces[rng.random(count) < 0.02]),
            ),
        )
    yield "boxes sharing an edge", merge(box(1), move(box(1), 2, 2, 0))
    yield "boxes sharing a wall", merge(box(2), move(box(2), 2, 0, 0))
    yield "boxes sharing half a wall", merge(box(2), move(box(2), 2, 1, 0))
    yield "box without two sides", (box(3)[0], box(3)[1][np.abs(box(3)[0][box(3)[1]].mean(axis=1)[:, 2]) < 0.99])
    yield "tube without ends", tube()
    yield "many holes", (ball(64)[0], ball(64)[1][(np.arange(len(ball(64)[1])) % 7) > 0])
    yield (
        "wall inside",
        merge(
            box(4), _grid(np.stack([*np.meshgrid(np.linspace(-1, 1, 5), np.linspace(-1, 1, 5)), np.zeros((5, 5))], -1))
        ),
    )


def tube() -> Soup:
    """Return two open cylinders, one inside the other and reversed, without the rings at both ends."""
    a, z = np.linspace(0, 2 * np.pi, 41), np.array([0.0, 3.0])
    outer = _grid(np.stack([np.cos(a)[:, None] + 0 * z, np.sin(a)[:, None] + 0 * z, 0 * a[:, None] + z], -1))
    inner = _grid(
        np.stack([0.6 * np.cos(a)[:, None] + 0 * z, 0.6 * np.sin(a)[:, None] + 0 * z, 0 * a[:, None] + z], -1)
    )
    return merge(_weld_faces(*outer), flip(_weld_faces(*inner)))


def t_junctions(points: Float64, faces: Int32, selected: np.ndarray) -> Soup:
    """Split faces at the middle of an edge that their neighbors keep whole."""
    cut = faces[selected]
    middle = (points[cut[:, 0]] + points[cut[:, 1]]) / 2
    index = len(points) + np.arange(len(cut), dtype=np.int32)
    halves = [np.stack([cut[:, 0], index, cut[:, 2]], 1), np.stack([index, cut[:, 1], cut[:, 2]], 1)]
    return np.concatenate([points, middle]), np.concatenate([faces[~selected], *halves])


def make_fragments(rng: np.random.Generator, points: Float64) -> list[Soup]:
    """Return single tiny faces around a body."""
    size = float(np.ptp(points, axis=0).max())
    return [
        (points.mean(axis=0) + rng.normal(0, size, 3) + rng.normal(0, size * 1e-4, (3, 3)), np.array([[0, 1, 2]]))
        for _ in range(5)
    ]


def distance(soup: Soup, result: Soup) -> float:
    """Return the root mean square distance of the input from the result, relative to the input's diagonal.

    It is at most 0.2 % of the diagonal too large, because the result is sampled.
    """
    points, faces = _without_fragments(soup)
    used = points[np.unique(faces)]
    diagonal = float(np.linalg.norm(np.ptp(used, axis=0))) or 1.0
    rng = np.random.default_rng(0)
    queries = np.concatenate([used, points[faces].mean(axis=1)])
    queries = queries[rng.permutation(len(queries))[:3000]]
    distances, _ = cKDTree(sample_surface(result, rng)).query(queries)
    return float(np.sqrt((distances**2).mean())) / diagonal


def _without_fragments(soup: Soup) -> Soup:
    """Return the input without tiny single faces, which a repair must remove."""
    points, faces = soup
    corner = points[faces]
    size = np.linalg.norm(corner.max(axis=1) - corner.min(axis=1), axis=1)
    uses = np.bincount(weld(points)[1][faces.ravel()], minlength=len(points))
    isolated = (uses[weld(points)[1][faces]] == 1).all(axis=1) & (size < 0.01 * np.linalg.norm(np.ptp(points, axis=0)))
    return points, faces[~isolated]


def sample_surface(soup: Soup, rng: np.random.Generator, count: int = 400_000) -> Float64:
    """Return points on a surface, distributed by area, and its vertices."""
    corner = soup[0][soup[1]]
    area = np.linalg.norm(np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]), axis=1)
    chosen = np.searchsorted(np.cumsum(area) / max(float(area.sum()), 1e-300), rng.random(count)).clip(
        max=len(area) - 1
    )
    r, s = np.sqrt(rng.random((count, 1))), rng.random((count, 1))
    inside = (1 - r) * corner[chosen, 0] + r * (1 - s) * corner[chosen, 1] + r * s * corner[chosen, 2]
    return np.concatenate([inside, soup[0][np.unique(soup[1])]])


def repair_without_pymeshlab(soup: Soup) -> Soup:
    """Repair with meshhub without pymeshlab."""
    second_stage, meshlab.repair_with_meshlab = meshlab.repair_with_meshlab, lambda *_: None
    try:
        return repair_with_meshhub(soup)
    finally:
        meshlab.repair_with_meshlab = second_stage


def repair_with_meshhub(soup: Soup) -> Soup:
    """Repair with meshhub."""
    mesh = Mesh(*soup)
    result = operation.repair_mesh(mesh, float(np.abs(soup[0]).max()), Counter(), "it").mesh
    return result.vertices, result.faces


def repair_with_pymeshlab(soup: Soup) -> Soup:
    """Repair with the same pymeshlab filters alone."""
    first, index = weld(soup[0].astype(np.float32))
    result = meshlab._apply_filters(soup[0][first], topology.remove_degenerate_faces(index[soup[1]]))
    return soup if result is None else result


def repair_with_trimesh(soup: Soup) -> Soup:
    """Repair with trimesh's own functions."""
    import trimesh

    mesh = trimesh.Trimesh(*soup, process=True)
    mesh.update_faces(mesh.unique_faces())
    mesh.update_faces(mesh.nondegenerate_faces())
    trimesh.repair.fill_holes(mesh)
    trimesh.repair.fix_normals(mesh, multibody=True)
    return np.array(mesh.vertices), np.array(mesh.faces, np.int32)


def repair_with_admesh(soup: Soup) -> Soup:
    """Repair with admesh's default repairs, through STL files, whose time counts."""
    import trimesh

    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder) / "in.stl", Path(folder) / "out.stl"
        trimesh.Trimesh(*soup, process=False).export(before)
        subprocess.run(["admesh", f"--write-binary-stl={after}", before], capture_output=True, timeout=120, check=False)
        mesh = trimesh.load(after, process=False)
        return np.array(mesh.vertices), np.array(mesh.faces, np.int32)


def cpu_seconds() -> float:
    """Return the processor time of this process and its children, which the load of the machine affects less."""
    return sum(os.times()[:4])


def evaluate(soup: Soup, repair: RepairFunction) -> tuple[str, float]:
    """Repair a mesh; return what is wrong with the result, or "", and the processor seconds."""
    start = cpu_seconds()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = repair((soup[0].copy(), soup[1].copy()))
    except Exception as error:  # a failure of any library counts as a wrong result
        return f"{type(error).__name__}: {error}"[:100], cpu_seconds() - start
    seconds = cpu_seconds() - start
    if len(result[1]) == 0:
        return "no faces left", seconds
    check = check_as_file(*result)
    if not check.valid:
        return str(tuple(check)), seconds
    deviation = distance(soup, result)
    return (f"{deviation:.2%} away" if deviation > MAX_DISTANCE_RATIO else ""), seconds


def large() -> None:
    """Print the repair times of meshes of a million faces: valid, and with holes, reversed and duplicate faces."""
    points, faces = ball(1024)
    rng = np.random.default_rng(0)
    damaged = faces[rng.random(len(faces)) > 0.002]
    damaged = np.where((rng.random(len(damaged)) < 0.001)[:, None], damaged[:, ::-1], damaged)
    for name, soup in (
        ("valid", (points, faces)),
        ("2 000 holes", (points, np.concatenate([damaged, damaged[:100]]))),
        ("the same, faces shuffled", (points, rng.permutation(np.concatenate([damaged, damaged[:100]])))),
    ):
        start = cpu_seconds()
        weld(points.astype(np.float32))
        welding = cpu_seconds() - start
        problem, seconds = evaluate(soup, repair_without_pymeshlab)
        print(
            f"{len(soup[1]):,} faces, {name}: {problem or 'correct'}, {seconds:.2f} s ({welding:.2f} s for welding),  "
            f"{len(soup[1]) / seconds:,.0f} faces/s"
        )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", action="store_true", help="also run the other libraries")
    parser.add_argument("--failures", action="store_true", help="list wrong results and the slowest repairs")
    parser.add_argument("--only", default="", help="only meshes whose names contain this text")
    arguments = parser.parse_args()
    functions: dict[str, RepairFunction] = {"meshhub, base": repair_without_pymeshlab}
    with contextlib.suppress(ImportError):
        import pymeshlab  # noqa: F401

        functions["meshhub + pymeshlab"] = repair_with_meshhub
        if arguments.peers:
            functions["pymeshlab recipe"] = repair_with_pymeshlab
    if arguments.peers:
        functions["trimesh"] = repair_with_trimesh
        if which("admesh"):
            functions["admesh"] = repair_with_admesh
    corpus = os.environ.get("MESHHUB_CORPUS", "")
    groups = {
        "real": [item for item in (real_meshes(Path(corpus)) if corpus else ()) if arguments.only in item[0]],
        "generated": [item for item in damaged_meshes() if arguments.only in item[0]],
    }
    faces = {group: sum(len(soup[1]) for _, soup in meshes) for group, meshes in groups.items()}
    print(
        "| library | "
        + " | ".join(f"{group}: {len(meshes)} meshes" for group, meshes in groups.items())
        + " | faces/s |"
    )
    print("|---|" + "---|" * (len(groups) + 1))
    for name, repair in functions.items():
        cells, total = [], 0.0
        for meshes in groups.values():
            results = [(label, *evaluate(soup, repair)) for label, soup in meshes]
            total += sum(result[2] for result in results)
            correct = sum(not result[1] for result in results)
            cells.append(f"{correct} ({correct / max(1, len(meshes)):.0%})")
            if arguments.failures:
                slow_s = sorted((result[2] for result in results), reverse=True)[2]
                for label, problem, seconds in results:
                    if problem or seconds > slow_s:
                        print(f"    {label}: {problem} ({seconds:.2f} s)")
        print(f"| {name} | " + " | ".join(cells) + f" | {sum(faces.values()) / max(total, 1e-9):,.0f} |", flush=True)
    if not arguments.only:
        large()


if __name__ == "__main__":
    main()
