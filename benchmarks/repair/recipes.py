"""Sets of files by recipe: damaged bodies, double shells, sheets, valid files, and real defects of a folder."""

from __future__ import annotations

import contextlib
import csv
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import manifold3d
import numpy as np
from benchmarks.repair import shapes
from benchmarks.repair.judge import Case
from benchmarks.repair.shapes import BODIES, Faces, Points, Soup, flip, merge, move, rotation

Random = np.random.Generator
Damage = Callable[[Soup, Random], Soup]


def _drop(soup: Soup, dropped: np.ndarray) -> Soup:
    return soup[0], soup[1][~dropped]


def missing_faces(soup: Soup, rng: Random) -> Soup:
    """Remove one face of 20."""
    return _drop(soup, rng.random(len(soup[1])) < 0.05)


def missing_cap(soup: Soup, rng: Random) -> Soup:
    """Remove the faces of a corner."""
    height = soup[0][soup[1]].mean(axis=1) @ rng.normal(size=3)
    return _drop(soup, height > np.quantile(height, 0.97))


def flipped_faces(soup: Soup, rng: Random) -> Soup:
    """Flip one face of four."""
    return soup[0], np.where((rng.random(len(soup[1])) < 0.25)[:, None], soup[1][:, ::-1], soup[1])


def inside_out(soup: Soup, _rng: Random) -> Soup:
    """Flip all faces."""
    return flip(soup)


def doubled_faces(soup: Soup, rng: Random) -> Soup:
    """Repeat some faces."""
    return soup[0], np.concatenate([soup[1], soup[1][rng.random(len(soup[1])) < 0.2]])


def both_sides(soup: Soup, _rng: Random) -> Soup:
    """Draw every face on both sides."""
    return merge(soup, flip(soup))


def cracks(soup: Soup, rng: Random) -> Soup:
    """Move the corners of each face by a few steps of float32."""
    corner = soup[0][soup[1]].reshape(-1, 3)
    size = float(np.linalg.norm(np.ptp(soup[0], axis=0)))
    return corner + rng.normal(0, 10 ** rng.uniform(-6.5, -5.3) * size, corner.shape), _separate(len(soup[1]))


def _separate(count: int) -> Faces:
    return np.arange(3 * count).reshape(-1, 3)


def t_junctions(soup: Soup, rng: Random) -> Soup:
    """Split faces at the middle of an edge that their neighbors keep whole."""
    points, faces = soup
    chosen = rng.random(len(faces)) < 0.05
    cut = faces[chosen]
    middle = len(points) + np.arange(len(cut))
    halves = [np.stack([cut[:, 0], middle, cut[:, 2]], 1), np.stack([middle, cut[:, 1], cut[:, 2]], 1)]
    return np.concatenate([points, points[cut[:, :2]].mean(axis=1)]), np.concatenate([faces[~chosen], *halves])


def fins(soup: Soup, rng: Random) -> Soup:
    """Attach single faces to edges."""
    points, faces = soup
    chosen = faces[rng.choice(len(faces), 5, replace=False)]
    tips = points[chosen].mean(axis=1) * 1.2
    number = len(points) + np.arange(5)
    return np.concatenate([points, tips]), np.concatenate([faces, np.stack([chosen[:, 0], chosen[:, 1], number], 1)])


def stray_shells(soup: Soup, rng: Random) -> Soup:
    """Add open shells of one to four faces, of any size, some far outside."""
    size = float(np.linalg.norm(np.ptp(soup[0], axis=0)))
    parts = [soup]
    for count in rng.integers(1, 5, rng.integers(1, 4)):
        ring = np.concatenate([[[0, 0, 0.3]], np.stack([np.cos(np.arange(5)), np.sin(np.arange(5)), np.zeros(5)], -1)])
        fan = ring @ rotation(rng) * size * 10 ** rng.uniform(-3, -0.7)
        away = rng.normal(size=3)
        place = soup[0].mean(axis=0) + away / np.linalg.norm(away) * size * 10 ** rng.uniform(-0.1, 0.8)
        faces = np.stack([np.zeros(count, np.int64), np.arange(count) + 1, np.arange(count) + 2], 1)
        parts.append((fan + place, faces))
    return merge(*parts)


