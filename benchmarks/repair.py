"""How often, and how fast, defective meshes come out right: meshhub's repair beside its peers.

    MESHHUB_CORPUS=… python benchmarks/repair.py [--peers] [--failures]

Right is judged on what an STL file would hold: closed, every edge on two faces, wound consistently, volume
above zero after rounding to float32 and welding, and the input no further from the result than
0.5 % of the input's diagonal (root mean square). Sheets are left out: there is no right way to close them.
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
Way = Callable[[Soup], Soup]

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
NEAR = 0.005


def real_meshes(corpus: Path) -> Iterator[tuple[str, Soup]]:
    """The defective files of the corpus, all parts as one, without sheets and what cannot be read."""
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


def sound_meshes() -> list[tuple[str, Soup]]:
    """Bodies to damage: round, with edges, with a handle, with a cavity."""
    return [
        ("ball", ball(24)),
        ("box", box()),
        ("ring", ring()),
        ("hollow", together(ball(24), inside_out(ball(24, 0.5)))),
    ]


def ball(segments: int, radius: float = 1.0) -> Soup:
    """A closed grid of `segments` meridians."""
    theta = np.linspace(0, np.pi, segments // 2 + 1)
    phi = np.linspace(0, 2 * np.pi, segments + 1)
    t, p = np.meshgrid(theta, phi, indexing="ij")
    grid = np.stack([np.sin(t) * np.cos(p), np.sin(t) * np.sin(p), np.cos(t)], axis=-1) * radius
    return _welded(grid)


def ring(segments: int = 32) -> Soup:
    """A torus."""
    a = np.linspace(0, 2 * np.pi, segments + 1)
    u, v = np.meshgrid(a, a, indexing="ij")
    grid = np.stack([(2 + np.cos(v)) * np.cos(u), (2 + np.cos(v)) * np.sin(u), np.sin(v)], axis=-1)
    return inside_out(_welded(grid))


def box(cuts: int = 8) -> Soup:
    """A cube with a grid on every side."""
    line = np.linspace(-1, 1, cuts + 1)
    u, v = np.meshgrid(line, line, indexing="ij")
    sides = []
    for axis in range(3):
        for side in (-1, 1):
            grid = np.stack(np.roll([np.full_like(u, side), u, v], axis, axis=0), axis=-1)
            sides.append(_grid(grid if side > 0 else grid.transpose(1, 0, 2)))
    points, faces = together(*sides)
    return _tidy(points, faces)


def _grid(grid: Float64) -> Soup:
    name = np.arange(grid.shape[0] * grid.shape[1]).reshape(grid.shape[:2])
    a, b, c, d = name[:-1, :-1].ravel(), name[1:, :-1].ravel(), name[1:, 1:].ravel(), name[:-1, 1:].ravel()
    return grid.reshape(-1, 3), np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)]).astype(np.int32)


def _welded(grid: Float64) -> Soup:
    return _tidy(*_grid(grid))


def _tidy(points: Float64, faces: Int32) -> Soup:
    first, index = weld(np.round(points, 9))
    faces = index[faces]
    return points[first], topology.remove_degenerate_faces(faces)


def inside_out(soup: Soup) -> Soup:
    """The same, turned."""
    return soup[0], soup[1][:, ::-1]


def moved(soup: Soup, *by: float) -> Soup:
    """The same, elsewhere."""
    return soup[0] + np.array(by), soup[1]


def together(*soups: Soup) -> Soup:
    """Several as one."""
    offsets = np.cumsum([0] + [len(points) for points, _ in soups[:-1]])
    return np.concatenate([points for points, _ in soups]), np.concatenate(
        [faces + offset for (_, faces), offset in zip(soups, offsets, strict=True)]
    ).astype(np.int32)


def made_meshes() -> Iterator[tuple[str, Soup]]:
    """Sound bodies, each damaged in each way."""
    for name, (points, faces) in sound_meshes():
        chance = np.random.default_rng(len(faces))
        count = len(faces)
        some = chance.random(count) < 0.05
        middle = points[faces].mean(axis=1)
        corner = points[faces].reshape(-1, 3)
        apart = np.arange(3 * count, dtype=np.int32).reshape(-1, 3)
        size = float(np.linalg.norm(np.ptp(points, axis=0)))
        yield f"{name}: faces deleted", (points, faces[~some])
        yield f"{name}: a cap deleted", (points, faces[middle[:, 2] < 0.6 * points[:, 2].max()])
        yield (
            f"{name}: a corner deleted",
            (points, faces[middle @ [0.7, 0.5, 0.4] < 0.7 * (points @ [0.7, 0.5, 0.4]).max()]),
        )
        yield f"{name}: faces flipped", (points, np.where(some[:, None], faces[:, ::-1], faces))
        yield f"{name}: inside out", inside_out((points, faces))
        yield f"{name}: faces doubled", (points, np.concatenate([faces, faces[some]]))
        yield f"{name}: drawn on both sides", (points, np.concatenate([faces, faces[:, ::-1]]))
        yield f"{name}: corners jittered", (corner + chance.normal(0, 3e-7 * size, corner.shape), apart)
        yield f"{name}: corners jittered more", (corner + chance.normal(0, 5e-6 * size, corner.shape), apart)
        yield f"{name}: T-junctions", t_junctions(points, faces, some)
        yield (
            f"{name}: a flap",
            together((points, faces), (points[faces[:1]][0] * [[1], [1], [1.4]], np.array([[0, 1, 2]]))),
        )
        yield (
            f"{name}: a fin",
            (
                np.concatenate([points, points[faces[0]].mean(axis=0)[None] * 1.3]),
                np.concatenate([faces, [[faces[0, 0], faces[0, 1], len(points)]]]).astype(np.int32),
            ),
        )
        yield f"{name}: overlapping twin", together((points, faces), moved((points, faces), 0.3, 0.4, 0.5))
        yield (
            f"{name}: twin at a point",
            together((points, faces), moved((points, faces), *np.ptp(points, axis=0) * [0, 0, 1])),
        )
        yield f"{name}: fragments", together((points, faces), *specks(chance, points))
        yield f"{name}: degenerate faces", (points, np.concatenate([faces, faces[:9][:, [0, 0, 1]]]))
        yield (
            f"{name}: random windings",
            (points, np.where((chance.random(count) < 0.5)[:, None], faces[:, ::-1], faces)),
        )
        yield (
            f"{name}: everything",
            together(
                (points, np.where((~some & (chance.random(count) < 0.05))[:, None], faces[:, ::-1], faces)[~some]),
                *specks(chance, points),
                (points, faces[chance.random(count) < 0.02]),
            ),
        )
    yield "boxes sharing an edge", together(box(1), moved(box(1), 2, 2, 0))
    yield "boxes sharing a wall", together(box(2), moved(box(2), 2, 0, 0))
    yield "boxes sharing half a wall", together(box(2), moved(box(2), 2, 1, 0))
    yield "box without two sides", (box(3)[0], box(3)[1][np.abs(box(3)[0][box(3)[1]].mean(axis=1)[:, 2]) < 0.99])
    yield "tube without ends", tube()
    yield "many holes", (ball(64)[0], ball(64)[1][(np.arange(len(ball(64)[1])) % 7) > 0])
    yield (
        "wall inside",
        together(
            box(4), _grid(np.stack([*np.meshgrid(np.linspace(-1, 1, 5), np.linspace(-1, 1, 5)), np.zeros((5, 5))], -1))
        ),
    )


def tube() -> Soup:
    """Two cylinders, one inside the other and turned: both ends are rings that are missing."""
    a, z = np.linspace(0, 2 * np.pi, 41), np.array([0.0, 3.0])
    outer = _grid(np.stack([np.cos(a)[:, None] + 0 * z, np.sin(a)[:, None] + 0 * z, 0 * a[:, None] + z], -1))
    inner = _grid(
        np.stack([0.6 * np.cos(a)[:, None] + 0 * z, 0.6 * np.sin(a)[:, None] + 0 * z, 0 * a[:, None] + z], -1)
    )
    return together(_tidy(*outer), inside_out(_tidy(*inner)))


def t_junctions(points: Float64, faces: Int32, some: np.ndarray) -> Soup:
    """Some faces cut in two at the middle of an edge that their neighbours keep whole."""
    cut = faces[some]
    middle = (points[cut[:, 0]] + points[cut[:, 1]]) / 2
    name = len(points) + np.arange(len(cut), dtype=np.int32)
    halves = [np.stack([cut[:, 0], name, cut[:, 2]], 1), np.stack([name, cut[:, 1], cut[:, 2]], 1)]
    return np.concatenate([points, middle]), np.concatenate([faces[~some], *halves])


def specks(chance: np.random.Generator, points: Float64) -> list[Soup]:
    """Single tiny faces around a body."""
    size = float(np.ptp(points, axis=0).max())
    return [
        (points.mean(axis=0) + chance.normal(0, size, 3) + chance.normal(0, size * 1e-4, (3, 3)), np.array([[0, 1, 2]]))
        for _ in range(5)
    ]


def distance(soup: Soup, made: Soup) -> float:
    """The root mean square distance of the input from the result, as a share of the input's diagonal.

    From samples of the result: at most 0.2 % too large.
    """
    points, faces = _without_specks(soup)
    used = points[np.unique(faces)]
    diagonal = float(np.linalg.norm(np.ptp(used, axis=0))) or 1.0
    chance = np.random.default_rng(0)
    asked = np.concatenate([used, points[faces].mean(axis=1)])
    asked = asked[chance.permutation(len(asked))[:3000]]
    near, _ = cKDTree(sampled(made, chance)).query(asked)
    return float(np.sqrt((near**2).mean())) / diagonal


def _without_specks(soup: Soup) -> Soup:
    """The input without lone faces of next to no size, which a repair is to remove."""
    points, faces = soup
    corner = points[faces]
    size = np.linalg.norm(corner.max(axis=1) - corner.min(axis=1), axis=1)
    uses = np.bincount(weld(points)[1][faces.ravel()], minlength=len(points))
    lone = (uses[weld(points)[1][faces]] == 1).all(axis=1) & (size < 0.01 * np.linalg.norm(np.ptp(points, axis=0)))
    return points, faces[~lone]


def sampled(soup: Soup, chance: np.random.Generator, count: int = 400_000) -> Float64:
    """Points on a surface, by area, and its vertices."""
    corner = soup[0][soup[1]]
    area = np.linalg.norm(np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]), axis=1)
    at = np.searchsorted(np.cumsum(area) / max(float(area.sum()), 1e-300), chance.random(count)).clip(max=len(area) - 1)
    r, s = np.sqrt(chance.random((count, 1))), chance.random((count, 1))
    inside = (1 - r) * corner[at, 0] + r * (1 - s) * corner[at, 1] + r * s * corner[at, 2]
    return np.concatenate([inside, soup[0][np.unique(soup[1])]])


def own_recipe(soup: Soup) -> Soup:
    """meshhub without pymeshlab."""
    second_stage, meshlab.repair_with_meshlab = meshlab.repair_with_meshlab, lambda *_: None
    try:
        return own_and_meshlab(soup)
    finally:
        meshlab.repair_with_meshlab = second_stage


def own_and_meshlab(soup: Soup) -> Soup:
    """meshhub."""
    mesh = Mesh(*soup)
    made = operation.repair_mesh(mesh, float(np.abs(soup[0]).max()), Counter(), "it").mesh
    return made.vertices, made.faces


def meshlab_recipe(soup: Soup) -> Soup:
    """pymeshlab alone."""
    first, index = weld(soup[0].astype(np.float32))
    made = meshlab._apply_filters(soup[0][first], topology.remove_degenerate_faces(index[soup[1]]))
    return soup if made is None else made


def trimesh_recipe(soup: Soup) -> Soup:
    """trimesh's own repair functions."""
    import trimesh

    mesh = trimesh.Trimesh(*soup, process=True)
    mesh.update_faces(mesh.unique_faces())
    mesh.update_faces(mesh.nondegenerate_faces())
    trimesh.repair.fill_holes(mesh)
    trimesh.repair.fix_normals(mesh, multibody=True)
    return np.array(mesh.vertices), np.array(mesh.faces, np.int32)


