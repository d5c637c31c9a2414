"""Reduction of colors: color error, share of the area on its own filament, small regions, borders, and seconds.

    python benchmarks/colors.py [--colors 4 16] [--borders exact] [--dither blue-noise] [--paint | --corpus]
    python benchmarks/colors.py --edges [--paint]
    python benchmarks/colors.py --speed

The generated models are wavy plates whose color is a function of x and y, so the color of each point of the result is
known without a search. The ideal is the nearest entry of a palette for every point: "ideal ΔE" is that of the best of
several k-means palettes in OKLab, "own" is the share of the area that has the nearest entry of the written palette.
"small" is the share of the small distinct regions of the model (3 mm² to 1 % of the surface, ΔE over 15 from most of
the surface around them) whose color is kept. "seen" compares the light of the surroundings of each point, which the
eye mixes. "plain" is the palette of one k-means in sRGB, with every point on its nearest color; "dithered" is the same
palette in dithered cells, as ditherforge does it (`color_peers.py`). `--csv` appends the means to a file.
`--edges` measures how far borders lie from those of the drawing, in both directions. `--paint` measures the paint of
the project for BambuStudio, and counts its leaves instead of triangles. `--corpus` adds the textured files of
MESHHUB_CORPUS, scaled to 80 mm; their points are compared with the nearest samples of the source.
`--speed` converts a GLB of 100 000 triangles with a texture of 4096 × 4096 pixels, in a process of its own. Its
CPU time is compared with that of trimesh and Pillow, which only quantize the texture and sample it at the vertices.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image as Picture
from PIL import ImageDraw, ImageFilter
from scipy.cluster.vq import kmeans2
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from color_peers import choose_nearest, dither_cells, find_plain_palette, measure_seen
from meshhub import MeshhubError, Registry
from meshhub.builtin_plugins.reduce_colors import ReduceColorsOptions
from meshhub.builtin_plugins.reduce_colors.operation import run as reduce_colors
from meshhub.builtin_plugins.threemf import ThreeMFReadOptions, ThreeMFWriteOptions
from meshhub.builtin_plugins.threemf.paint_trees import parse_codes
from meshhub.builtin_plugins.threemf.reader import read as read_threemf
from meshhub.builtin_plugins.threemf.writer import write as write_threemf
from meshhub.model.scene import Float64, Image, Material, Mesh, Part, Scene, UInt8
from meshhub.model.source import Source, Target
from meshhub.toolkit.colors import (
    convert_from_oklab,
    convert_to_lab,
    convert_to_oklab,
    decode_srgb,
    encode_srgb,
    measure_delta_e,
)
from meshhub.toolkit.geometry import face_normals, soup, unit_vectors, weld
from meshhub.toolkit.surface_colors import Surface, SurfaceColors, get_face_materials
from meshhub.toolkit.topology import edges, is_closed

SIZE_MM = 80.0
"""Millimeters; side of the plates."""

POINT_COUNT = 50_000
"""Points that are compared; the figures vary by less than 0.3 %."""

SOURCE_POINT_COUNT = 1_500_000
"""Samples of a real model in which the nearest one is searched."""

MIN_REGION_MM2 = 3.0
"""Square millimeters from which a small region is visible on a print."""

MAX_REGION_RATIO = 0.01
"""Share of the surface up to which a region is small."""

DISTINCT_DELTA_E = 15.0
"""Color difference from which colors are different for every observer."""


class Errors(NamedTuple):
    """Color differences, and the share of small distinct regions that are kept; NaN if there are none."""

    mean: float
    p95: float
    p999: float
    small: float
    seen: float


NO_ERRORS = Errors(*[float("nan")] * 5)
"""Figures of a method that was not tried."""


class Figures(NamedTuple):
    """Figures of one model; `plain` are the errors of one k-means in sRGB, `dithered` those of its dithered cells."""

    triangles: int
    errors: Errors
    plain: Errors
    dithered: Errors
    ideal: float
    own: float
    seconds: float


Colorist = Callable[[Float64], UInt8]
"""Color (k, 3) of the points (k, 2) of a plate, each coordinate 0 to 1."""


@dataclass(frozen=True, eq=False)
class Case:
    """Generated model, and its colors."""

    name: str
    scene: Scene
    colorist: Colorist


def make_plate(cells: int, scale: float = 1.0, offset: float = 0.0, *, mirror: bool = False) -> Mesh:
    """Return a closed wavy plate with (cells² + 4) · 4 triangles at most; u and v are linear in x and y."""
    steps = np.linspace(0, 1, cells + 1)
    x, y = (side.ravel() for side in np.meshgrid(steps, steps))
    waves = 0.05 * np.sin(9 * x) * np.cos(7 * y) if cells > 1 else np.zeros(len(x))
    top = np.stack([x, y, 0.15 + waves], axis=1)
    bottom = np.stack([x, y, 0 * x], axis=1)
    row = np.arange(cells)
    a = (row[:, None] * (cells + 1) + row).ravel()
    b, c, d = a + 1, a + cells + 2, a + cells + 1
    faces = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    count = len(x)
    low, high = row, row + 1
    last = cells * (cells + 1)
    rims = [(low, high), (high + last, low + last), (high * (cells + 1), low * (cells + 1))]
    rims.append((low * (cells + 1) + cells, high * (cells + 1) + cells))
    walls = [np.stack([m + count, n + count, n], axis=1) for m, n in rims]
    walls += [np.stack([m + count, n, m], axis=1) for m, n in rims]
    vertices = np.concatenate([top, bottom])
    # the walls stay a little inside of the texture: its opposite edges blend at 0 and 1
    uv = (0.01 + 0.98 * vertices[:, :2]) * (scale * np.array([-1 if mirror else 1, 1])) + offset
    return Mesh(vertices * SIZE_MM, np.concatenate([faces, faces[:, ::-1] + count, *walls]), uv=uv)


def encode(pixels: UInt8) -> Image:
    """Return an image as PNG."""
    data = io.BytesIO()
    Picture.fromarray(pixels).save(data, "PNG")
    return Image(data.getvalue(), "image/png")


def draw_checker() -> UInt8:
    squares = (np.indices((512, 512)) // 64).sum(axis=0) % 2
    return np.where(squares[..., None], np.uint8(255), np.array([190, 20, 40], np.uint8))


def draw_flag() -> UInt8:
    picture = Picture.new("RGB", (600, 400), (0, 82, 180))
    draw = ImageDraw.Draw(picture)
    draw.polygon([(0, 0), (0, 400), (260, 200)], fill=(255, 255, 255))
    draw.rectangle([260, 200, 600, 400], fill=(216, 0, 39))
    draw.ellipse([340, 60, 460, 180], fill=(255, 218, 68))
    return np.asarray(picture)


def draw_text() -> UInt8:
    picture = Picture.new("RGB", (256, 256), (255, 255, 255))
    draw = ImageDraw.Draw(picture)
    for line in range(6):
        draw.text((10, 8 + 40 * line), "Filament 0123", fill=(0, 0, 0), font_size=34)
    return np.asarray(picture)


def draw_gradient() -> UInt8:
    x, y = np.meshgrid(np.linspace(0, 1, 256), np.linspace(0, 1, 256))
    return np.rint(np.stack([x, 0.5 + 0.5 * np.sin(6 * y), 1 - x], axis=2) * 255).astype(np.uint8)


def draw_atlas() -> UInt8:
    """Return 8 × 8 islands of photo-like noise."""
    random = np.random.default_rng(3)
    picture = np.zeros((1024, 1024, 3))
    for cells in (8, 16, 64):
        small = Picture.fromarray((random.random((cells, cells, 3)) * 255).astype(np.uint8))
        kind = Picture.Resampling.NEAREST if cells == 8 else Picture.Resampling.BICUBIC
        picture += np.asarray(small.resize((1024, 1024), kind)) * (8 / cells)
    return np.rint(picture / picture.max() * 255).astype(np.uint8)


def draw_face() -> UInt8:
    """Return shaded skin below hair, with small features: eyes, a mouth and buttons."""
    y, x = np.mgrid[0:1024, 0:1024] / 1024
    shade = 0.75 + 0.25 * np.sin(3 * x) * np.cos(2 * y)
    picture = Picture.fromarray((np.array([224, 172, 134]) * shade[..., None]).astype(np.uint8))
    draw = ImageDraw.Draw(picture)
    draw.rectangle([0, 0, 1024, 307], fill=(90, 50, 20))
    discs = [(358, 461, 31, (250, 250, 250)), (666, 461, 31, (250, 250, 250)), (512, 717, 31, (200, 20, 40))]
    discs += [(358, 461, 14, (30, 90, 200)), (666, 461, 14, (30, 90, 200))]
    discs += [(205, 870, 20, (30, 160, 60)), (819, 870, 16, (240, 210, 30))]
    for column, row, radius, color in discs:
        draw.ellipse([column - radius, row - radius, column + radius, row + radius], fill=color)
    return np.asarray(picture.filter(ImageFilter.GaussianBlur(1.2)))


def draw_shading() -> UInt8:
    """Return three materials with baked shading, and small red and white marks on them."""
    y, x = np.mgrid[0:1024, 0:1024] / 1024
    shade = 0.25 + 0.75 * (0.5 + 0.5 * np.sin(9 * x + 2 * np.sin(5 * y)) * np.cos(7 * y))
    colors = np.array([(140, 140, 150), (90, 110, 60), (150, 90, 50)])[np.minimum((x * 3).astype(int), 2)]
    picture = Picture.fromarray((colors * shade[..., None]).astype(np.uint8))
    draw = ImageDraw.Draw(picture)
    for number, (column, row) in enumerate(np.random.default_rng(2).random((8, 2)) * 1024):
        color = [(220, 30, 30), (240, 240, 240)][number % 2]
        draw.ellipse([column - 18, row - 18, column + 18, row + 18], fill=color)
    return np.asarray(picture)


def draw_blurred() -> UInt8:
    """Return a flag with blends along its borders, as texture filters and JPEG make them."""
    data = io.BytesIO()
    Picture.fromarray(draw_flag()).filter(ImageFilter.GaussianBlur(3)).save(data, "JPEG", quality=60)
    return np.asarray(Picture.open(data))


def sample(pixels: UInt8, uv: Float64) -> Float64:
    """Return (k, c) linear colors of a repeated texture, filtered linearly."""
    height, width = pixels.shape[:2]
    linear = decode_srgb(pixels / 255)
    if pixels.shape[2] == 4:
        linear[..., 3] = pixels[..., 3] / 255
    x, y = uv[:, 0] * width - 0.5, (1 - uv[:, 1]) * height - 0.5
    left, top = np.floor(x).astype(int), np.floor(y).astype(int)
    s, t = (x - left)[:, None], (y - top)[:, None]
    columns, rows = [left % width, (left + 1) % width], [top % height, (top + 1) % height]
    upper, lower = (linear[row, columns[0]] * (1 - s) + linear[row, columns[1]] * s for row in rows)
    return upper * (1 - t) + lower * t


def to_bytes(linear: Float64) -> UInt8:
    return np.rint(encode_srgb(linear[:, :3]) * 255).astype(np.uint8)


def make_cases(cells: int) -> Iterator[Case]:
    """Yield a model of each kind with the given number of cells on a side."""

    def make(name: str, mesh: Mesh, material: Material, colorist: Colorist, pixels: UInt8 | None = None) -> Case:
        images = () if pixels is None else (encode(pixels),)
        return Case(name, Scene((mesh,), (Part(0, material=0),), (material,), images), colorist)

    textured = Material(base_color_image=0)
    drawings = {"checker": draw_checker(), "flag": draw_flag(), "text": draw_text()}
    drawings |= {"gradient": draw_gradient(), "atlas": draw_atlas()}
    drawings |= {"face": draw_face(), "shading": draw_shading(), "blurred": draw_blurred()}
    for name, pixels in drawings.items():
        yield make(name, make_plate(cells), textured, lambda p, pixels=pixels: to_bytes(sample(pixels, p)), pixels)
    factor = (0.4, 0.9, 0.7, 1.0)
    linear_factor = decode_srgb(np.array(factor[:3]))
    flag = drawings["flag"]
    yield make(
        "factor",
        make_plate(cells),
        replace(textured, base_color=factor),
        lambda p: to_bytes(sample(flag, p) * linear_factor),
        flag,
    )
    plate = make_plate(cells)
    ends = np.array([255, 120], np.uint8)
    reds = decode_srgb(ends / 255)
    share = 0.01 + 0.98 * plate.vertices[:, 0] / SIZE_MM
    tint = np.full((len(share), 4), 255, np.uint8)
    tint[:, 0] = np.rint(encode_srgb(reds[0] + (reds[1] - reds[0]) * share) * 255)

    def tinted(points: Float64) -> UInt8:
        red = reds[0] + (reds[1] - reds[0]) * points[:, 0]
        return to_bytes(sample(flag, points) * np.stack([red, red**0, red**0], axis=1))

    yield make("vertex × texture", replace(plate, colors=tint), textured, tinted, flag)
    masked = np.dstack([flag, np.where(np.arange(600) % 200 < 120, 255, 0)[None].repeat(400, 0).astype(np.uint8)])

    def blended(points: Float64) -> UInt8:
        color = sample(masked, points)
        return to_bytes(color[:, :3] * color[:, 3:] + 1 - color[:, 3:])

    yield make("alpha", make_plate(cells), replace(textured, alpha_mode="blend"), blended, masked)
    yield make(
        "UV outside 0–1", make_plate(cells, 3, -1.3), textured, lambda p: to_bytes(sample(flag, p * 3 - 1.3)), flag
    )
    yield make(
        "mirrored",
        make_plate(cells, mirror=True),
        textured,
        lambda p: to_bytes(sample(flag, p * np.array([-1, 1]))),
        flag,
    )


def measure_ideal(colors: UInt8, count: int) -> float:
    """Return the least mean ΔE of several k-means palettes in OKLab."""
    oklab, lab = convert_to_oklab(colors), convert_to_lab(colors)
    errors = []
    for seed in range(5):
        centers, _ = kmeans2(oklab[::4], count, minit="++", seed=seed, iter=30, missing="warn")
        palette = convert_from_oklab(centers)
        nearest = cKDTree(convert_to_oklab(palette)).query(oklab)[1]
        errors.append(float(measure_delta_e(lab, convert_to_lab(palette)[nearest]).mean()))
    return min(errors)


def find_small_regions(points: Float64, colors: UInt8, area: float) -> list[np.ndarray]:
    """Return the points of each small region that differs from most of the surface around it.

    Args:
        points: (k, 3) even samples of a surface in millimeters.
        colors: (k, 3) their colors.
        area: Square millimeters of the surface.
    """
    share = area / len(points)
    lab, tree = convert_to_lab(colors), cKDTree(points)
    pairs = tree.query_pairs(2 * share**0.5, output_type="ndarray")
    pairs = pairs[measure_delta_e(lab[pairs[:, 0]], lab[pairs[:, 1]]) < 5]
    graph = coo_matrix((np.ones(len(pairs)), pairs.T), (len(points), len(points)))
    region = connected_components(graph, directed=False)[1]
    size = np.bincount(region) * share
    regions = []
    for number in np.flatnonzero((size >= MIN_REGION_MM2) & (size <= MAX_REGION_RATIO * area)):
        members = np.flatnonzero(region == number)
        around = np.unique(np.concatenate(tree.query_ball_point(points[members[:50]], 3.0))).astype(int)
        around = around[region[around] != number]
        difference = measure_delta_e(lab[around], np.median(lab[members], axis=0))
        if len(around) and np.mean(difference > DISTINCT_DELTA_E) >= 0.6:
            regions.append(members)
    return regions


def measure_errors(points: Float64, source: UInt8, result: UInt8, regions: list[np.ndarray]) -> Errors:
    """Return the errors of points with known colors; `regions` are the small distinct ones."""
    error = measure_delta_e(convert_to_lab(source), convert_to_lab(result))
    kept = [np.median(error[members]) <= DISTINCT_DELTA_E for members in regions]
    small = float(np.mean(kept)) if kept else float("nan")
    p95, p999 = np.percentile(error, [95, 99.9])
    return Errors(float(error.mean()), float(p95), float(p999), small, measure_seen(points, source, result))


class Comparison(NamedTuple):
    """Errors of a result and of its peers, the ideal ΔE, and the share of points on their own filament."""

    errors: Errors
    plain: Errors
    dithered: Errors
    ideal: float
    own: float


def compare(
    points: Float64,
    area: float,
    source: UInt8,
    result: UInt8,
    palette: UInt8,
    count: int,
    colorist: Colorist | None = None,
) -> Comparison:
    """Compare the colors (k, 3) of a result with those of the model at even samples of the surface."""
    regions = find_small_regions(points, source, area)
    plain = find_plain_palette(source, count)
    dithered = None if colorist is None else dither_cells(points[:, :2], SIZE_MM, colorist, plain)
    nearest = cKDTree(convert_to_oklab(palette)).query(convert_to_oklab(source))[1]
    return Comparison(
        measure_errors(points, source, result, regions),
        measure_errors(points, source, choose_nearest(source, plain), regions),
        NO_ERRORS if dithered is None else measure_errors(points, source, dithered, regions),
        measure_ideal(source, count),
        float((palette[nearest] == result).all(axis=1).mean()),
    )


def sample_points(scene: Scene, count: int) -> tuple[Float64, Float64, np.ndarray]:
    """Return random points of the placed surface, their unit normals, and their triangles."""
    vertices, faces = soup(scene)
    normals = face_normals(vertices, faces)
    area = np.linalg.norm(normals, axis=1)
    random = np.random.default_rng(0)
    face = random.choice(len(faces), count, p=area / area.sum())
    weights = random.dirichlet((1, 1, 1), count)
    return np.einsum("kc,kcd->kd", weights, vertices[faces[face]]), unit_vectors(normals)[face], face


def get_colors(scene: Scene) -> tuple[UInt8, UInt8]:
    """Return the color (m, 3) of every placed triangle of a result, and the palette."""
    palette = np.rint(np.array([material.base_color[:3] for material in scene.materials]) * 255).astype(np.uint8)
    materials = [get_face_materials(scene, Surface(part.mesh, part.material)) for part in scene.parts]
    return palette[np.concatenate(materials)], palette


def measure_case(case: Case, options: ReduceColorsOptions, *, is_painted: bool) -> Figures:
    """Return the triangles or leaves, mean ΔE, ideal ΔE, own share and seconds of a generated model."""
    start = time.perf_counter()
    result = reduce_colors(case.scene, options)
    target = Target("model.3mf")
    if is_painted:
        write_threemf(result, target, ThreeMFWriteOptions(threemf_profile="bambu"))
    seconds = time.perf_counter() - start
    face_count = result.face_count
    if is_painted:
        face_count = count_leaves(target.read())
        result = read_threemf(Source.from_bytes(target.read(), "model.3mf"), ThreeMFReadOptions(threemf_paint="split"))
    assert is_closed(*soup(result)), case.name
    colors, palette = get_colors(result)
    points, _, face = sample_points(result, POINT_COUNT)

    def colorist(places: Float64) -> UInt8:
        return case.colorist(0.01 + 0.98 * places)

    source = colorist(points[:, :2] / SIZE_MM)
    count = options.reduce_colors or 1
    compared = compare(points, measure_area(result), source, colors[face], palette, count, colorist)
    return Figures(face_count, *compared, seconds)


def measure_area(scene: Scene) -> float:
    """Return the area of the placed surface in square millimeters."""
    return float(np.linalg.norm(face_normals(*soup(scene)), axis=1).sum()) / 2


def count_leaves(data: bytes) -> int:
    """Return the leaves of all triangles of a 3MF file."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        text = archive.read("3D/3dmodel.model")
    codes = re.findall(rb'paint_color="([^"]*)"', text)
    return text.count(b"<triangle ") - len(codes) + int(np.count_nonzero(parse_codes(codes).sides == 0))