def crumbs(soup: Soup, rng: Random) -> Soup:
    """Add floating tetrahedra of 0.2 to 1.5 % of the body."""
    size = float(np.linalg.norm(np.ptp(soup[0], axis=0)))
    corners = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / np.sqrt(12)
    parts = [soup]
    for _ in range(rng.integers(1, 5)):
        scale = size * 10 ** rng.uniform(-2.7, np.log10(0.015))
        away = rng.normal(size=3)
        place = soup[0].mean(axis=0) + away / np.linalg.norm(away) * size * rng.uniform(0.6, 1)
        parts.append((corners @ rotation(rng) * scale + place, np.array([[0, 1, 2], [0, 2, 3], [0, 3, 1], [1, 3, 2]])))
        parts[-1] = shapes.outward((parts[-1][0] - place, parts[-1][1]))[0] + place, parts[-1][1]
    return merge(*parts)


def degenerate_faces(soup: Soup, rng: Random) -> Soup:
    """Add faces without area."""
    points, faces = soup
    chosen = faces[rng.choice(len(faces), 9, replace=False)]
    return points, np.concatenate([faces, chosen[:, [0, 0, 1]]])


def clustered(soup: Soup, rng: Random) -> Soup:
    """Round the vertices to a coarse grid, as careless reductions do: pinches, pillows and fins remain."""
    points, faces = soup
    edge = np.linalg.norm(points[faces] - points[np.roll(faces, 1, axis=1)], axis=2)
    cell = float(np.median(edge)) * rng.uniform(0.9, 1.5)
    corner = np.round((points + rng.uniform(0, cell, 3)) / cell).astype(np.int64)
    _, index = np.unique(corner, axis=0, return_inverse=True)
    index = index.ravel()
    mean = np.stack([np.bincount(index, points[:, axis]) for axis in range(3)], 1) / np.bincount(index)[:, None]
    a, b, c = index[faces].T
    return mean, index[faces][(a != b) & (b != c) & (c != a)]


def collapsed(soup: Soup, rng: Random) -> Soup:
    """Merge a few distant pairs of neighbors' neighbors: edges on four faces, and pockets without volume."""
    points, faces = soup
    target = np.arange(len(points))
    for face in rng.choice(len(faces), max(3, len(faces) // 60), replace=False):
        near = np.unique(faces[np.isin(faces, faces[face]).any(axis=1)])
        far = near[~np.isin(near, faces[face])]
        if len(far):
            target[rng.choice(far)] = faces[face, 0]
    a, b, c = target[faces].T
    return points, target[faces][(a != b) & (b != c) & (c != a)]


def everything(soup: Soup, rng: Random) -> Soup:
    """Apply several kinds at once."""
    for damage in (missing_faces, doubled_faces, degenerate_faces, crumbs, stray_shells):
        soup = damage(soup, rng)
    return soup[0], np.where((rng.random(len(soup[1])) < 0.05)[:, None], soup[1][:, ::-1], soup[1])


DAMAGES: tuple[Damage, ...] = (
    missing_faces,
    missing_cap,
    flipped_faces,
    inside_out,
    doubled_faces,
    both_sides,
    cracks,
    t_junctions,
    fins,
    stray_shells,
    crumbs,
    degenerate_faces,
    clustered,
    collapsed,
    everything,
)
"""Damage of one body; `touching_bodies` is the sixteenth generator."""

SAME_SURFACE = (clustered, collapsed)
"""Damage that changes the surface: the truth is the damaged surface, not the body."""


def _seed(*words: object) -> Random:
    return np.random.default_rng(zlib.crc32(repr(words).encode()))


def _place(soup: Soup, matrix: np.ndarray, offset: np.ndarray) -> Soup:
    return (soup[0] @ matrix + offset), soup[1]


def make_damaged(seeds: int) -> Iterator[Case]:
    """Yield bodies with each kind of damage, at random sizes and places, and bodies that touch."""
    for damage in DAMAGES:
        for seed in range(seeds):
            for name in _choose_bodies(damage.__name__, seed):
                rng = _seed(damage.__name__, name, seed)
                body = BODIES[name]()
                broken = damage(body, rng)
                scale = 10 ** rng.uniform(0.5, 2)
                matrix, offset = rotation(rng) * scale, rng.uniform(-2, 2, 3) * scale
                truth = broken if damage in SAME_SURFACE else body
                yield Case(
                    f"{damage.__name__}: {name} {seed}",
                    "damaged",
                    (_place(broken, matrix, offset),),
                    truth=_place(truth, matrix, offset),
                    bodies=2 if name == "hollow" else 1,
                    volume=damage not in SAME_SURFACE,
                )
    yield from make_touching(seeds)
    yield from make_lidless(seeds)
    yield from make_open_boxes(seeds)
    yield from make_neighbors(seeds)


def _choose_bodies(word: str, seed: int) -> list[str]:
    """Return two bodies of the eight for each kind and seed, all of them in four seeds."""
    # a plate that a coarse grid flattens has no right form
    names = [name for name in BODIES if word != "clustered" or name not in ("bracket", "gear")]
    start = zlib.crc32(word.encode()) % len(names)
    return [names[(start + 2 * seed + step) % len(names)] for step in range(2)]


def make_touching(seeds: int) -> Iterator[Case]:
    """Yield two boxes or tetrahedra that share an edge or a corner, in one part and in two."""
    tetrahedron = shapes.outward(
        (
            np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]),
            np.array([[0, 1, 2], [0, 2, 3], [0, 3, 1], [1, 3, 2]]),
        )
    )
    for kind, body in (("boxes", shapes.box(2, (1, 1, 1))), ("tetrahedra", tetrahedron)):
        for contact in ("edge", "corner", "wall"):
            for seed in range(seeds):
                rng = _seed(kind, contact, seed)
                other = _touch(body, kind, contact)
                scale = 10 ** rng.uniform(-0.5, 2.5)
                matrix = (rotation(rng) if seed % 2 else np.eye(3)) * scale
                offset = rng.uniform(-5, 5, 3) * scale * (seed % 3 > 0)
                pair = tuple(_place(each, matrix, offset) for each in (body, other))
                # both bodies must have the bits of one position where they touch
                for across in (False, True):
                    yield Case(
                        f"touching {kind}: {contact}{', two parts' if across else ''} {seed}",
                        "damaged",
                        pair if across else (merge(*pair),),
                        truth=merge(*pair),
                        bodies=2,
                    )


