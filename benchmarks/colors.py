"""Reduction of colors: color error, share of the area on its own filament, triangles and seconds.

    python benchmarks/colors.py [--colors 4 16] [--borders exact] [--paint | --corpus]
    python benchmarks/colors.py --speed

The generated models are wavy plates whose color is a function of x and y, so the color of each point of the result is
known without a search. The ideal is the nearest entry of a palette for every point: "ideal ΔE" is that of the best of
several k-means palettes in OKLab, "own" is the share of the area that has the nearest entry of the written palette.
`--paint` measures the paint of the project for BambuStudio, and counts its leaves instead of triangles. `--corpus` adds
the textured files of MESHHUB_CORPUS; their points are compared with the nearest samples of the source.
`--speed` converts a GLB of 100 000 triangles with a texture of 4096 × 4096 pixels, in a process of its own. Its
CPU time is compared with that of trimesh and Pillow, which only quantize the texture and sample it at the vertices.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from PIL import Image as Picture
from PIL import ImageDraw
from scipy.cluster.vq import kmeans2
from scipy.spatial import cKDTree

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
from meshhub.toolkit.geometry import face_normals, soup, unit_vectors
from meshhub.toolkit.surface_colors import Surface, SurfaceColors, get_face_materials
from meshhub.toolkit.topology import is_closed

SIZE_MM = 80.0
"""Millimeters; side of the plates."""

POINT_COUNT = 50_000
"""Points that are compared; the figures vary by less than 0.3 %."""

SOURCE_POINT_COUNT = 1_500_000
"""Samples of a real model in which the nearest one is searched."""

Figures = tuple[int, float, float, float, float]
"""Triangles, mean ΔE, ideal ΔE, share on the own filament, seconds."""

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


def compare(source: UInt8, result: UInt8, palette: UInt8, count: int) -> tuple[float, float, float]:
    """Return the mean ΔE, the ideal one, and the share of points on their own filament."""
    nearest = cKDTree(convert_to_oklab(palette)).query(convert_to_oklab(source))[1]
    own = float((palette[nearest] == result).all(axis=1).mean())
    error = float(measure_delta_e(convert_to_lab(source), convert_to_lab(result)).mean())
    return error, measure_ideal(source, count), own


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


def measure_case(case: Case, count: int, borders: str, *, is_painted: bool) -> Figures:
    """Return the triangles or leaves, mean ΔE, ideal ΔE, own share and seconds of a generated model."""
    start = time.perf_counter()
    result = reduce_colors(case.scene, ReduceColorsOptions(reduce_colors=count, reduce_colors_borders=borders))
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
    inner = 0.01 + 0.98 * points[:, :2] / SIZE_MM
    error, ideal, own = compare(case.colorist(inner), colors[face], palette, count)
    return face_count, error, ideal, own, seconds


def count_leaves(data: bytes) -> int:
    """Return the leaves of all triangles of a 3MF file."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        text = archive.read("3D/3dmodel.model")
    codes = re.findall(rb'paint_color="([^"]*)"', text)
    return text.count(b"<triangle ") - len(codes) + int(np.count_nonzero(parse_codes(codes).sides == 0))


def measure_file(path: Path, count: int, borders: str) -> Figures | None:
    """Return the figures of a real model; None if it has no texture."""
    try:
        with Registry() as registry:
            scene = registry.read(path)
    except MeshhubError:
        return None
    if "textures" not in scene.features() or "uv" not in scene.features():
        return None
    start = time.perf_counter()
    result = reduce_colors(scene, ReduceColorsOptions(reduce_colors=count, reduce_colors_borders=borders))
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
    error, ideal, own = compare(source_colors[nearest], colors[target], palette, count)
    return result.face_count, error, ideal, own, seconds


def find_weights(points: Float64, corners: Float64) -> Float64:
    """Return the barycentric coordinates (k, 3) of points in triangles (k, 3, 3)."""
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    normal = np.cross(b - a, c - a)
    total = np.einsum("kd,kd->k", normal, normal)
    total[total == 0] = 1
    second = np.einsum("kd,kd->k", np.cross(points - a, c - a), normal) / total
    third = np.einsum("kd,kd->k", np.cross(b - a, points - a), normal) / total
    return np.stack([1 - second - third, second, third], axis=1)


def print_row(name: str, count: int, figures: Figures) -> tuple[int, Figures]:
    """Print a row of the table, and return its figures."""
    faces, error, ideal, own, seconds = figures
    print(f"| {name} | {count} | {faces} | {error:.2f} | {ideal:.2f} | {own:.3f} | {seconds:.2f} |", flush=True)
    return count, figures


def report(rows: list[tuple[int, Figures]]) -> None:
    """Print the mean of each number of colors."""
    for count in sorted({count for count, _ in rows}):
        figures = np.array([figure for number, figure in rows if number == count])
        _, error, ideal, own, _ = figures.mean(axis=0)
        print(f"| mean | {count} | ≤ {figures[:, 0].max():.0f} | {error:.2f} | {ideal:.2f} | {own:.3f} | |")


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
    parser.add_argument("--paint", action="store_true")
    parser.add_argument("--corpus", action="store_true")
    parser.add_argument("--speed", action="store_true")
    arguments = parser.parse_args()
    if arguments.speed:
        measure_speed()
        return
    print("| model | N | triangles | ΔE | ideal ΔE | own | s |\n|---|---|---|---|---|---|---|")
    rows = []
    for count in arguments.colors:
        for cells in (1, 30, 150):
            for case in make_cases(cells):
                name = f"{case.name}, {case.scene.face_count} triangles"
                rows.append(
                    print_row(name, count, measure_case(case, count, arguments.borders, is_painted=arguments.paint))
                )
    report(rows)
    if not arguments.corpus:
        return
    folder = Path(os.environ["MESHHUB_CORPUS"])
    files = sorted(path for kind in ("glb", "gltf", "3mf") for path in (folder / kind).iterdir())
    rows = []
    for path in files:
        for count in arguments.colors:
            figures = measure_file(path, count, arguments.borders)
            if figures is not None:
                rows.append(print_row(path.name[:60], count, figures))
    report(rows)


if __name__ == "__main__":
    main()