def measure_file(path: Path, options: ReduceColorsOptions) -> Figures | None:
    """Return the figures of a real model; None if it has no texture."""
    try:
        with Registry() as registry:
            scene = registry.read(path)
    except MeshhubError:
        return None
    if "textures" not in scene.features() or "uv" not in scene.features():
        return None
    scene = scale(scene)
    start = time.perf_counter()
    result = reduce_colors(scene, options)
    seconds = time.perf_counter() - start
    sources, normals, face = sample_points(scene, SOURCE_POINT_COUNT)
    # the weights of the points in their triangles, in the order of the corners in the mesh
    surfaces = [Surface(part.mesh, part.material) for part in scene.parts]
    vertices, faces = soup(replace(scene, parts=scene.parts))
    corners = vertices[faces[face]]
    weights = find_weights(sources, corners)
    flipped = np.concatenate(
        [np.full(len(scene.meshes[p.mesh].faces), np.linalg.det(p.transform[:3, :3]) < 0) for p in scene.parts]
    )[face]
    weights[flipped] = weights[flipped][:, ::-1]
    source_colors = SurfaceColors(scene, surfaces).sample(face, weights.astype(np.float32))
    points, directions, target = sample_points(result, POINT_COUNT)
    size = float(np.ptp(vertices, axis=0).max())
    tree = cKDTree(np.concatenate([sources, normals * size * 0.01], axis=1))
    nearest = tree.query(np.concatenate([points, directions * size * 0.01], axis=1))[1]
    colors, palette = get_colors(result)
    count = options.reduce_colors or 1
    compared = compare(points, measure_area(result), source_colors[nearest], colors[target], palette, count)
    return Figures(result.face_count, *compared, seconds)