def _touch(body: Soup, kind: str, contact: str) -> Soup:
    if kind == "boxes":
        return move(body, {"edge": (1, 1, 0), "corner": (1, 1, 1), "wall": (1, 0, 0)}[contact])
    if contact == "corner":
        return flip((-body[0] + 0.0, body[1]))
    mirror = {"edge": np.diag([-1.0, -1, 1]), "wall": np.diag([-1.0, 1, 1])}[contact]
    mirrored = body[0] @ mirror + 0.0, body[1]
    return mirrored if contact == "edge" else flip(mirrored)


def make_sheets(seeds: int) -> Iterator[Case]:
    """Yield surfaces that are open on purpose."""
    for seed in range(seeds):
        for rim in ("free", "flat"):
            for height in (0.08, 0.16, 0.24):
                rng = _seed("terrain", rim, height, seed)
                yield _sheet(f"terrain, {rim} rim, {height} high {seed}", shapes.terrain(rng, height, rim), rng)
        rng = _seed("label", seed)
        yield _sheet(f"label {seed}", shapes.curved_label(rng.uniform(0.3, 2)), rng)
        flag = shapes.terrain(rng, 0.01, "free", 6)
        yield _sheet(f"flag {seed}", flag, rng)
        broken = shapes.terrain(rng, 0.12, "free")
        yield _sheet(f"terrain with holes {seed}", _drop(broken, rng.random(len(broken[1])) < 0.01), rng)


def _sheet(name: str, soup: Soup, rng: Random) -> Case:
    scale = 10 ** rng.uniform(0.5, 2.5)
    return Case(name, "sheets", (_place(soup, rotation(rng) * scale, rng.uniform(-2, 2, 3) * scale),), "sheet")


def make_neighbors(seeds: int) -> Iterator[Case]:
    """Yield two boxes with holes, beside each other with a gap or a common wall: they must not become one."""
    for seed in range(seeds):
        for gap in (0.0, 1e-5, 1e-3, 0.03):
            rng = _seed("neighbors", gap, seed)
            pair = shapes.box(), move(shapes.box(), (2 + gap, 0, 0))
            broken = merge(*(missing_faces(each, rng) for each in pair))
            matrix, offset = rotation(rng) * 10 ** rng.uniform(0.5, 2), rng.uniform(-50, 50, 3)
            yield Case(f"neighbors with holes, gap {gap} {seed}", "damaged", (_place(broken, matrix, offset),),
                       truth=_place(merge(*pair), matrix, offset), bodies=2)  # fmt: skip


