"""Pictures of measures: walls and overhangs in the colors of the legend, defects and islands marked in their place."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image as Pillow

from meshhub import Registry
from meshhub.model.scene import Mesh, Part, Scene
from meshhub.toolkit.rendering.options import RenderOptions
from meshhub.toolkit.rendering.picture import render
from models import brick, move_mesh, scene_of

pytestmark = pytest.mark.once

SIZE = (480, 480)
MARK = (213, 94, 0)


def draw(scene: Scene, **options: object) -> NDArray[np.uint8]:
    values = {"size": f"{SIZE[0]}x{SIZE[1]}", "edges": "none", **options}
    return render(scene, RenderOptions(**values))  # type: ignore[arg-type]


def find_scale(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The colors of the scale in the legend from left to right."""
    dark = np.array([68, 1, 84])
    is_start = (np.abs(picture[..., :3].astype(int) - dark) <= 2).all(axis=2)
    row = int(np.flatnonzero(is_start.any(axis=1)).mean())
    left = int(np.flatnonzero(is_start[row])[0])
    ink = (picture[row, left:, :3] == (52, 58, 66)).all(axis=1)
    # the mark of the limit also is of the color of letters
    ends = np.flatnonzero(np.diff(ink.astype(int)) == 1)
    return picture[row, left : left + int(ends[-1]), :3]


def legend_value(color: NDArray[np.uint8], scale: NDArray[np.uint8]) -> float:
    """The place of a shaded color in the legend, from 0 to 1."""
    wanted, colors = (values.astype(float) for values in (color, scale))
    shading = (colors @ wanted) / (colors**2).sum(axis=1)
    distance = np.linalg.norm(colors * shading[:, None] - wanted, axis=1)
    distance[(shading < 0.6) | (shading > 1.05)] = np.inf
    assert distance.min() < 6
    return float(distance.argmin() / len(scale))


def test_plates_have_the_colors_of_the_legend() -> None:
    thin, thick = brick(20, 20, 1), move_mesh(brick(20, 20, 3), 30, 0, 0)
    picture = draw(Scene((thin, thick), (Part(0), Part(1))), color_by="thickness", view="top")
    scale = find_scale(picture)
    rows, columns = np.nonzero((picture[:400, :, :3] != picture[0, 0, :3]).any(axis=2))
    row = (rows.min() + rows.max()) // 2
    for share, thickness in ((0.2, 1), (0.8, 3)):
        column = int(columns.min() + share * np.ptp(columns))
        assert legend_value(picture[row, column, :3], scale) * 3.2 == pytest.approx(thickness, abs=0.1)


def test_the_limit_sets_the_scale() -> None:
    plate = scene_of(brick(20, 20, 1))
    values = []
    for limit in (0.5, 2):
        picture = draw(plate, color_by="thickness", view="top", color_limit=limit)
        values.append(legend_value(picture[190, 240, :3], find_scale(picture)) * 4 * limit)
    assert values == pytest.approx([1, 1], abs=0.1)


def test_a_wedge_goes_through_the_scale() -> None:
    corners = brick(40, 20, 4).vertices.copy()
    corners[(corners[:, 0] > 0) & (corners[:, 2] > 0), 2] = 0.2
    picture = draw(scene_of(Mesh(corners, brick().faces)), color_by="thickness", view="top")
    scale = find_scale(picture)
    columns = np.flatnonzero((picture[190, :, :3] != picture[0, 0, :3]).any(axis=1))
    places = columns[0] + (np.array([0.4, 0.6, 0.8]) * len(columns)).astype(int)
    thickness = [legend_value(picture[190, place, :3], scale) * 3.2 for place in places]
    assert thickness == pytest.approx([2.48, 1.72, 0.96], abs=0.2)


@pytest.mark.parametrize("angle", [20, 60])
def test_overhangs_have_the_color_of_their_angle(angle: int) -> None:
    plate, stand = brick(20, 20, 2), brick(2, 2, 2)
    cosine, sine = np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))
    turn = np.array([[cosine, 0, sine], [0, 1, 0], [-sine, 0, cosine]])
    plate = Mesh(plate.vertices @ turn.T + [0, 0, 50], plate.faces)
    picture = draw(Scene((plate, stand), (Part(0), Part(1))), color_by="overhang", view="bottom")
    scale = find_scale(picture)
    colors, counts = np.unique(picture[:380, :, :3].reshape(-1, 3), axis=0, return_counts=True)
    is_colored = (counts > 1000) & (np.ptp(colors, axis=1) > 40)
    values = [legend_value(color, scale) * 90 for color in colors[is_colored]]
    assert any(abs(value - angle) <= 2 for value in values)
    above = draw(Scene((plate, stand), (Part(0), Part(1))), color_by="overhang", view="top")[:380]
    assert np.ptp(above[..., :3].astype(int), axis=2).max() < 12


