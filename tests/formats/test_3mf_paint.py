"""Paint inside triangles, written for slicers and read again."""

from __future__ import annotations

import io
import itertools
import json
import random
import re
import shutil
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import lib3mf
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image as Picture

from meshhub import InvalidOption, Registry, Source, Target
from meshhub.builtin_plugins.threemf import ThreeMFReadOptions
from meshhub.builtin_plugins.threemf.paint_trees import parse_codes
from meshhub.builtin_plugins.threemf.reader import read
from meshhub.builtin_plugins.threemf.reading.paint import split_triangles
from meshhub.builtin_plugins.threemf.writing.paint import Pieces, build_trees
from meshhub.builtin_plugins.threemf.writing.strips import measure_slicing_cost, measure_surface, remove_strips
from meshhub.cli import root
from meshhub.model.scene import Image, Material, Mesh, Part, Scene, UInt8
from meshhub.toolkit.geometry import face_normals, placed_mesh, soup
from meshhub.toolkit.topology import is_closed
from models import brick, sphere
from threemf_models import mesh_xml, model, package, thing
from threemf_projects import DIALECTS, paint_triangles, project

pytestmark = [pytest.mark.once, pytest.mark.process]

RED, BLUE, GREEN, WHITE = (200, 20, 40), (0, 82, 180), (0, 150, 60), (255, 255, 255)

LEAVES = ["0", "4", "8", "0C", "EC", "0FC", "EFC"]
"""Codes of unpainted leaves, and of the filaments 1, 2, 3, 17, 18 and 32."""

ALL_LEAVES = ["0", "4", "8", *(f"{n - 3:X}C" for n in range(3, 18)), *(f"{n - 18:X}FC" for n in range(18, 33))]
"""Codes of unpainted leaves, and of the filaments 1 to 32."""

PALETTE = [f"#{5 * n:02X}{255 - 7 * n:02X}{90 + n:02X}" for n in range(1, 33)]
"""Colors of the filaments 1 to 32."""


def draw_quarters() -> UInt8:
    """Return a picture of four colors."""
    pixels = np.empty((8, 8, 3), np.uint8)
    pixels[:4, :4], pixels[:4, 4:], pixels[4:, :4], pixels[4:, 4:] = RED, BLUE, GREEN, WHITE
    return pixels


def draw_circle() -> UInt8:
    """Return a picture of a white disk on black."""
    radius = np.hypot(*(np.indices((64, 64)) - 31.5))
    return np.where(radius < 25, 255, 0).astype(np.uint8)[..., None].repeat(3, 2)


def project_texture(mesh: Mesh, pixels: UInt8, transform: Any = None) -> Scene:
    """Return a scene with a mesh whose texture is projected along Z onto its bounding box."""
    low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
    data = io.BytesIO()
    Picture.fromarray(pixels).save(data, "PNG")
    return Scene(
        (replace(mesh, uv=(mesh.vertices[:, :2] - low[:2]) / (high - low)[:2]),),
        (Part(0, np.eye(4) if transform is None else transform, material=0),),
        (Material(base_color_image=0, filter="nearest", wrap=("clamp", "clamp")),),
        (Image(data.getvalue(), "image/png"),),
    )


def draw_code(depth: int, rng: random.Random, leaves: list[str] = LEAVES) -> str:
    """Return a code with all kinds of splits."""
    sides = rng.choice([0, 1, 2, 3]) if depth else 0
    if sides == 0:
        return rng.choice(leaves)
    return "".join(draw_code(depth - 1, rng, leaves) for _ in range(sides + 1)) + format(
        sides | rng.choice([0, 1, 2]) << 2, "X"
    )


