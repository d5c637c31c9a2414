"""Pictures of scenes: what is where, in which color, without gaps; and the PNG files of them."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image as Pillow

from meshhub.errors import InvalidOption
from meshhub.model.notes import collecting
from meshhub.model.scene import Image, Material, Mesh, Part, Scene
from meshhub.pipeline.purposes import RESERVED
from meshhub.toolkit.images import decode_image
from meshhub.toolkit.png import encode_png
from meshhub.toolkit.rendering.lettering import blend_text, draw_text
from meshhub.toolkit.rendering.options import RenderOptions
from meshhub.toolkit.rendering.picture import render
from meshhub.toolkit.rendering.visibility import find_visible
from models import brick, move_mesh, scene_of, sphere

pytestmark = pytest.mark.once

RED, GREEN, BLUE = (1.0, 0.0, 0.0, 1.0), (0.0, 1.0, 0.0, 1.0), (0.0, 0.0, 1.0, 1.0)


def draw(scene: Scene, **options: str) -> NDArray[np.uint8]:
    values = {"size": "200x160", "edges": "none", "background": "transparent", **options}
    return render(scene, RenderOptions(**values))  # type: ignore[arg-type]


def test_no_plug_in_may_take_the_name_of_an_option_of_pictures() -> None:
    assert set(RenderOptions.__struct_fields__) <= RESERVED


def drawn(picture: NDArray[np.uint8]) -> NDArray[np.bool_]:
    return picture[..., 3] == 255


def center_of(picture: NDArray[np.uint8], channel: int) -> tuple[float, float]:
    """Column and row of the middle of what is mostly of one color."""
    colors = picture[..., :3].astype(int)
    rows, columns = np.nonzero(drawn(picture) & (colors[..., channel] > 2 * np.delete(colors, channel, 2).max(2)))
    assert len(rows)
    return float(columns.mean()), float(rows.mean())


def three_colored_bricks(at: tuple[tuple[float, float, float], ...]) -> Scene:
    materials = tuple(Material(base_color=color) for color in (RED, GREEN, BLUE))
    bricks = [move_mesh(brick(10, 10, 10), *position) for position in at]
    return Scene(tuple(bricks), tuple(Part(number, material=number) for number in range(len(at))), materials)


@pytest.mark.parametrize(
    ("view", "right", "up"),
    [
        ("front", (1, 0, 0), (0, 0, 1)),
        ("back", (-1, 0, 0), (0, 0, 1)),
        ("right", (0, 1, 0), (0, 0, 1)),
        ("left", (0, -1, 0), (0, 0, 1)),
        ("top", (1, 0, 0), (0, 1, 0)),
        ("bottom", (1, 0, 0), (0, -1, 0)),
        ("iso", (1, 1, 0), (-1, 1, 2)),
        ("iso-back", (-1, -1, 0), (1, -1, 2)),
        ("iso-below", (1, 1, 0), (1, -1, 2)),
    ],
)
def test_views_show_the_model_from_their_side(
    view: str, right: tuple[float, float, float], up: tuple[float, float, float]
) -> None:
    away = 30 * np.array(right), 30 * np.array(up)
    picture = draw(three_colored_bricks(((0, 0, 0), tuple(away[0]), tuple(away[1]))), view=view)
    (red_x, red_y), (green_x, green_y), (blue_x, blue_y) = (center_of(picture, channel) for channel in range(3))
    assert green_x > red_x + 10
    assert abs(green_y - red_y) < 3
    assert blue_y < red_y - 10
    assert abs(blue_x - red_x) < 3


def test_the_model_is_in_the_middle_with_a_margin() -> None:
    for scene in (scene_of(brick(10, 20, 30)), scene_of(move_mesh(sphere(10), 500, -300, 20))):
        rows, columns = np.nonzero(drawn(draw(scene)))
        assert abs(rows.min() - (159 - rows.max())) <= 2
        assert abs(columns.min() - (199 - columns.max())) <= 2
        assert 5 <= min(rows.min(), columns.min()) <= 15


@pytest.mark.parametrize("indexed", [True, False])
def test_a_closed_surface_has_no_gaps(indexed: bool) -> None:
    mesh = sphere(10, 96)
    if not indexed:
        points = mesh.vertices[mesh.faces.ravel()]
        mesh = Mesh(points, np.arange(len(points), dtype=np.int32).reshape(-1, 3))
    picture = draw(scene_of(mesh), size="300x300")
    rows, columns = np.indices((300, 300)) - 149.5
    radius = np.hypot(rows, columns)
    edge = radius[drawn(picture)].max()
    assert drawn(picture)[radius < edge - 2].all()
    # the far side is never seen: brightness changes smoothly
    inner = picture[..., 0].astype(int)
    inside = (radius < edge * 0.9)[:, 1:]
    assert np.abs(np.diff(inner, axis=1))[inside].max() < 12


def test_what_is_nearer_hides_what_is_behind() -> None:
    scene = three_colored_bricks(((0, 0, 0), (0, 20, 0)))
    for view, channel in (("front", 0), ("back", 1)):
        picture = draw(scene, view=view)
        colors = picture[drawn(picture)][:, :3]
        assert (colors[:, channel] > 60).all()
        assert not np.delete(colors, channel, 1).any()


def test_both_sides_of_an_open_surface_are_shown() -> None:
    corners = np.array([(0, 0, 0), (10, 0, 0), (10, 0, 10), (0, 0, 10)], float)
    scene = scene_of(Mesh(corners, np.array([(0, 1, 2), (0, 2, 3)], np.int32)))
    front, back = draw(scene, view="front"), draw(scene, view="back")
    assert drawn(front).sum() == drawn(back).sum() > 1000
    assert front[80, 100, :3].sum() > back[80, 100, :3].sum() > 0


def test_a_box_has_three_different_sides_and_lines() -> None:
    picture = draw(scene_of(brick(10, 10, 10)), edges="feature", size="400x400")
    colors, counts = np.unique(picture[drawn(picture)][:, :3], axis=0, return_counts=True)
    sides = colors[np.argsort(-counts)[:3]].astype(int).sum(axis=1)
    assert np.diff(np.sort(sides)).min() > 60
    dark = drawn(picture) & (picture[..., :3].sum(axis=2) < 150)
    plain = draw(scene_of(brick(10, 10, 10)), size="400x400")
    assert 300 < dark.sum() < 6000
    assert (plain[drawn(plain)][:, :3].sum(axis=1) > 200).all()
    mesh_lines = draw(scene_of(brick(10, 10, 10)), edges="mesh", size="400x400")
    assert (drawn(mesh_lines) & (mesh_lines[..., :3].sum(axis=2) < 150)).sum() > dark.sum() + 150


def test_mirrored_and_instanced_parts() -> None:
    mesh = replace(brick(10, 10, 10), colors=np.tile(np.array([255, 0, 0, 255], np.uint8), (8, 1)))
    mirror = np.diag([-1.0, 1, 1, 1])
    mirror[0, 3] = -5
    picture = draw(Scene((mesh,), (Part(0), Part(0, mirror))), view="front")
    columns = np.flatnonzero(drawn(picture).any(axis=0))
    assert len(np.flatnonzero(np.diff(columns) > 1)) == 1
    # both are seen from outside: equally bright
    colors = picture[80, [columns[10], columns[-10]], 0]
    assert colors[0] == colors[1] > 60


def test_the_sides_of_a_black_part_differ() -> None:
    mesh = replace(brick(20, 20, 20), face_material=np.zeros(12, np.int32))
    scene = Scene((mesh,), (Part(0),), (Material(base_color=(0, 0, 0, 1)),))
    picture = draw(scene, view="iso", size="160x160", edges="none")
    shades, counts = np.unique(picture[drawn(picture)][:, 0], return_counts=True)
    sides = shades[counts > 1000]
    assert len(sides) == 3 and np.diff(sides).min() >= 3


def test_colors_of_vertices_faces_and_textures() -> None:
    corners = np.array([(0, 0, 0), (10, 0, 0), (10, 0, 10), (0, 0, 10)], float)
    faces = np.array([(0, 1, 2), (0, 2, 3)], np.int32)
    colors = np.array([(255, 0, 0, 255), (0, 0, 255, 255), (0, 0, 255, 255), (255, 0, 0, 255)], np.uint8)
    blended = draw(scene_of(Mesh(corners, faces, colors=colors)), view="front", size="160x160")
    row = blended[80]
    columns = np.flatnonzero(row[:, 3] == 255)
    assert row[columns[3], 0] > 150 > 40 > row[columns[3], 2]
    assert row[columns[-3], 2] > 150 > 40 > row[columns[-3], 0]
    assert (np.diff(row[columns, 0].astype(int)) <= 1).all()

    uv = np.array([(0, 0), (2, 0), (2, 1), (0, 1)], np.float32)
    stream = io.BytesIO()
    pixels = np.array([[(255, 0, 0), (0, 255, 0)], [(0, 0, 255), (255, 255, 0)]], np.uint8)
    Pillow.fromarray(pixels).save(stream, "png")
    textured = Scene(
        (Mesh(corners, faces, uv=uv, face_material=np.zeros(2, np.int32)),),
        (Part(0),),
        (Material(base_color_image=0, unlit=True),),
        (Image(stream.getvalue(), "image/png"),),
    )
    picture = draw(textured, view="front", size="160x160")
    rows, columns = np.flatnonzero(drawn(picture).any(axis=1)), np.flatnonzero(drawn(picture).any(axis=0))
    at = np.ix_(
        rows[0] + len(rows) * np.array((1, 3)) // 4, columns[0] + len(columns) * np.array((1, 3, 5)) // 8, range(3)
    )
    color = picture[at].tolist()
    assert color == [[[255, 0, 0], [0, 255, 0], [255, 0, 0]], [[0, 0, 255], [255, 255, 0], [0, 0, 255]]]


def test_a_broken_texture_is_noted_and_the_model_still_drawn() -> None:
    mesh = replace(brick(), uv=np.zeros((8, 2), np.float32))
    scene = Scene(
        (mesh,), (Part(0, material=0),), (Material(base_color_image=0),), (Image(b"\x89PNG broken", "image/png"),)
    )
    with collecting("render") as remarks:
        picture = draw(scene)
    assert drawn(picture).sum() > 1000
    assert [note.code for note in remarks.notes] == ["texture_not_shown"]


def test_huge_images_are_not_decoded() -> None:
    stream = io.BytesIO()
    Pillow.new("1", (20_000, 20_000)).save(stream, "png")
    assert decode_image(stream.getvalue()) is None


def test_parts_get_colors_and_a_legend() -> None:
    scene = three_colored_bricks(((0, 0, 0), (20, 0, 0), (40, 0, 0)))
    scene = replace(scene, parts=tuple(replace(part, name=f"arm {number}") for number, part in enumerate(scene.parts)))
    picture = draw(scene, color_by="part", background="light", size="400x300", view="top")
    above = picture[:270]
    colors = {tuple(color) for color in above.reshape(-1, 4)[:, :3].tolist()}
    assert len(colors) >= 4
    gray = draw(scene, color_by="none", view="top")
    assert np.ptp(gray[drawn(gray)][:, :3], axis=0).max() < 8
    # the legend is below the model and differs with the names
    renamed = replace(scene, parts=tuple(replace(part, name=part.name + "x") for part in scene.parts))
    other = draw(renamed, color_by="part", background="light", size="400x300", view="top")
    changed = np.flatnonzero((picture != other).any(axis=(1, 2)))
    assert changed.min() > 270


def test_several_views_share_a_picture_and_a_scale() -> None:
    picture = draw(scene_of(brick(10, 20, 30)), view="front,right,top,iso", size="400x400")
    tiles = [drawn(picture[y : y + 200, x : x + 200][20:]) for y in (0, 200) for x in (0, 200)]
    widths = [np.flatnonzero(tile.any(axis=0)) for tile in tiles[:3]]
    spans = [columns[-1] - columns[0] + 1 for columns in widths]
    assert abs(spans[1] / spans[0] - 2) < 0.1
    assert abs(spans[2] / spans[0] - 1) < 0.1


def test_a_scene_is_drawn_before_and_after_with_its_palette() -> None:
    colors = (RED, GREEN, BLUE)
    before, after = (
        Scene((brick(size, size, size),), (Part(0, material=0),), (Material("Fire", color),))
        for size, color in ((10, colors[0]), (400, colors[1]))
    )
    options = RenderOptions(view="front,top", size="400x300", edges="none", background="light")
    picture = render(after, options, before)
    # two rows of views, the scene before on the left, each at a scale of its own
    red, green = (
        (picture[..., channel] > 80) & (np.delete(picture[..., :3], channel, 2).max(2) < 20) for channel in range(2)
    )
    for mask, columns in ((red, slice(0, 200)), (green, slice(200, 400))):
        for rows in (slice(0, 130), slice(150, 270)):
            assert mask[rows, columns].sum() > 4000
    assert not red[:, 200:].any() and not green[:270, :200].any()
    # the legend has the palette of the result alone
    assert (picture[270:] == (0, 255, 0, 255)).all(axis=2).sum() > 20
    assert not np.array_equal(
        picture[270:], render(replace(after, materials=(Material("Grass", GREEN),)), options, before)[270:]
    )
    # it lists the share of the surface, so it differs with the areas
    halves = [
        replace(
            after,
            meshes=(
                replace(
                    after.meshes[0], face_material=(np.arange(len(after.meshes[0].faces)) >= count).astype(np.int32)
                ),
            ),
            materials=(Material("Grass", GREEN), Material("Grass", GREEN)),
        )
        for count in (2, 6)
    ]
    legends = [render(scene, options, before)[270:] for scene in halves]
    assert not np.array_equal(*legends)
    textured = replace(after, meshes=(replace(after.meshes[0], colors=np.full((8, 4), 255, np.uint8)),))
    assert not (render(textured, options, before)[270:] == (0, 255, 0, 255)).all(axis=2).any()


@pytest.mark.parametrize("background", ["light", "dark", "transparent"])
def test_png_files_are_read_by_others_and_always_the_same(background: str) -> None:
    picture = draw(scene_of(sphere()), background=background, edges="feature", size="123x77")
    assert picture.shape == (77, 123, 4)
    data = encode_png(picture)
    with Pillow.open(io.BytesIO(data)) as image:
        image.load()
        assert image.mode == ("RGBA" if background == "transparent" else "RGB")
        assert np.array_equal(np.asarray(image.convert("RGBA")), picture)
    assert encode_png(draw(scene_of(sphere()), background=background, edges="feature", size="123x77")) == data


@pytest.mark.parametrize("size", ["", "100", "100x", "x100", "15x100", "100x4097", "100x100x100", "-1x20", "1e3x100"])
def test_a_wrong_size_is_an_error(size: str) -> None:
    with pytest.raises(InvalidOption, match="size"):
        draw(scene_of(brick()), size=size)


@pytest.mark.parametrize("view", ["", "side", "iso,", "iso,iso", "front;top"])
def test_a_wrong_view_is_an_error(view: str) -> None:
    with pytest.raises(InvalidOption, match="view"):
        draw(scene_of(brick()), view=view)


def test_flat_needle_and_degenerate_triangles() -> None:
    points = np.array([(0, 0, 0), (10, 0, 0), (0, 10, 0), (5, 5, 0), (1e-9, 0, 1e-9)], float)
    faces = np.array([(0, 1, 2), (0, 0, 0), (1, 2, 3), (0, 4, 0), (0, 1, 4)], np.int32)
    for view in ("iso", "front", "top"):
        assert draw(scene_of(Mesh(points, faces)), view=view).shape == (160, 200, 4)
    assert drawn(draw(scene_of(Mesh(points, faces)), view="top")).sum() > 5000
    point = Mesh(np.zeros((3, 3)), np.array([(0, 1, 2)], np.int32))
    assert not drawn(draw(scene_of(point))).any()


coordinate = st.integers(-8 * 64, 40 * 64).map(lambda value: value / 64)


@settings(max_examples=150)
@given(
    st.lists(st.tuples(*[st.tuples(coordinate, coordinate, st.integers(0, 100))] * 3), min_size=1, max_size=12),
    st.booleans(),
)
def test_every_sample_shows_the_nearest_triangle_around_it(
    triangles: list[tuple[tuple[float, float, int], ...]], in_one_plane: bool
) -> None:
    corners = np.array(triangles, float).reshape(-1, 3)
    if in_one_plane:
        corners[:, 2] = 7
    x, y, depth = corners.T.astype(np.float32)
    faces = np.arange(len(corners), dtype=np.int32).reshape(-1, 3)
    width, height = 32, 24
    visible = find_visible(x, y, depth, faces, width, height)
    nearest = np.full(width * height, np.inf)
    sure = np.zeros(width * height, np.bool_)
    rows, columns = np.divmod(np.arange(width * height), width)
    for a, b, c in corners.reshape(-1, 3, 3):
        area = (b[0] - a[0]) * (c[1] - a[1]) - (c[0] - a[0]) * (b[1] - a[1])
        if area == 0:
            continue
        px, py = columns + 0.5 - a[0], rows + 0.5 - a[1]
        second = (px * (c[1] - a[1]) - py * (c[0] - a[0])) / area
        third = (py * (b[0] - a[0]) - px * (b[1] - a[1])) / area
        inside = np.minimum(np.minimum(second, third), 1 - second - third)
        covers = inside > 1e-4
        nearest[covers] = np.minimum(nearest, a[2] + second * (b[2] - a[2]) + third * (c[2] - a[2]))[covers]
        # a center within rounding of a side may or may not belong to the triangle
        sure |= np.abs(inside) < 1e-4
    depth = np.full(width * height, np.inf)
    depth[visible.position] = visible.depth
    clear = ~sure
    assert np.array_equal(np.isfinite(depth[clear]), np.isfinite(nearest[clear]))
    both = clear & np.isfinite(nearest)
    assert np.allclose(depth[both], nearest[both], atol=0.05)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_triangles_that_share_sides_cover_every_sample_once(seed: int) -> None:
    generator = np.random.default_rng(seed)
    count = 9
    grid = np.stack(np.meshgrid(np.linspace(0, 32, count), np.linspace(0, 32, count)), axis=-1)
    grid[1:-1, 1:-1] += generator.uniform(-0.9, 0.9, (count - 2, count - 2, 2))
    points = np.rint(grid.reshape(-1, 2) * 64) / 64
    index = np.arange(count * count).reshape(count, count)
    a, b, c, d = (part.ravel() for part in (index[:-1, :-1], index[:-1, 1:], index[1:, 1:], index[1:, :-1]))
    faces = np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)]).astype(np.int32)
    x, y = points.T.astype(np.float32)
    alone = [
        find_visible(x, y, np.zeros(len(x), np.float32), faces[number : number + 1], 32, 32).position
        for number in range(len(faces))
    ]
    assert np.array_equal(np.sort(np.concatenate(alone)), np.arange(32 * 32))


def test_letters_have_smooth_borders() -> None:
    assert set(np.unique(draw_text("Ax0", 1)).tolist()) == {0, 1}
    for scale in (2, 3, 8):
        coverage = draw_text("A/o", scale)
        assert coverage.shape == (8 * scale, 18 * scale)
        partial = (coverage > 0) & (coverage < 1)
        assert 0.05 < partial.mean() < 0.5
        # the middle of each pixel of the font stays
        assert coverage[:, : 6 * scale].max() == 1
    picture = np.zeros((16, 36, 4), np.uint8)
    blend_text(picture, draw_text("A/o", 2), (200, 100, 50))
    assert set(map(tuple, picture[picture[..., 3] > 0][:, :3].tolist())) == {(200, 100, 50)}
    assert len(np.unique(picture[..., 3])) > 3
    white = np.full((10, 12, 4), 255, np.uint8)
    blend_text(white, draw_text("A/o", 2), (0, 0, 0))
    assert (white[..., 3] == 255).all()
    assert len(np.unique(white[..., 0])) > 3
