"""Reduction of colors: palettes, borders, reports, and scenes that stay closed."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Picture

from meshhub import InvalidOption, Registry
from meshhub.builtin_plugins.reduce_colors import ReduceColorsOptions, operation, subdivide
from meshhub.builtin_plugins.reduce_colors.operation import run
from meshhub.model.notes import collecting
from meshhub.model.scene import Image, Material, Mesh, Part, Scene, UInt8
from meshhub.toolkit.colors import convert_from_oklab, convert_to_lab, convert_to_oklab, measure_delta_e
from meshhub.toolkit.geometry import soup
from meshhub.toolkit.surface_colors import Surface, get_face_materials
from meshhub.toolkit.topology import is_closed
from models import assert_valid, brick, sphere, volume

pytestmark = [pytest.mark.once, pytest.mark.process]

RED, BLUE, WHITE, BLACK = (200, 20, 40), (0, 82, 180), (255, 255, 255), (0, 0, 0)


def paint_image(pixels: UInt8) -> Image:
    data = io.BytesIO()
    Picture.fromarray(pixels).save(data, "PNG")
    return Image(data.getvalue(), "image/png")


def draw_halves(left: tuple[int, int, int] = RED, right: tuple[int, int, int] = BLUE) -> UInt8:
    """Return a picture with a vertical border."""
    pixels = np.empty((8, 8, 3), np.uint8)
    pixels[:, :4], pixels[:, 4:] = left, right
    return pixels


def project_texture(mesh: Mesh, pixels: UInt8, **material: Any) -> Scene:
    """Return a scene with a mesh whose texture is projected along Z onto its bounding box, without repetition."""
    low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
    uv = (mesh.vertices[:, :2] - low[:2]) / (high - low)[:2]
    description = Material(base_color_image=0, filter="nearest", wrap=("clamp", "clamp"))
    return Scene(
        (replace(mesh, uv=uv),),
        (Part(0, material=0),),
        (replace(description, **material),),
        (paint_image(pixels),),
    )


def reduce_scene(scene: Scene, **options: Any) -> tuple[Scene, Mapping[str, Any]]:
    """Return the scene with reduced colors, and the figures."""
    with collecting("test") as remarks:
        result = run(scene, ReduceColorsOptions(**options))
    return result, remarks.figures


def measure_areas(scene: Scene) -> dict[tuple[int, ...], float]:
    """Return the area of each color."""
    areas: dict[tuple[int, ...], float] = {}
    for part in scene.parts:
        mesh = scene.meshes[part.mesh]
        a, b, c = (mesh.vertices @ part.transform[:3, :3].T)[mesh.faces].transpose(1, 0, 2)
        size = np.linalg.norm(np.cross(b - a, c - a), axis=1) / 2
        used = get_face_materials(scene, Surface(part.mesh, part.material))
        assert used.min() >= 0
        for number, material in enumerate(scene.materials):
            color = tuple(round(255 * value) for value in material.base_color[:3])
            areas[color] = areas.get(color, 0) + float(size[used == number].sum())
    return areas


def test_triangles_are_split_along_the_border() -> None:
    scene = project_texture(brick(20, 20, 20), draw_halves())
    result, figures = reduce_scene(scene, reduce_colors=2, reduce_colors_borders="exact")
    assert_valid(result)
    areas = measure_areas(result)
    assert areas == pytest.approx({RED: 1200, BLUE: 1200}, rel=0.01)
    assert figures["delta_e_mean"] < 0.3
    assert figures["delta_e_p95"] == 0
    assert figures["filament_areas_mm2"] == pytest.approx([areas[RED], areas[BLUE]], rel=0.001)
    assert figures["leaves"] == result.face_count < 2000


@pytest.mark.parametrize("borders", ["exact", "smooth"])
@pytest.mark.parametrize("mesh", [brick(30, 20, 10), sphere(15)], ids=["brick", "sphere"])
def test_a_closed_mesh_stays_closed_and_keeps_its_shape(mesh: Mesh, borders: str) -> None:
    random = np.random.default_rng(5)
    scene = project_texture(mesh, random.integers(0, 256, (16, 16, 3), np.uint8), filter="linear")
    result, _ = reduce_scene(scene, reduce_colors=5, reduce_colors_borders=borders, reduce_colors_cell_mm=1)
    assert result.face_count > 2 * scene.face_count
    assert is_closed(*soup(result))
    assert volume(*soup(result)) == pytest.approx(volume(*soup(scene)))
    assert len(result.materials) == 5


def test_palettes_are_the_same_each_time() -> None:
    random = np.random.default_rng(5)
    scene = project_texture(sphere(15), random.integers(0, 256, (16, 16, 3), np.uint8))
    first, second = (reduce_scene(scene, reduce_colors=6)[0] for _ in range(2))
    assert first.materials == second.materials
    assert np.array_equal(first.meshes[0].vertices, second.meshes[0].vertices)


def test_pure_white_and_black_stay_entries() -> None:
    pixels = np.linspace(0, 255, 64).astype(np.uint8)[None, :, None].repeat(64, 0).repeat(3, 2).copy()
    pixels[:12], pixels[52:] = WHITE, BLACK
    result, _ = reduce_scene(project_texture(brick(20, 20, 2), pixels), reduce_colors=5)
    colors = {tuple(round(255 * value) for value in material.base_color[:3]) for material in result.materials}
    assert {WHITE, BLACK} <= colors


def test_white_that_is_not_used_is_no_entry() -> None:
    result, _ = reduce_scene(project_texture(brick(20, 20, 2), draw_halves()), reduce_colors=4)
    assert set(measure_areas(result)) == {RED, BLUE}


def get_palette(figures: Mapping[str, Any]) -> set[str]:
    return set(figures["filament_colors"])


def test_a_small_region_of_a_distinct_color_gets_a_filament() -> None:
    """A white eye of 4 mm² on 1000 mm² of shades of yellow."""
    shades = np.linspace(100, 220, 256)[:, None].repeat(256, 1)
    pixels = np.stack([shades, shades * 0.8, shades * 0.05], axis=2).astype(np.uint8)
    rows, columns = np.indices((256, 256)) - 128
    pixels[np.hypot(rows, columns) < 14] = WHITE
    _, figures = reduce_scene(project_texture(brick(20, 20, 2), pixels), reduce_colors=4)
    assert "#FFFFFF" in get_palette(figures)


def test_blends_along_borders_get_no_filament() -> None:
    x = np.linspace(-64, 64, 256)[None, :, None]
    share = np.clip(x / 6 + 0.5, 0, 1)
    pixels = (np.array(RED) * (1 - share) + np.array(BLUE) * share).repeat(256, 0)
    pixels[:40, :60] = (250, 220, 30)
    _, figures = reduce_scene(project_texture(brick(40, 40, 2), pixels.astype(np.uint8)), reduce_colors=3)
    assert get_palette(figures) == {"#C81428", "#0052B4", "#FADC1E"}


def test_a_color_that_most_of_a_cluster_has_stays_exact() -> None:
    pixels = draw_halves((128, 128, 128)).repeat(32, 0).repeat(32, 1)
    pixels[:40, :128] = (134, 130, 127)
    _, figures = reduce_scene(project_texture(brick(20, 20, 2), pixels), reduce_colors=2)
    assert get_palette(figures) == {"#808080", "#0052B4"}


def test_colors_without_an_area_have_a_note() -> None:
    pixels = np.full((256, 256, 3), 255, np.uint8)
    pixels[::64, ::64] = BLACK
    with collecting("test") as remarks:
        run(project_texture(brick(20, 20, 2), pixels), ReduceColorsOptions(reduce_colors=2))
    messages = {note.code: note.message for note in remarks.notes}
    assert messages["filaments_unused"].startswith("1 of 2 colors has only details narrower than 0.4 mm")


def test_filaments_of_the_user_keep_their_names_and_numbers() -> None:
    palette = "#00FF00, Fire red=#D01020\n#101010;#0050B0"
    result, figures = reduce_scene(project_texture(brick(20, 20, 2), draw_halves()), reduce_colors_palette=palette)
    assert [material.name for material in result.materials] == ["Fire red", "Filament 4"]
    assert figures["filament_colors"] == ["#D01020", "#0050B0"]


def test_the_best_filaments_are_chosen() -> None:
    result, figures = reduce_scene(
        project_texture(brick(20, 20, 2), draw_halves()),
        reduce_colors=2,
        reduce_colors_palette="#FFFFFF,#D01020,#00FF00,#0050B0,#808080",
    )
    assert figures["filament_colors"] == ["#D01020", "#0050B0"]
    assert len(result.materials) == 2


@pytest.mark.parametrize(
    ("material", "colors", "expected"),
    [
        ({"base_color": (1.0, 128 / 255, 128 / 255, 1.0)}, None, (255, 128, 128)),
        ({"base_color": (1.0, 128 / 255, 128 / 255, 1.0)}, (128, 255, 255, 255), (128, 128, 128)),
        ({"base_color": (1.0, 1.0, 1.0, 0.0), "alpha_mode": "blend"}, None, (0, 0, 255)),
        ({"base_color": (0.0, 1.0, 0.0, 0.4), "alpha_mode": "mask"}, None, (0, 0, 255)),
        ({"base_color": (0.0, 1.0, 0.0, 0.6), "alpha_mode": "mask"}, None, (0, 255, 0)),
        ({"base_color": (0.0, 1.0, 0.0, 0.1)}, None, (0, 255, 0)),
    ],
    ids=["factor", "factor × vertex", "blend", "mask out", "mask in", "opaque"],
)
def test_colors_are_products_over_the_background(
    material: dict[str, Any], colors: tuple[int, ...] | None, expected: tuple[int, int, int]
) -> None:
    mesh = brick()
    if colors is not None:
        mesh = replace(mesh, colors=np.tile(np.array(colors, np.uint8), (len(mesh.vertices), 1)))
    scene = project_texture(mesh, draw_halves(WHITE, WHITE), **material)
    result, _ = reduce_scene(scene, reduce_colors=1, reduce_colors_background="blue")
    assert set(measure_areas(result)) == {expected}


@pytest.mark.parametrize(("emission", "expected"), [(False, BLACK), (True, (255, 0, 0))])
def test_emission_counts_on_request(emission: bool, expected: tuple[int, ...]) -> None:
    scene = project_texture(brick(), draw_halves(BLACK, BLACK), emissive=(1.0, 0.0, 0.0))
    result, _ = reduce_scene(scene, reduce_colors=1, reduce_colors_emission=emission)
    assert set(measure_areas(result)) == {expected}


@pytest.mark.parametrize("wrap", ["repeat", "mirror", "clamp"])
def test_coordinates_outside_the_texture_are_wrapped(wrap: str) -> None:
    scene = project_texture(brick(20, 20, 2), draw_halves(), wrap=(wrap, wrap))
    mesh = scene.meshes[0]
    assert mesh.uv is not None
    # u from 1 to 2: the texture again, the mirrored texture, or its last column
    scene = replace(scene, meshes=(replace(mesh, uv=mesh.uv + np.array([1, 0], np.float32)),))
    result, _ = reduce_scene(scene, reduce_colors=2)
    mesh = result.meshes[0]
    assert mesh.face_material is not None
    centers = mesh.vertices[mesh.faces].mean(axis=1)[:, 0]
    sides = {}
    for side, faces in (("left", abs(centers - 5) < 4), ("right", abs(centers - 15) < 4)):
        numbers = np.unique(mesh.face_material[faces])
        assert len(numbers) == 1
        sides[side] = tuple(round(255 * value) for value in result.materials[numbers[0]].base_color[:3])
    expected = {"repeat": (RED, BLUE), "mirror": (BLUE, RED), "clamp": (BLUE, BLUE)}
    assert (sides["left"], sides["right"]) == expected[wrap]


def test_smooth_borders_remove_speckles() -> None:
    pixels = draw_halves().repeat(8, 0).repeat(8, 1)
    pixels[30, 20] = BLUE
    scene = project_texture(brick(20, 20, 2), pixels)
    # the pixel has 0.1 mm², less than a cell
    for borders, has_speckle in (("exact", True), ("smooth", False)):
        result, _ = reduce_scene(scene, reduce_colors=2, reduce_colors_borders=borders)
        mesh = result.meshes[0]
        assert mesh.face_material is not None
        is_left = mesh.vertices[mesh.faces][..., 0].max(axis=1) < 8
        assert (len(np.unique(mesh.face_material[is_left])) == 2) is has_speckle
        assert measure_areas(result)[BLUE] == pytest.approx(480, abs=0.5)


@pytest.mark.parametrize(("width", "strip_count", "is_kept"), [(3, 1, False), (3, 2, False), (8, 1, True)])
def test_smooth_borders_have_no_strips_that_are_too_narrow_to_print(
    width: int, strip_count: int, is_kept: bool
) -> None:
    """Each pixel has 0.05 mm; half a cell of 0.4 mm is the least width."""
    pixels = np.zeros((8, 400, 3), np.uint8)
    pixels[:, :200] = 255
    grays = [160, 80][:strip_count]
    for number, gray in enumerate(grays):
        pixels[:, 200 + number * width : 200 + (number + 1) * width] = gray
    scene = project_texture(brick(20, 20, 2), pixels)
    palette = ",".join(["#FFFFFF", "#000000", *("#" + 3 * f"{gray:02X}" for gray in grays)])
    exact, _ = reduce_scene(scene, reduce_colors_palette=palette, reduce_colors_borders="exact")
    assert len(measure_areas(exact)) == 2 + strip_count
    smooth, figures = reduce_scene(scene, reduce_colors_palette=palette)
    assert len(figures["filaments"]) == (2 + strip_count if is_kept else 2)
    assert is_closed(*soup(smooth))


def test_corners_stay_and_no_slits_cross_a_face() -> None:
    """Each square of the checker has its own area, and borders are on its lines, on a plate of two triangles a side."""
    squares = np.indices((256, 256)) // 32 % 2
    pixels = np.where((squares[0] != squares[1])[..., None], WHITE, RED).astype(np.uint8)
    result, _ = reduce_scene(project_texture(brick(80, 80, 2), pixels), reduce_colors=2)
    mesh = result.meshes[0]
    assert mesh.face_material is not None
    corners = mesh.vertices[mesh.faces]
    is_top = (corners[..., 2] > corners[..., 2].max() - 1e-6).all(axis=1)
    corners, material = corners[is_top], mesh.face_material[is_top]
    pairs: dict[frozenset[tuple[float, ...]], set[int]] = {}
    for corner, number in zip(corners.tolist(), material.tolist(), strict=True):
        for side in range(3):
            pairs.setdefault(frozenset((tuple(corner[side]), tuple(corner[(side + 1) % 3]))), set()).add(number)
    points = np.array([point for pair, numbers in pairs.items() if len(numbers) == 2 for point in pair])[:, :2]
    # squares of 10 mm
    distance = np.abs((points + 5) % 10 - 5).min(axis=1)
    assert np.percentile(distance, 95) < 0.1
    assert distance.max() < 0.3


def test_dithering_mixes_two_filaments() -> None:
    gray = (188, 188, 188)
    scene = project_texture(brick(20, 20, 4), draw_halves(gray, gray))
    result, _ = reduce_scene(scene, reduce_colors_palette="#FFFFFF,#000000", reduce_colors_dither="blue-noise")
    areas = measure_areas(result)
    # gray 188 reflects half of the light
    assert areas[WHITE] / sum(areas.values()) == pytest.approx(0.5, abs=0.05)
    assert is_closed(*soup(result))


def test_instances_stay_shared_and_own_materials_are_respected() -> None:
    materials = (Material("red", (1.0, 0.0, 0.0, 1.0)), Material("blue", (0.0, 0.0, 1.0, 1.0)))
    move = np.eye(4)
    move[0, 3] = 50
    parts = (Part(0, material=0), Part(0, move, material=0), Part(0, move @ move, material=1))
    result, figures = reduce_scene(Scene((brick(),), parts, materials), reduce_colors=3)
    assert [part.mesh for part in result.parts] == [0, 0, 1]
    assert result.face_count == 36
    assert figures["filament_colors"] == ["#FF0000", "#0000FF"] or figures["filament_colors"] == ["#0000FF", "#FF0000"]
    assert sorted(figures["filament_areas_mm2"]) == pytest.approx([2200, 4400])


def test_the_largest_of_several_parts_decides_about_details() -> None:
    scene = project_texture(brick(), draw_halves())
    large, small = np.diag([8.0, 8.0, 8.0, 1.0]), np.diag([0.5, 0.5, 0.5, 1.0])
    small[0, 3] = 300
    options = {"reduce_colors": 2, "reduce_colors_cell_mm": 4}
    alone, figures_alone = reduce_scene(replace(scene, parts=(Part(0, large, material=0),)), **options)
    for transforms in ((large, small), (small, large)):
        parts = tuple(Part(0, transform, material=0) for transform in transforms)
        result, figures = reduce_scene(replace(scene, parts=parts), **options)
        assert np.array_equal(result.meshes[0].faces, alone.meshes[0].faces)
        areas = measure_areas(result)
        assert sorted(figures["filament_areas_mm2"]) == pytest.approx(sorted(areas.values()), rel=1e-3)
        assert sum(areas.values()) == pytest.approx(sum(figures_alone["filament_areas_mm2"]) * (1 + 1 / 256), rel=1e-3)


def test_reduced_colors_are_not_reported_as_lost(tmp_path: Path) -> None:
    registry = Registry(entry_points=False)
    registry.convert(project_texture(brick(), draw_halves()), tmp_path / "a.glb")
    for options in ({"reduce_colors": 2}, {"reduce_colors": 2, "threemf_profile": "prusa"}):
        report = registry.convert(tmp_path / "a.glb", tmp_path / "b.3mf", overwrite=True, options=options)
        lost = {loss.feature for loss in report.losses}
        assert not lost & {"textures", "uv", "colors"}
        assert not {note.code for note in report.notes} & {"textures_dropped", "uv_dropped", "colors_dropped"}
    assert "textures" in {loss.feature for loss in registry.convert(tmp_path / "a.glb", tmp_path / "b.stl").losses}


@pytest.mark.parametrize(
    "options",
    [
        {"reduce_colors": 16},
        {"reduce_colors_palette": ",".join(f"#{n * 12:02X}{240 - n * 12:02X}{n % 2 * 255:02X}" for n in range(20))},
    ],
    ids=["count", "palette"],
)
def test_a_slicer_with_fewer_filaments_gets_a_palette_of_that_size(tmp_path: Path, options: dict[str, Any]) -> None:
    stripes = np.array([[(n * 12, 240 - n * 12, n % 2 * 255) for n in range(20)]], np.uint8)
    scene = project_texture(brick(40, 40, 2), stripes)
    with Registry(entry_points=False) as registry:
        for profile, limit in (("prusa", 15), ("bambu", None)):
            target = tmp_path / f"{profile}.3mf"
            report = registry.convert(scene, target, options={**options, "threemf_profile": profile})
            notes = {note.code for note in report.notes}
            assert "too_many_filaments" not in notes
            assert ("filaments_limited" in notes) is (limit is not None)
            count = len(registry.read(target, threemf_paint="split").used_materials())
            assert count == 15 if limit else count > 15


def test_normals_of_split_triangles_are_interpolated() -> None:
    mesh = sphere(15)
    length = np.linalg.norm(mesh.vertices, axis=1, keepdims=True)
    scene = project_texture(replace(mesh, normals=mesh.vertices / length), draw_halves()[:, 1:])
    result, _ = reduce_scene(scene, reduce_colors=2)
    split = result.meshes[0]
    assert split.normals is not None
    assert len(split.faces) > len(mesh.faces)
    outward = split.vertices / np.linalg.norm(split.vertices, axis=1, keepdims=True)
    assert np.einsum("ij,ij->i", split.normals, outward).min() > 0.99


def test_a_model_without_colors_has_a_note() -> None:
    with collecting("test") as remarks:
        result = run(Scene((brick(),), (Part(0),)), ReduceColorsOptions(reduce_colors=4))
    assert [note.code for note in remarks.notes] == ["no_colors"]
    assert len(result.materials) == 1


def test_details_beyond_the_limit_have_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (operation, subdivide):
        monkeypatch.setattr(module, "MAX_LEAF_COUNT", 20_000)
    random = np.random.default_rng(5)
    scene = project_texture(brick(125, 125, 2), random.integers(0, 256, (320, 320, 3), np.uint8))
    with collecting("test") as remarks:
        result = run(scene, ReduceColorsOptions(reduce_colors=4))
    assert result.face_count <= 20_000
    messages = {note.code: note.message for note in remarks.notes}
    assert messages["color_detail_limited"].endswith("raise 'reduce_colors_cell_mm'")


def test_translucent_filaments_are_matched_by_what_they_show() -> None:
    """A tenth of the white behind it shines through a red wall as thick as its transmission distance."""
    pink = (255, 88, 88)
    pixels = np.concatenate([np.tile(np.uint8(WHITE), (8, 12, 1)), np.tile(np.uint8(pink), (8, 4, 1))], axis=1)
    scene = project_texture(brick(20, 20, 2), pixels)
    palette = "name,hex,td\nWhite,#FFFFFF,6\nRed,#FF0000,1\nPink,#E04858,0\n"
    result, figures = reduce_scene(scene, reduce_colors_palette=palette)
    assert [material.name for material in result.materials] == ["White", "Pink"]
    assert "filament_seen_colors" not in figures
    result, figures = reduce_scene(scene, reduce_colors_palette=palette, reduce_colors_wall_mm=1)
    assert [material.name for material in result.materials] == ["White", "Red"]
    assert figures["filament_colors"] == ["#FFFFFF", "#FF0000"]
    # 0.1 in linear light is 89 of 255 in sRGB
    assert figures["filament_seen_colors"] == ["#FFFFFF", "#FF5959"]
    assert set(measure_areas(result)) == {WHITE, (255, 0, 0)}


def test_walls_far_thicker_than_the_transmission_distance_are_opaque() -> None:
    scene = project_texture(brick(20, 20, 2), draw_halves())
    palette = "name,hex,td\nRed,#D01020,0.5\nBlue,#0050B0,0.4\n"
    _, figures = reduce_scene(scene, reduce_colors_palette=palette)
    _, behind = reduce_scene(scene, reduce_colors_palette=palette, reduce_colors_wall_mm=20)
    assert figures == behind


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"reduce_colors_palette": "brick"}, "lists colors as #RRGGBB, red or name=#RRGGBB"),
        ({"reduce_colors_palette": "red,#ff0000"}, "twice"),
        ({"reduce_colors_palette": "[1,"}, "not valid JSON"),
        ({"reduce_colors_palette": "{}"}, "1 to 1000"),
        ({"reduce_colors_palette": "#FF0000,#ff0000"}, "twice"),
        ({"reduce_colors_palette": ","}, "1 to 1000"),
        ({"reduce_colors_palette": ",".join(f"#0000{n:02X}" for n in range(33))}, "at most 32 of them"),
        ({"reduce_colors_palette": "\ud800=#FF0000"}, "lists colors as"),
        ({"reduce_colors_palette": "a\x01b=#FF0000"}, "lists colors as"),
        ({"reduce_colors": 3, "reduce_colors_palette": "#FF0000,#00FF00"}, "only 2 filaments"),
        ({"reduce_colors": 3, "reduce_colors_background": "snowy"}, "#FF8000"),
        ({"reduce_colors_cell_mm": 1}, "reduce_colors_palette"),
        ({"reduce_colors": 3, "reduce_colors_wall_mm": 1}, "needs filaments with a transmission distance"),
        ({"reduce_colors_palette": "#FF0000,#00FF00", "reduce_colors_wall_mm": 1}, "a column 'td'"),
        ({"reduce_colors_palette": "name,hex,td\nRed,#FF0000,3\n", "reduce_colors_wall_mm": 21}, "at most 20"),
        ({"reduce_colors": 33}, "at most 32"),
    ],
)
def test_invalid_options_are_rejected(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    with Registry() as registry, pytest.raises(InvalidOption, match=words):
        registry.convert(Scene((brick(),), (Part(0),)), tmp_path / "a.ply", **options)


@pytest.mark.parametrize("extension", ["3mf", "ply", "obj", "glb"])
def test_every_format_with_colors_keeps_the_reduced_ones(tmp_path: Path, extension: str) -> None:
    scene = project_texture(brick(20, 20, 2), draw_halves())
    with Registry() as registry:
        registry.convert(scene, tmp_path / f"a.{extension}", reduce_colors=2)
        result = registry.read(tmp_path / f"a.{extension}")
        again, figures = reduce_scene(result, reduce_colors=4)
    areas = measure_areas(again)
    assert areas[RED] == pytest.approx(480, rel=0.02)
    assert areas[BLUE] == pytest.approx(480, rel=0.02)
    assert figures["delta_e_mean"] == pytest.approx(0, abs=0.2)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, 2.5, 0), (73, 25, -18), 27.1492),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((6.7747, -0.2908, -2.4247), (5.8714, -0.0985, -2.2286), 0.6377),
        ((50, 0, 0), (50, -1, 2), 2.3669),
    ],
)
def test_color_differences_are_those_of_the_standard(
    first: tuple[float, ...], second: tuple[float, ...], expected: float
) -> None:
    # test data of Sharma, Wu, Dalal, 2005, table 1
    assert measure_delta_e(np.array(first), np.array(second)) == pytest.approx(expected, abs=1e-4)


def test_color_spaces_are_those_of_their_authors() -> None:
    colors = np.array([WHITE, BLACK, (255, 0, 0)], np.uint8)
    assert convert_to_oklab(colors) == pytest.approx(
        np.array([[1, 0, 0], [0, 0, 0], [0.6280, 0.2249, 0.1258]]), abs=1e-4
    )
    assert convert_to_lab(colors)[2] == pytest.approx(np.array([53.24, 80.09, 67.20]), abs=0.02)
    assert np.array_equal(convert_from_oklab(convert_to_oklab(colors)), colors)