def measure_paint(code: str, corners: np.ndarray, own: int) -> np.ndarray:
    """Return the area (33,) of each filament in a painted triangle (3, 3); `own` is that of unpainted places."""
    areas = np.zeros(33)
    digits = iter(code[::-1])

    def visit(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
        digit = int(next(digits), 16)
        if digit & 3:
            a, b, c = np.roll([a, b, c], -(digit >> 2), axis=0)
            ab, bc, ca = (a + b) / 2, (b + c) / 2, (c + a) / 2
            children = (
                [(a, b, bc), (bc, c, a)],
                [(a, ab, ca), (ab, b, ca), (b, c, ca)],
                [(a, ab, ca), (ab, b, bc), (bc, c, ca), (ab, bc, ca)],
            )[(digit & 3) - 1]
            for child in reversed(children):
                visit(*child)
            return
        filament = digit >> 2
        if filament == 3:
            filament = int(next(digits), 16) + 3
            filament = int(next(digits), 16) + 18 if filament == 18 else filament
        areas[filament or own] += np.linalg.norm(np.cross(b - a, c - a)) / 2

    visit(*corners)
    return areas


def convert(scene: Scene | Path, path: Path, **options: Any) -> list[str]:
    """Convert a scene or a file, and return the codes of the notes."""
    with Registry(entry_points=False) as registry:
        return [note.code for note in registry.convert(scene, path, **options).notes]


def read_split(path: Path) -> Scene:
    """Read a painted file with its triangles split along the paint."""
    with Registry(entry_points=False) as registry:
        return registry.read(path, threemf_paint="split")


def measure_areas(scene: Scene) -> dict[str, float]:
    """Return the share of each color in the area."""
    areas: dict[str, float] = {}
    for part in scene.parts:
        mesh = placed_mesh(scene.meshes[part.mesh], part.transform)
        size = np.linalg.norm(face_normals(mesh.vertices, mesh.faces), axis=1)
        present = np.full(len(size), -1) if mesh.face_material is None else mesh.face_material
        materials = np.where(present < 0, -1 if part.material is None else part.material, present)
        for number in np.unique(materials).tolist():
            values = scene.materials[number].base_color[:3] if number >= 0 else (1.0, 1.0, 1.0)
            color = "#{:02X}{:02X}{:02X}".format(*(round(255 * value) for value in values))
            areas[color] = areas.get(color, 0) + float(size[materials == number].sum())
    return {color: area / sum(areas.values()) for color, area in areas.items()}


def read_codes(path: Path) -> list[bytes]:
    """Return the codes of the paint of a file."""
    with zipfile.ZipFile(path) as archive:
        return re.findall(rb'(?:mmu_segmentation|paint_color)="([^"]*)"', archive.read("3D/3dmodel.model"))


@given(seed=st.integers(0, 2**32))
def test_codes_of_trees_are_those_that_were_parsed(seed: int) -> None:
    rng = random.Random(seed)
    codes = [draw_code(rng.randrange(5), rng).encode() for _ in range(rng.randrange(6))]
    text, ends = parse_codes(codes).format_codes()
    assert [text[start:end].tobytes() for start, end in itertools.pairwise(ends)] == codes


@settings(max_examples=10)
@given(seed=st.integers(0, 2**32))
def test_trees_cover_the_areas_of_the_pieces(seed: int) -> None:
    rng, mesh, cell = random.Random(seed), brick(30, 20, 10), 1.0
    before = parse_codes([draw_code(4, rng).encode() for _ in mesh.faces])
    vertices, faces, owner, filament = split_triangles(mesh.vertices, mesh.faces, before.roots, before)
    pieces = Pieces(faces.astype(np.int32), owner.astype(np.int32), filament)
    trees, is_complete = build_trees(vertices, mesh.faces, pieces, cell, 200_000)
    assert is_complete
    text, ends = trees.format_codes()
    after = parse_codes([text[start:end].tobytes() for start, end in itertools.pairwise(ends)])
    areas = [np.zeros(33), np.zeros(33)]
    for number, split in enumerate((before, after)):
        points, corners, _, painted = split_triangles(mesh.vertices, mesh.faces, split.roots, split)
        size = np.linalg.norm(face_normals(points, corners.astype(np.int32)), axis=1) / 2
        areas[number] += np.bincount(painted, size, minlength=33)
        assert is_closed(points, corners.astype(np.int32))
    # borders follow cells of a millimeter; of 121 seeds the worst was off by 0.0101
    assert areas[0] == pytest.approx(areas[1], abs=0.02 * areas[0].sum())


def test_trees_use_at_most_the_leaves_that_are_allowed() -> None:
    vertices = np.array([[0.0, 0, 0], [100, 0, 0], [0, 100, 0]])
    noise = np.random.default_rng(0)
    tree = parse_codes([b"".join([b"4"] * 4) + b"3"])
    for _ in range(5):
        codes, ends = tree.format_codes()
        tree = parse_codes([codes[: ends[1]].tobytes().replace(b"4", b"44443")])
    vertices, faces, owner, _ = split_triangles(vertices, np.array([[0, 1, 2]]), tree.roots, tree)
    pieces = Pieces(faces.astype(np.int32), owner.astype(np.int32), noise.integers(1, 5, len(faces)).astype(np.int32))
    trees, is_complete = build_trees(vertices, np.array([[0, 1, 2]], np.int32), pieces, 0.4, 500)
    text, ends = trees.format_codes()
    after = parse_codes([text[: ends[1]].tobytes()])
    assert not is_complete
    assert 400 < np.count_nonzero(after.sides == 0) <= 500


@pytest.mark.parametrize("profile", DIALECTS)
@pytest.mark.parametrize("mesh", [brick(30, 20, 10), sphere(15, 16)], ids=["brick", "sphere"])
def test_reduced_colors_are_painted_inside_the_triangles(tmp_path: Path, profile: str, mesh: Mesh) -> None:
    path = tmp_path / "a.3mf"
    scene = project_texture(mesh, draw_quarters())
    notes = convert(scene, path, reduce_colors=4, threemf_profile=profile)
    assert "paint_detail_limited" not in notes and "colors_not_printed" not in notes
    with Registry(entry_points=False) as registry:
        whole = registry.read(path)
    assert len(soup(whole)[1]) == len(mesh.faces)
    split = read_split(path)
    assert is_closed(*soup(split))
    areas = measure_areas(split)
    assert set(areas) == {"#C81428", "#0052B4", "#00963C", "#FFFFFF"}
    assert areas == pytest.approx(dict.fromkeys(areas, 0.25), abs=0.01)


def test_cells_have_their_size_in_millimeters_where_a_mesh_is_placed(tmp_path: Path) -> None:
    counts, areas = [], []
    # plain, scaled and mirrored
    for number, factor in enumerate((1.0, 3.0, -1.0)):
        path = tmp_path / f"{number}.3mf"
        scene = project_texture(brick(30, 30, 10), draw_circle(), np.diag([factor, abs(factor), abs(factor), 1.0]))
        convert(scene, path, reduce_colors=2, threemf_profile="bambu", threemf_paint_cell_mm=1, place_on_bed=True)
        counts.append(int((parse_codes(read_codes(path)).sides == 0).sum()))
        areas.append(measure_areas(read_split(path)))
    # the borders are longer in cells
    assert counts == [pytest.approx(share * counts[0], rel=0.3) for share in (1, 3, 1)]
    assert areas == [pytest.approx(areas[0], abs=0.01)] * 3


def test_larger_cells_need_fewer_leaves(tmp_path: Path) -> None:
    scene, path = project_texture(brick(30, 30, 10), draw_circle()), tmp_path / "a.3mf"
    lengths = []
    for cell in (0.2, 0.8):
        convert(scene, path, reduce_colors=4, threemf_profile="orca", threemf_paint_cell_mm=cell)
        lengths.append(sum(map(len, read_codes(path))))
    assert lengths[0] > 2 * lengths[1]


def test_filaments_in_strips_that_slicers_skip_are_not_painted(tmp_path: Path) -> None:
    """A green line is 0.12 mm wide, and a blue one 2 mm."""
    pixels = np.full((500, 500, 3), 255, np.uint8)
    pixels[:, 200:202], pixels[:, 300:333] = GREEN, BLUE
    scene, path = project_texture(brick(30, 30, 5), pixels), tmp_path / "a.3mf"
    for cell, colors in ((0.4, {"#FFFFFF", "#0052B4"}), (0.1, {"#FFFFFF", "#0052B4", "#00963C"})):
        notes = convert(
            scene,
            path,
            reduce_colors_palette="#FFFFFF,#0052B4,#00963C",
            reduce_colors_borders="exact",
            reduce_colors_cell_mm=0.1,
            threemf_profile="prusa",
            threemf_paint_cell_mm=cell,
        )
        assert ("narrow_paint_removed" in notes) is (len(colors) == 2)
        areas = measure_areas(read_split(path))
        assert set(areas) == colors
        # two of the sides are white
        assert areas["#0052B4"] == pytest.approx(33 / 500 * (1 - 2 * 150 / 2400), rel=0.1)


def test_paint_that_takes_slicers_minutes_loses_its_narrowest_strips() -> None:
    count = 120
    grid = np.arange((count + 1) ** 2, dtype=np.int32).reshape(count + 1, count + 1)
    corners = (grid[:-1, :-1], grid[:-1, 1:], grid[1:, 1:], grid[:-1, :-1], grid[1:, 1:], grid[1:, :-1])
    faces = np.stack([corner.ravel() for corner in corners], axis=1).reshape(-1, 3)
    y, x = np.divmod(np.arange(grid.size), count + 1)
    vertices = np.stack([x, y, 0 * x], axis=1) * 0.2
    filaments = np.random.default_rng(0).integers(1, 5, len(faces)).astype(np.int32)
    is_wide = vertices[faces, 1].max(axis=1) <= 4
    filaments[is_wide] = 1
    surface = measure_surface(vertices, faces, 0.4)
    before = measure_slicing_cost(surface, filaments.astype(np.uint8))
    after, width = remove_strips(surface, filaments, before / 100)
    assert width > 0
    assert measure_slicing_cost(surface, after.astype(np.uint8)) <= before / 100
    assert (after[is_wide] == 1).all()


def test_texture_colors_select_paint_or_split_triangles(tmp_path: Path) -> None:
    scene, path = project_texture(brick(30, 20, 10), draw_quarters()), tmp_path / "a.3mf"
    for choice, is_painted in (("paint", True), ("face", False)):
        convert(scene, path, reduce_colors=4, threemf_profile="bambu", texture_colors=choice)
        with Registry(entry_points=False) as registry:
            assert (registry.read(path).face_count == 12) is is_painted
        assert measure_areas(read_split(path)) == pytest.approx(
            {"#C81428": 0.25, "#0052B4": 0.25, "#00963C": 0.25, "#FFFFFF": 0.25}, abs=0.01
        )
    convert(scene, tmp_path / "a.ply", reduce_colors=4, texture_colors="paint")
    assert read_split(tmp_path / "a.ply").face_count > 12


def test_paint_needs_a_number_of_filaments(tmp_path: Path) -> None:
    scene = project_texture(brick(), draw_quarters())
    with pytest.raises(InvalidOption, match="set 'reduce_colors' to their number"):
        convert(scene, tmp_path / "a.3mf", threemf_profile="bambu", texture_colors="paint")


@pytest.mark.parametrize("profile", DIALECTS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_painted_projects_keep_their_triangles_in_every_slicer(tmp_path: Path, dialect: str, profile: str) -> None:
    """A moved project is written anew."""
    rng, folder = random.Random(f"{dialect} {profile}"), tmp_path
    name = "slic3rpe:mmu_segmentation" if dialect == "prusa" else "paint_color"
    mesh = brick(30, 20, 10)
    # filaments that each of the slicers has
    codes = {face: re.sub("EC|0FC|EFC", "AC", draw_code(4, rng)) for face in range(len(mesh.faces))}
    paint = {face: f' {name}="{code}"' for face, code in codes.items()}
    (folder / "a.3mf").write_bytes(project(dialect, {"a": paint_triangles(mesh, paint)}).read())
    convert(folder / "a.3mf", folder / "b.3mf", threemf_paint="split", threemf_profile=profile, place_on_bed=True)
    with Registry(entry_points=False) as registry:
        assert registry.read(folder / "b.3mf").face_count == 12
        registry.convert(folder / "a.3mf", folder / "c.glb", threemf_paint="split")
        flat = registry.read(folder / "c.glb")
    expected = measure_areas(read_split(folder / "a.3mf"))
    assert measure_areas(read_split(folder / "b.3mf")) == pytest.approx(expected, abs=0.01)
    assert measure_areas(flat) == pytest.approx(expected, abs=1e-4)
    assert is_closed(*soup(flat))


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(max_examples=6)
@given(seed=st.integers(0, 2**32))
def test_every_kind_of_paint_is_read_exactly(dialect: str, seed: int) -> None:
    """Two volumes, in files of their own for BambuStudio, with filaments of their own, painted with any of 32."""
    rng = random.Random(seed)
    name = "slic3rpe:mmu_segmentation" if dialect == "prusa" else "paint_color"
    meshes = {"a": brick(30, 20, 10), "b": sphere(15, segments=6)}
    volumes, expected = {}, np.zeros(33)
    of_object, filaments = rng.randint(1, 32), {"a": rng.randint(1, 32), "b": rng.randint(0, 32)}
    for volume, mesh in meshes.items():
        codes = {face: draw_code(rng.randrange(5), rng, ALL_LEAVES) for face in range(len(mesh.faces)) if face % 5}
        volumes[volume] = paint_triangles(mesh, {face: f' {name}="{code}"' for face, code in codes.items()})
        for face, corners in enumerate(mesh.vertices[mesh.faces]):
            expected += measure_paint(codes.get(face, "0"), corners, filaments[volume] or of_object)
    colors = {"Metadata/project_settings.config": json.dumps({"filament_colour": PALETTE})}
    if dialect == "prusa":
        colors = {"Metadata/Slic3r_PE.config": f"; filament_colour = {';'.join(PALETTE)}"}
    source = project(
        dialect,
        volumes,
        filaments=filaments,
        object_filament=of_object,
        files=colors,
        plates=rng.randint(1, 3),
    )
    areas = {color: area for color, area in zip(PALETTE, expected[1:] / expected.sum(), strict=True) if area}
    with Registry(entry_points=False) as registry:
        scene = registry.read(source, threemf_paint="split")
        same = registry.convert_bytes(source, "3mf", threemf_profile=dialect)
        flat = registry.read(Source.from_bytes(registry.convert_bytes(source, "glb", threemf_paint="split"), "a.glb"))
    assert measure_areas(scene) == pytest.approx(areas, abs=1e-6)
    assert measure_areas(flat) == pytest.approx(areas, abs=1e-6)
    assert all(is_closed(mesh.vertices, mesh.faces) for mesh in (*scene.meshes, *flat.meshes))
    assert same == source.read()


def build_painted_plate() -> Source:
    """Return a project whose brick has two triangles with a quarter of the filament 2 each."""
    paint = dict.fromkeys((4, 5), ' paint_color="00083"')
    colors = {"Metadata/project_settings.config": json.dumps({"filament_colour": ["#E8C547", "#1C4E80"]})}
    return project("bambu", {"a": paint_triangles(brick(), paint)}, files=colors)


def test_inspections_and_pictures_show_the_paint_and_conversions_do_not_split() -> None:
    source = build_painted_plate()

    def draw(**options: Any) -> bytes:
        picture = Target("a.png")
        registry.render(source, picture, size="160x120", view="front,back,left,right,top,bottom", **options)
        return picture.read()

    with Registry(entry_points=False) as registry:
        split = registry.read(source, threemf_paint="split").face_count
        assert split > 12
        inspection = registry.inspect(source)
        assert inspection.model.faces == split
        (note,) = [note.message for note in inspection.notes if note.code == "paint_split"]
        assert f"12 triangles split along the paint into {split}" in note
        assert draw() == draw(threemf_paint="split") != draw(threemf_paint="dominant")
        # a picture of an operation shows the conversion
        assert draw(target_height_mm=5) == draw(target_height_mm=5, threemf_paint="dominant")
        assert draw(target_height_mm=5) != draw(target_height_mm=5, threemf_paint="split")
        whole = registry.inspect(source, threemf_paint="dominant")
        assert whole.model.faces == registry.read(source).face_count == 12
        assert "paint_simplified" in {note.code for note in whole.notes}


def test_the_command_line_shows_the_paint(tmp_path: Path) -> None:
    path = tmp_path / "a.3mf"
    path.write_bytes(build_painted_plate().read())

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(root, [*arguments, "--json"])
        assert result.exit_code == 0, result.output
        return result.stdout

    for paint, is_split in ((), True), (("--threemf-paint", "split"), True), (("--threemf-paint", "dominant"), False):
        assert (json.loads(run("inspect", str(path), *paint))["model"]["faces"] > 12) == is_split
        report = json.loads(run("render", str(path), str(tmp_path / "a.png"), "--force", *paint))
        assert ("paint_split" in {note["code"] for note in report["notes"]}) == is_split
    report = json.loads(run("convert", str(path), str(tmp_path / "a.glb")))
    assert report["target"]["faces"] == 12


def test_paint_that_makes_too_many_triangles_is_simplified_unless_a_split_is_requested() -> None:
    fine = "4"
    for _ in range(8):
        fine = f"{fine}{fine}{fine}{fine}3"
    fine = fine.replace("4", "8", 1)
    source = project("bambu", {"a": paint_triangles(brick(), dict.fromkeys(range(12), f' paint_color="{fine}"'))})
    scene = read(source, ThreeMFReadOptions(threemf_paint="split"))
    assert scene.face_count == 12 * 4**8 > 500_000
    with Registry(entry_points=False) as registry:
        inspection = registry.inspect(source)
    assert inspection.model.faces == 12
    (note,) = [note.message for note in inspection.notes if note.code == "paint_simplified"]
    assert "threemf_paint=split" in note


def test_paint_over_corner_colors_stays_whole_and_its_note_advises_nothing_useless() -> None:
    colors = '<m:colorgroup id="5"><m:color color="#FF0000"/><m:color color="#00FF00"/></m:colorgroup>'
    mesh = mesh_xml(brick(), ' pid="5" p1="0" p2="1" p3="0" paint_color="00083"')
    with Registry(entry_points=False) as registry:
        inspection = registry.inspect(package(model(colors + thing(1, mesh))))
    assert inspection.model.faces == 12
    (note,) = [note.message for note in inspection.notes if note.code == "paint_simplified"]
    assert "threemf_paint" not in note and "(12)" in note


def test_a_changed_mesh_is_not_divided() -> None:
    mesh = brick()
    source = project("bambu", {"a": paint_triangles(mesh, {0: ' paint_color="84843"'})})
    (split,) = read(source, ThreeMFReadOptions(threemf_paint="split")).meshes
    assert split.division is not None
    assert np.array_equal(split.division.triangles, mesh.faces)
    assert len(split.division.owner) == len(split.faces) > 12
    assert replace(split, name="other").division is None
    mirror = placed_mesh(split, np.diag([-1.0, 1, 1, 1]))
    assert mirror.division is not None
    assert np.array_equal(mirror.division.triangles, mesh.faces[:, ::-1])


def test_lib3mf_reads_painted_triangles_in_strict_mode(tmp_path: Path) -> None:
    path = tmp_path / "a.3mf"
    convert(project_texture(brick(30, 20, 10), draw_quarters()), path, reduce_colors=4, threemf_profile="prusa")
    reader = lib3mf.get_wrapper().CreateModel().QueryReader("3mf")
    reader.SetStrictModeActive(True)
    reader.ReadFromFile(str(path))
    assert reader.GetWarningCount() == 0


@pytest.mark.skipif(shutil.which("prusa-slicer") is None, reason="Debian's prusa-slicer is not installed")
def test_prusaslicer_prints_each_side_with_its_tool(tmp_path: Path) -> None:
    """The outer walls at X = 0 and at X = 30 have different filaments, like both halves of the others."""
    path, code = tmp_path / "a.3mf", tmp_path / "a.gcode"
    pixels = draw_quarters()
    pixels[4:] = pixels[:4]
    convert(
        project_texture(brick(30, 20, 3), pixels),
        path,
        reduce_colors_palette="#C81428,#0052B4,#FFFFFF",
        threemf_profile="prusa",
    )
    assert any(len(text) > 3 for text in read_codes(path))
    subprocess.run(["prusa-slicer", "--export-gcode", path, "-o", code], check=True, capture_output=True)
    tool, kind, x = 0, "", 0.0
    places: dict[int, list[float]] = {0: [], 1: []}
    for line in code.read_text().splitlines():
        if match := re.fullmatch(r"T(\d+)", line):
            tool = int(match[1])
        elif line.startswith(";TYPE:"):
            kind = line[6:]
        elif match := re.match(r"G1 X([\d.]+) Y[\d.]+ E[\d.]+", line):
            if kind == "External perimeter":
                places[tool].append((x + float(match[1])) / 2)
            x = float(match[1])
        elif match := re.match(r"G1 X([\d.]+)", line):
            x = float(match[1])
    middle = (min(min(row) for row in places.values()) + max(max(row) for row in places.values())) / 2
    assert len(places[0]) > 20 and len(places[1]) > 20
    assert (np.mean(places[0]) < middle) is not (np.mean(places[1]) < middle)
    for row in places.values():
        side = np.sign(np.mean(row) - middle)
        assert all((place - middle) * side > -0.5 for place in row)