def admesh_recipe(soup: Soup) -> Soup:
    """admesh with its default repairs, through STL files; its time includes them."""
    import trimesh

    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder) / "in.stl", Path(folder) / "out.stl"
        trimesh.Trimesh(*soup, process=False).export(before)
        subprocess.run(["admesh", f"--write-binary-stl={after}", before], capture_output=True, timeout=120, check=False)
        made = trimesh.load(after, process=False)
        return np.array(made.vertices), np.array(made.faces, np.int32)


def cpu_seconds() -> float:
    """The processor time of this process and its children, so that a busy machine does not matter."""
    return sum(os.times()[:4])


def judged(soup: Soup, way: Way) -> tuple[str, float]:
    """What is wrong with the result, or "", and the seconds it took."""
    begun = cpu_seconds()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = way((soup[0].copy(), soup[1].copy()))
    except Exception as error:  # a peer that fails is a result, and so is our own failure
        return f"{type(error).__name__}: {error}"[:100], cpu_seconds() - begun
    seconds = cpu_seconds() - begun
    if len(made[1]) == 0:
        return "nothing left", seconds
    found = check_as_file(*made)
    if not found.valid:
        return str(tuple(found)), seconds
    off = distance(soup, made)
    return (f"{off:.2%} away" if off > NEAR else ""), seconds