def scale(scene: Scene) -> Scene:
    """Return a scene whose longest side has the size of the plates."""
    matrix = np.eye(4)
    matrix[:3, :3] *= SIZE_MM / float(np.ptp(soup(scene)[0], axis=0).max())
    return replace(scene, parts=tuple(replace(part, transform=matrix @ part.transform) for part in scene.parts))


def find_weights(points: Float64, corners: Float64) -> Float64:
    """Return the barycentric coordinates (k, 3) of points in triangles (k, 3, 3)."""
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    normal = np.cross(b - a, c - a)
    total = np.einsum("kd,kd->k", normal, normal)
    total[total == 0] = 1
    second = np.einsum("kd,kd->k", np.cross(points - a, c - a), normal) / total
    third = np.einsum("kd,kd->k", np.cross(b - a, points - a), normal) / total
    return np.stack([1 - second - third, second, third], axis=1)


METHODS = ("errors", "plain", "dithered")
COLUMNS = " | ".join(f"{name}ΔE | p95 | p99.9 | small | seen" for name in ("", "plain ", "dithered "))
HEADER = f"| model | N | triangles | {COLUMNS} | ideal ΔE | own | s |"


def print_row(name: str, count: int, figures: Figures) -> tuple[int, Figures]:
    """Print a row of the table, and return its figures."""
    errors = " | ".join(f"{value:.2f}" for value in flatten(figures))
    print(
        f"| {name} | {count} | {figures.triangles} | {errors} | {figures.own:.3f} | {figures.seconds:.2f} |", flush=True
    )
    return count, figures