def test_bodies_that_are_inside_out_are_measured_as_checks_turn_them() -> None:
    table = scene_of(brick(2, 20, 20), move_mesh(brick(20, 20, 2), 0, 0, 20))
    inward = replace(table, meshes=tuple(Mesh(mesh.vertices, mesh.faces[:, ::-1]) for mesh in table.meshes))
    legends = [draw(scene, color_by="islands", view="bottom")[440:] for scene in (table, inward)]
    assert np.array_equal(*legends)
    top = draw(inward, color_by="overhang", view="top")[:380]
    assert np.ptp(top[..., :3].astype(int), axis=2).max() < 12


def is_marked(picture: NDArray[np.uint8]) -> NDArray[np.bool_]:
    result: NDArray[np.bool_] = (picture[..., :3] == MARK).all(axis=2)
    return result


def test_open_edges_are_marked_and_seen_from_behind() -> None:
    mesh = brick(20, 20, 20)
    centers = mesh.vertices[mesh.faces].mean(axis=1)
    lidless = scene_of(Mesh(mesh.vertices, mesh.faces[centers[:, 2] < 19.9]))
    picture = is_marked(draw(lidless, color_by="defects", view="top"))[:440]
    rows, columns = np.nonzero(picture)
    # the border of the lid, and nothing within it
    assert min(np.ptp(rows), np.ptp(columns)) > 300
    assert not picture[rows.min() + 10 : rows.max() - 10, columns.min() + 10 : columns.max() - 10].any()
    above, below = (draw(lidless, color_by="defects", view=view)[:440] for view in ("iso", "iso-below"))
    shown, hidden = is_marked(above).sum(), is_marked(below).sum()
    assert shown > hidden > 100
    assert not is_marked(draw(scene_of(mesh), color_by="defects")).any()


def test_flipped_faces_are_colored() -> None:
    mesh = brick(20, 20, 20)
    faces = mesh.faces.copy()
    top = np.flatnonzero(mesh.vertices[mesh.faces][..., 2].min(axis=1) > 19.9)[0]
    faces[top] = faces[top][::-1]
    picture = draw(scene_of(Mesh(mesh.vertices, faces)), color_by="defects", view="top")
    colors = picture[:440, :, :3]
    colored, drawn = (colors == (204, 121, 167)).all(axis=2).sum(), (colors != colors[0, 0]).any(axis=2).sum()
    assert colored / drawn == pytest.approx(0.5, abs=0.05)


def test_islands_are_circled() -> None:
    scene = Scene((brick(60, 60, 2), move_mesh(brick(2, 2, 2), 5, 29, 20)), (Part(0), Part(1)))
    rows, columns = np.nonzero(is_marked(draw(scene, color_by="islands", view="top"))[:440])
    assert np.ptp(rows) == pytest.approx(np.ptp(columns), abs=2)
    assert 14 <= np.ptp(rows) <= 60
    assert columns.mean() < 150
    assert not is_marked(draw(scene_of(brick(60, 60, 2)), color_by="islands")).any()


def test_a_measure_of_a_file_before_and_after(tmp_path: Path) -> None:
    with Registry(entry_points=False) as registry:
        model = tmp_path / "plate.stl"
        registry.write(scene_of(brick(20, 20, 0.5)), model)
        look = {"color_by": "thickness", "size": "480x480", "view": "top"}
        registry.render(model, tmp_path / "a.png", scale_percent=400.0, options=look)
    with Pillow.open(io.BytesIO((tmp_path / "a.png").read_bytes())) as image:
        picture = np.asarray(image.convert("RGBA"))
    scale = find_scale(picture)
    values = [legend_value(picture[200, column, :3], scale) * 3.2 for column in (120, 360)]
    assert values == pytest.approx([0.5, 2], abs=0.1)


@pytest.mark.parametrize("colors", ["thickness", "overhang", "defects", "islands"])
@pytest.mark.parametrize("size", ["16x16", "64x40", "300x40"])
def test_small_pictures_and_flat_models(colors: str, size: str) -> None:
    flat = scene_of(Mesh(np.array([(0, 0, 0), (9, 0, 0), (0, 9, 0)], float), np.array([(0, 1, 2)], np.int32)))
    for scene in (flat, scene_of(brick())):
        picture = draw(scene, color_by=colors, size=size, background="dark")
        assert "x".join(map(str, picture.shape[1::-1])) == size