def large() -> None:
    """Print how long meshes of a million faces take: a sound one, and one with holes, turned and doubled faces."""
    points, faces = ball(1024)
    chance = np.random.default_rng(0)
    holed = faces[chance.random(len(faces)) > 0.002]
    holed = np.where((chance.random(len(holed)) < 0.001)[:, None], holed[:, ::-1], holed)
    for name, soup in (
        ("sound", (points, faces)),
        ("2 000 holes", (points, np.concatenate([holed, holed[:100]]))),
        ("the same, faces in disorder", (points, chance.permutation(np.concatenate([holed, holed[:100]])))),
    ):
        begun = cpu_seconds()
        weld(points.astype(np.float32))
        welding = cpu_seconds() - begun
        problem, seconds = judged(soup, own_recipe)
        print(
            f"{len(soup[1]):,} faces, {name}: {problem or 'right'}, {seconds:.2f} s ({welding:.2f} s of it welding), "
            f"{len(soup[1]) / seconds:,.0f} faces/s"
        )


def main() -> None:
    """Print the table."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--peers", action="store_true", help="run the peers too")
    asked.add_argument("--failures", action="store_true", help="list what did not come out right")
    asked.add_argument("--only", default="", help="names that contain this")
    given = asked.parse_args()
    ways: dict[str, Way] = {"meshhub, base": own_recipe}
    with contextlib.suppress(ImportError):
        import pymeshlab  # noqa: F401

        ways["meshhub + pymeshlab"] = own_and_meshlab
        if given.peers:
            ways["pymeshlab recipe"] = meshlab_recipe
    if given.peers:
        ways["trimesh"] = trimesh_recipe
        if which("admesh"):
            ways["admesh"] = admesh_recipe
    corpus = os.environ.get("MESHHUB_CORPUS", "")
    lots = {
        "real": [each for each in (real_meshes(Path(corpus)) if corpus else ()) if given.only in each[0]],
        "made": [each for each in made_meshes() if given.only in each[0]],
    }
    faces = {lot: sum(len(soup[1]) for _, soup in meshes) for lot, meshes in lots.items()}
    print("| way | " + " | ".join(f"{lot}: {len(meshes)} meshes" for lot, meshes in lots.items()) + " | faces/s |")
    print("|---|" + "---|" * (len(lots) + 1))
    for name, way in ways.items():
        cells, total = [], 0.0
        for meshes in lots.values():
            wrong = [(label, *judged(soup, way)) for label, soup in meshes]
            total += sum(each[2] for each in wrong)
            right = sum(not each[1] for each in wrong)
            cells.append(f"{right} ({right / max(1, len(meshes)):.0%})")
            if given.failures:
                slow = sorted((each[2] for each in wrong), reverse=True)[2]
                for label, problem, seconds in wrong:
                    if problem or seconds > slow:
                        print(f"    {label}: {problem} ({seconds:.2f} s)")
        print(f"| {name} | " + " | ".join(cells) + f" | {sum(faces.values()) / max(total, 1e-9):,.0f} |", flush=True)
    if not given.only:
        large()


if __name__ == "__main__":
    main()