def make_lidless(seeds: int) -> Iterator[Case]:
    """Yield bodies without their flat base, which are height fields too, but solids."""
    for seed in range(seeds):
        for name, soup in (("dome", shapes.ball(32)), ("egg", _stretch(shapes.ball(32))), ("bust", shapes.blob(40, 5))):
            rng = _seed("lidless", name, seed)
            cut = float(np.quantile(soup[0][:, 2], 0.3 if name == "bust" else 0.5)) if name != "dome" else 0.3
            solid = manifold3d.Manifold(manifold3d.Mesh64(soup[0].copy(), soup[1].astype(np.uint64)))
            whole = shapes.of_manifold(solid.trim_by_plane((0, 0, 1), cut))
            height = whole[0][whole[1]][..., 2]
            broken = _drop(whole, (height < cut + 1e-6).all(axis=1))
            matrix, offset = rotation(rng) * 10 ** rng.uniform(0.5, 2), rng.uniform(-50, 50, 3)
            yield Case(f"{name} without base {seed}", "damaged", (_place(broken, matrix, offset),),
                       truth=_place(whole, matrix, offset), bodies=1)  # fmt: skip


def make_open_boxes(seeds: int) -> Iterator[Case]:
    """Yield boxes without some of their sides: trays, frames, and trays without a wall."""
    missing = {"top": [(2, 1)], "wall": [(0, 1)], "top and wall": [(2, 1), (0, 1)], "top and base": [(2, 1), (2, -1)]}
    for seed in range(seeds):
        for height in (0.02, 0.1, 0.6):
            whole = shapes.box(4, (2, 3, height))
            for name, sides in missing.items():
                rng = _seed("open box", name, height, seed)
                end = whole[0][whole[1]]
                kept = ~np.any(
                    [(end[..., axis] * side > whole[0][:, axis].max() - 1e-9).all(axis=1) for axis, side in sides],
                    axis=0,
                )
                matrix, offset = rotation(rng) * 10 ** rng.uniform(0.5, 2), rng.uniform(-50, 50, 3)
                yield Case(f"box of height {height} without {name} {seed}", "damaged",
                           (_place((whole[0], whole[1][kept]), matrix, offset),),
                           truth=_place(whole, matrix, offset), bodies=1)  # fmt: skip


def _stretch(soup: Soup) -> Soup:
    return soup[0] * [1, 1, 1.4], soup[1]


def make_valid(seeds: int) -> Iterator[Case]:
    """Yield valid files, with odd but deliberate ones."""
    tiny = move(shapes.ball(8, 0.02), (1.5, 0, 0))
    odd: dict[str, Soup] = {
        "tetrahedron": (np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]),
                        np.array([[0, 2, 1], [0, 3, 2], [0, 1, 3], [1, 2, 3]])),
        "two tetrahedra": merge(shapes.ball(4), move(shapes.ball(4, 0.2), (3, 0, 0))),
        "thin plate": shapes.box(4, (2, 2, 0.004)),
        "needle": shapes.box(4, (0.01, 0.01, 2)),
        "tiny ball beside": merge(shapes.ball(), tiny),
        "many balls": merge(*(move(shapes.ball(8, 0.3), (x, y, 0)) for x in range(5) for y in range(5))),
        "body in a cavity": merge(shapes.hollow(), shapes.ball(12, 0.2)),
        "overlapping": merge(shapes.ball(), move(shapes.ball(), (0.7, 0.2, 0.1))),
    }  # fmt: skip
    for seed in range(seeds):
        for name, soup in [*((name, make()) for name, make in BODIES.items()), *odd.items()]:
            rng = _seed("valid", name, seed)
            scale = 10 ** rng.uniform(0, 2)
            placed = _place(soup, rotation(rng) * scale, rng.uniform(-2, 2, 3) * scale)
            yield Case(f"{name} {seed}", "valid", (placed,), "valid")


def make_double_shells(count: int = 20) -> Iterator[Case]:
    """Yield bodies with a second wall 0.2 to 1 mm below the surface of 80 mm, joined to it by pin-holes."""
    makers = [shapes.ball, lambda: shapes.tube(0.9, 32, 64, 1), lambda: shapes.blob(48), lambda: shapes.blob(56, 3)]
    for number in range(count):
        rng = _seed("double shell", number)
        points, faces = makers[number % 4]()
        points = points * (80 / np.ptp(points, axis=0).max())
        wall = rng.uniform(0.2, 1)
        outer = points, faces
        inner = points - wall * _normals(points, faces), faces[:, ::-1]
        broken = _join_by_pin_holes(outer, inner, int(rng.integers(3, 12)), rng)
        matrix, offset = rotation(rng), rng.uniform(-50, 50, 3)
        yield Case(
            f"double shell {number}, wall {wall:.2f} mm",
            "double shells",
            (_place(broken, matrix, offset),),
            truth=_place(outer, matrix, offset),
            bodies=1,
        )