def flatten(figures: Figures) -> list[float]:
    """Return the errors of all methods, and the ideal."""
    return [*figures.errors, *figures.plain, *figures.dithered, figures.ideal]


def report(rows: list[tuple[int, Figures]], models: str, path: Path | None) -> None:
    """Print the mean of each number of colors, and append it to a CSV file."""
    for count in sorted({count for count, _ in rows}):
        chosen = [figures for number, figures in rows if number == count]
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
            errors, plain, dithered = (np.nanmean([getattr(item, name) for item in chosen], axis=0) for name in METHODS)
        mean = Figures(
            max(figures.triangles for figures in chosen),
            Errors(*errors),
            Errors(*plain),
            Errors(*dithered),
            float(np.mean([figures.ideal for figures in chosen])),
            float(np.mean([figures.own for figures in chosen])),
            float(np.sum([figures.seconds for figures in chosen])),
        )
        print_row("mean", count, mean)
        if path is not None:
            values = ["" if np.isnan(value) else f"{value:.2f}" for value in flatten(mean)]
            row = ["2 cores, busy", f"{date.today():%Y-%m-%d}", models, count, *values, f"{mean.own:.1%}"]
            with path.open("a", newline="", encoding="utf-8") as file:
                csv.writer(file).writerow(row)


DRAWING_PIXELS = 4096
"""Pixels on a side of the drawings with exact borders; the texture has half of them, blended."""

MARGIN_MM = 1.0
"""Millimeters at the edges of a plate that are left out, because borders end there."""


def draw_edges() -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield drawings of two colors: slanted stripes, a checker, discs and text."""
    row, column = np.mgrid[0:DRAWING_PIXELS, 0:DRAWING_PIXELS] / DRAWING_PIXELS
    yield "stripes", (20 * (column * np.cos(0.3) + row * np.sin(0.3))).astype(int) % 2 == 0
    yield "checker", ((8 * column).astype(int) + (8 * row).astype(int)) % 2 == 0
    x, y = (4 * column) % 1 - 0.5, (4 * row) % 1 - 0.5
    yield "discs", np.hypot(x, y) < 0.1 + 0.02 * (4 * (4 * row).astype(int) + (4 * column).astype(int))
    picture = Picture.new("L", (DRAWING_PIXELS, DRAWING_PIXELS), 0)
    draw = ImageDraw.Draw(picture)
    for line in range(4):
        draw.text((200, 100 + 1000 * line), "Color 3MF", fill=255, font_size=800)
    yield "text", np.asarray(picture) > 127


def find_drawn_borders(drawing: NDArray[np.bool_]) -> Float64:
    """Return points (k, 2) on the borders of a drawing, in millimeters on the plate."""
    rows, columns = np.nonzero(drawing[1:] != drawing[:-1])
    points = [np.stack([columns + 0.5, rows + 1], axis=1)]
    rows, columns = np.nonzero(drawing[:, 1:] != drawing[:, :-1])
    points.append(np.stack([columns + 1, rows + 0.5], axis=1))
    u, v = (np.concatenate(points) / DRAWING_PIXELS).T
    return (np.stack([u, 1 - v], axis=1) - 0.01) / 0.98 * SIZE_MM


def find_result_borders(scene: Scene) -> Float64:
    """Return points (k, 2), 0.05 mm apart, on the borders between colors on the upper side of a plate."""
    vertices, faces = soup(scene)
    colors = get_colors(scene)[0]
    is_upper = face_normals(vertices, faces)[:, 2] > 0
    first, index = weld(vertices)
    corners, colors = index[faces[is_upper]], colors[is_upper]
    one, other = edges(corners).pairs()
    is_border = (colors[one // 3] != colors[other // 3]).any(axis=1)
    face, side = one[is_border] // 3, one[is_border] % 3
    begin, end = (vertices[first][corners[face, (side + step) % 3], :2] for step in (0, 1))
    count = np.maximum(np.ceil(np.linalg.norm(end - begin, axis=1) / 0.05), 1).astype(int)
    owner = np.repeat(np.arange(len(count)), count)
    share = (np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count) + 0.5) / count[owner]
    return begin[owner] + (end - begin)[owner] * share[:, None]


def measure_edges(borders: str, *, is_painted: bool) -> None:
    """Print the distances between the borders of drawings and those of the results."""
    print("| drawing | triangles | result: 95 % | max | drawing: 95 % | max, mm |\n|---|---|---|---|---|---|")
    for name, drawing in draw_edges():
        pixels = np.where(drawing[..., None], np.uint8(255), np.array([190, 20, 40], np.uint8))
        half = Picture.fromarray(pixels).resize((DRAWING_PIXELS // 2,) * 2, Picture.Resampling.BOX)
        material = Material(base_color_image=0)
        scene = Scene((make_plate(1),), (Part(0, material=0),), (material,), (encode(np.asarray(half)),))
        result = reduce_colors(scene, ReduceColorsOptions(reduce_colors=2, reduce_colors_borders=borders))
        if is_painted:
            target = Target("model.3mf")
            write_threemf(result, target, ThreeMFWriteOptions(threemf_profile="bambu"))
            source = Source.from_bytes(target.read(), "model.3mf")
            result = read_threemf(source, ThreeMFReadOptions(threemf_paint="split"))
        drawn, found = find_drawn_borders(drawing), find_result_borders(result)
        figures = []
        for points, others in ((found, drawn), (drawn, found)):
            inner = points[((points > MARGIN_MM) & (points < SIZE_MM - MARGIN_MM)).all(axis=1)]
            distance = cKDTree(others).query(inner)[0]
            figures += [np.percentile(distance, 95), distance.max()]
        print(f"| {name} | {result.face_count} | {' | '.join(f'{value:.3f}' for value in figures)} |", flush=True)


PEER = """
import sys, trimesh
mesh = trimesh.load(sys.argv[1], force="mesh")
image = mesh.visual.material.baseColorTexture.convert("RGB")
mesh.visual.material.baseColorTexture = image.quantize(4).convert("RGB")
mesh.visual = mesh.visual.to_color()
mesh.export(sys.argv[1] + ".ply")
"""
"""Program that quantizes the texture of a model, and samples it at the vertices alone."""


def measure_process(arguments: list[str]) -> tuple[float, int]:
    """Run Python; return its seconds of CPU and its most memory in MB."""
    # GNU time: a child of this process would count its memory, too
    command = ["/usr/bin/time", "-f", "%U %S %M", sys.executable, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    user, system, memory = done.stderr.split()[-3:]
    return float(user) + float(system), int(memory) >> 10


def measure_speed() -> None:
    """Convert a large textured model in a process of its own, and print its CPU time, its memory, and a ratio."""
    random = np.random.default_rng(1)
    picture = np.zeros((4096, 4096, 3), np.float32)
    for cells in (8, 32, 128, 512):
        small = Picture.fromarray((random.random((cells, cells, 3)) * 255).astype(np.uint8))
        picture += np.asarray(small.resize((4096, 4096), Picture.Resampling.BICUBIC)) * np.float32((8 / cells) ** 0.5)
    image = io.BytesIO()
    Picture.fromarray(np.rint(picture / picture.max() * 255).astype(np.uint8)).save(image, "JPEG", quality=90)
    plate = make_plate(157)
    scene = Scene(
        (plate,), (Part(0, material=0),), (Material(base_color_image=0),), (Image(image.getvalue(), "image/jpeg"),)
    )
    with tempfile.TemporaryDirectory() as folder, Registry() as registry:
        source, target = Path(folder, "model.glb"), Path(folder, "model.3mf")
        registry.write(scene, source)
        convert = ["-m", "meshhub", "convert", str(source), str(target), "--reduce-colors", "4", "-q"]
        own, memory = measure_process(convert)
        peer, peer_memory = measure_process(["-c", PEER, str(source)])
    print(f"{len(plate.faces)} triangles: {own:.2f} s of CPU, {memory} MB; trimesh and Pillow: {peer:.2f} s, ", end="")
    print(f"{peer_memory} MB; ratio {own / peer:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--colors", type=int, nargs="+", default=[4, 16])
    parser.add_argument("--borders", choices=["exact", "smooth"], default="exact")
    parser.add_argument("--dither", choices=["none", "blue-noise"], default="none")
    parser.add_argument("--paint", action="store_true")
    parser.add_argument("--corpus", action="store_true")
    parser.add_argument("--edges", action="store_true")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    if arguments.speed:
        measure_speed()
        return
    if arguments.edges:
        measure_edges(arguments.borders, is_painted=arguments.paint)
        return
    print(HEADER + "\n" + "|---" * HEADER.count(" | ") + "|---|")
    kind = "generated" if arguments.dither == "none" else "generated, meshhub dithered"
    rows = []
    for options in list_options(arguments):
        count = options.reduce_colors or 1
        for cells in (1, 30, 150):
            for case in make_cases(cells):
                name = f"{case.name}, {case.scene.face_count} triangles"
                rows.append(print_row(name, count, measure_case(case, options, is_painted=arguments.paint)))
    report(rows, kind, arguments.csv)
    if not arguments.corpus:
        return
    folder = Path(os.environ["MESHHUB_CORPUS"])
    files = sorted(path for kind in ("glb", "gltf", "3mf") for path in (folder / kind).iterdir())
    rows = []
    for path in files:
        for options in list_options(arguments):
            figures = measure_file(path, options)
            if figures is not None:
                rows.append(print_row(path.name[:60], options.reduce_colors or 1, figures))
    report(rows, "textured corpus files", arguments.csv)


def list_options(arguments: argparse.Namespace) -> list[ReduceColorsOptions]:
    """Return the options of the operation for each number of colors."""
    return [
        ReduceColorsOptions(
            reduce_colors=count,
            reduce_colors_borders=arguments.borders,
            reduce_colors_dither=arguments.dither,
        )
        for count in arguments.colors
    ]


if __name__ == "__main__":
    main()