def _normals(points: Points, faces: Faces) -> Points:
    normal = np.cross(points[faces[:, 1]] - points[faces[:, 0]], points[faces[:, 2]] - points[faces[:, 0]])
    total = np.zeros_like(points)
    for corner in range(3):
        np.add.at(total, faces[:, corner], normal)
    return total / np.linalg.norm(total, axis=1, keepdims=True)


def _join_by_pin_holes(outer: Soup, inner: Soup, holes: int, rng: Random) -> Soup:
    """Replace faces of both walls by narrow shafts between them."""
    points, faces = outer
    count = len(points)
    shafts = rng.choice(len(faces), holes, replace=False)
    rims, new_points, added = [], [points, inner[0]], []
    total = 2 * count
    for face in shafts.tolist():
        a, b, c = faces[face]
        rim = []
        for wall in (points, inner[0]):
            corner = wall[[a, b, c]]
            center = corner.mean(axis=0)
            width = np.linalg.norm(corner - center, axis=1).mean()
            new_points.append(center + (corner - center) * min(1.0, 0.3 / width))
            rim.append(total + np.arange(3))
            total += 3
        rims.append(rim)
        for wall, ring, turn in ((0, rim[0], 1), (count, rim[1], -1)):
            ends = np.array([a, b, c]) + wall
            after, next_ring = np.roll(ends, -1), np.roll(ring, -1)
            added += [np.stack([ends, after, next_ring], 1)[:, ::turn], np.stack([ends, next_ring, ring], 1)[:, ::turn]]
        top, bottom = rim
        after, below = np.roll(top, -1), np.roll(bottom, -1)
        added += [np.stack([top, after, below], 1), np.stack([top, below, bottom], 1)]
    kept = np.ones(len(faces), np.bool_)
    kept[shafts] = False
    return np.concatenate(new_points), np.concatenate([faces[kept], inner[1][kept] + count, *added])


DEFECTS = frozenset(
    "boundary_edges nonmanifold_edges inconsistent_winding_edges inside_out duplicate_faces stray_fragments "
    "degenerate_faces".split()
)
FORMATS = frozenset((".stl", ".obj", ".ply", ".glb", ".gltf", ".gltf_packed", ".3mf"))
SHEET_TAGS = frozenset(("flat", "no_faces", "point_cloud"))
SHEETS_BY_EYE = (
    "issue_3269_texcoord_crash",  # five quads
    "regr_3429812",  # a quad drawn twice
    "octagon_preserved",  # an octagon
    "moebius",  # a strip
    "cornellbox_suzanne",  # the walls of a room, each a quad
    "issue-319-002",  # scraps of two roofs
)
"""Names of sheets that the index does not tag."""
MAX_REAL_FACES = 60_000
"""Faces; larger files only take time."""


def read_real(folder: Path) -> Iterator[Case]:
    """Yield the defective files of a folder with an INDEX.csv, all parts merged, without sheets."""
    import trimesh

    with (folder / "INDEX.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        tags, name = set(row["feature_tags"].split()), row["file"]
        if not tags & DEFECTS or tags & SHEET_TAGS or Path(name).suffix.lower() not in FORMATS:
            continue
        if any(word in name for word in SHEETS_BY_EYE) or not 4 <= int(row["n_faces"] or 0) <= MAX_REAL_FACES:
            continue
        with warnings.catch_warnings(), contextlib.suppress(Exception):
            warnings.simplefilter("ignore")
            kind = Path(name).suffix.lower()[1:].removesuffix("_packed")
            loaded = trimesh.load(folder / name, file_type=kind, force="mesh", process=False)
            points, faces = np.array(loaded.vertices, np.float64), np.array(loaded.faces, np.int64)
            if np.isfinite(points).all() and len(faces):
                truth = _without_specks(points, faces)
                yield Case(name, "real", ((points, faces),), truth=truth, volume=False)


def _without_specks(points: Points, faces: Faces) -> Soup:
    """Return a mesh without tiny single faces, which a repair must remove."""
    corner = points[faces]
    size = np.linalg.norm(np.ptp(corner, axis=1), axis=1)
    _, index = np.unique(points, axis=0, return_inverse=True)
    uses = np.bincount(index.ravel()[faces].ravel())
    alone = (uses[index.ravel()[faces]] == 1).all(axis=1)
    return points, faces[~(alone & (size < 0.01 * np.linalg.norm(np.ptp(points, axis=0))))]
