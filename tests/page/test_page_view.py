"""Tools of the 3D view: measuring, sections, directions, parts, pictures and comparisons."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from meshhub import Registry
from meshhub.model.scene import Material, Mesh, Part, Scene
from meshhub.toolkit.geometry import bounds_of_parts
from page_visits import Visit, convert, download, draw, operation, pick

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
SIZE_MM = (40.0, 20.0, 10.0)
QUADS = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
COLOR_TOLERANCE = 10
"""Levels of 255 by which the pixels of one lit face differ; the background differs by more."""


class Silhouette(NamedTuple):
    """Rectangle of a face in the window, in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def ratio(self) -> float:
        return (self.right - self.left) / (self.bottom - self.top)


def box(offset: float = 0.0) -> Mesh:
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], dtype=np.float64) * SIZE_MM
    faces = np.array([[quad[k] for k in triple] for quad in QUADS for triple in ((0, 1, 2), (0, 2, 3))], dtype=np.int32)
    return Mesh(vertices=corners + (offset, 0.0, 0.0), faces=faces)


def open_box(visit: Visit, folder: Path) -> Any:
    path = folder / "box.stl"
    Registry().write(Scene(meshes=(box(),), parts=(Part(0, np.eye(4)),)), path)
    page = visit.open()
    pick(page, path)
    return page


def look(page: Any, *buttons: str) -> None:
    """Choose a direction or projection, and close the tool."""
    page.get_by_role("button", name="Views").click()
    for name in buttons:
        page.get_by_role("button", name=name, exact=True).click()
    page.get_by_role("group", name="Views").get_by_role("button", name="Close").click()


def find_face(page: Any) -> Silhouette:
    """Return the rectangle of the face in the middle of the view."""
    pixels = draw(page)
    row, column = pixels.shape[0] // 2, pixels.shape[1] // 2
    is_face = np.abs(pixels - pixels[row, column]).max(axis=2) < COLOR_TOLERANCE
    # along the middle lines, because texts over the view may have the color of the face
    rows, columns = np.flatnonzero(is_face[:, column]), np.flatnonzero(is_face[row])
    left, top = page.evaluate(
        "(({ left, top }) => [left, top])(document.querySelector('canvas').getBoundingClientRect())"
    )
    sides = (left + columns.min(), top + rows.min(), left + columns.max() + 1, top + rows.max() + 1)
    return Silhouette(*map(float, sides))


def count_changed(before: np.ndarray, after: np.ndarray) -> int:
    return int((np.abs(before - after).max(axis=2) > 40).sum())


@pytest.mark.parametrize(
    ("tool", "corners", "value"),
    [
        ("Distance", 2, "40 mm"),
        ("Angle", 3, "90°"),
        ("Radius", 3, "R 22.36 mm"),
    ],
)
def test_corners_are_measured(visit: Visit, tmp_path: Path, tool: str, corners: int, value: str) -> None:
    page = open_box(visit, tmp_path)
    look(page, "Orthographic", "Top")
    face = find_face(page)
    page.get_by_role("button", name="Measure", exact=True).click()
    page.get_by_role("button", name=tool, exact=True).click()
    page.locator(".picking").wait_for()
    # a click beside a corner takes the corner
    points = ((face.left + 4, face.top + 4), (face.right - 4, face.top + 4), (face.right - 4, face.bottom - 4))
    for x, y in points[:corners]:
        page.mouse.click(x, y)
    page.get_by_role("group", name="Measure").get_by_role("status").get_by_text(value, exact=True).wait_for()
    page.get_by_role("button", name="Clear").click()
    assert page.locator(".label").count() == 0


def test_wall_thickness_is_measured(visit: Visit, tmp_path: Path) -> None:
    page = open_box(visit, tmp_path)
    look(page, "Top")
    face = find_face(page)
    page.get_by_role("button", name="Measure", exact=True).click()
    page.get_by_role("group", name="Measure").get_by_role("button", name="Wall thickness").click()
    page.locator(".picking").wait_for()
    page.mouse.click((face.left + face.right) / 2, (face.top + face.bottom) / 2)
    page.get_by_role("status").get_by_text("10 mm", exact=True).wait_for()


def test_directions_and_projections(visit: Visit, tmp_path: Path) -> None:
    page = open_box(visit, tmp_path)
    width, depth, height = SIZE_MM
    look(page, "Orthographic")
    for name, ratio in (("Top", width / depth), ("Front", width / height), ("Right", depth / height)):
        look(page, name)
        assert find_face(page).ratio == pytest.approx(ratio, rel=0.02)
    orthographic = draw(page)
    look(page, "Isometric")
    isometric = draw(page)
    assert count_changed(orthographic, isometric) > 10_000
    look(page, "Perspective")
    assert count_changed(isometric, draw(page)) > 1_000


def test_the_view_cube_turns_the_model(visit: Visit, tmp_path: Path) -> None:
    page = open_box(visit, tmp_path)
    width, depth, height = SIZE_MM
    look(page, "Orthographic")
    cube = page.get_by_role("slider", name="Direction of view")
    cube.locator(".cube-cell", has_text=re.compile("^Top$")).click()
    assert find_face(page).ratio == pytest.approx(width / depth, rel=0.02)
    assert cube.get_attribute("aria-valuetext") == "Top"
    cube.focus()
    for name in ("Front, Top", "Front"):
        page.keyboard.press("ArrowDown")
        face = find_face(page)
        assert cube.get_attribute("aria-valuetext") == name
    assert face.ratio == pytest.approx(width / height, rel=0.02)
    # the model fills the view
    assert face.right - face.left > 0.85 * page.locator("canvas").bounding_box()["width"]
    cube.locator(".cube-cell", has_text=re.compile("^Front, Right$")).first.click()
    draw(page)
    assert cube.get_attribute("aria-valuetext") == "Front, Right"


def show_wireframe(page: Any) -> None:
    page.get_by_role("button", name="Display").click()
    page.get_by_role("checkbox", name="Wireframe").check()
    page.get_by_role("group", name="Display").get_by_role("button", name="Close").click()


def test_the_wireframe_is_drawn(visit: Visit) -> None:
    page = visit.open()
    pick(page, EXAMPLES / "bracket-clean.stl")
    plain = draw(page)
    show_wireframe(page)
    assert count_changed(plain, draw(page)) > 500


def test_dimensions_are_drawn(visit: Visit, tmp_path: Path) -> None:
    page = open_box(visit, tmp_path)
    page.get_by_role("button", name="Dimensions").click()
    page.locator(".label").nth(2).wait_for()
    assert sorted(page.locator(".label").all_inner_texts()) == ["10 mm", "20 mm", "40 mm"]


def test_a_click_lays_a_side_on_the_bed(visit: Visit, tmp_path: Path) -> None:
    page = open_box(visit, tmp_path)
    width, depth, height = SIZE_MM
    look(page, "Orthographic", "Right")
    angle = page.get_by_label("Rotate about Y, degrees")
    page.get_by_role("button", name="Lay flat", exact=True).click()
    face = find_face(page)
    plain = draw(page)
    center = ((face.left + face.right) / 2, (face.top + face.bottom) / 2)
    page.mouse.move(*center)
    assert count_changed(plain, draw(page)) > 5_000
    page.mouse.click(*center)
    # the side of 20 × 10 mm is below
    page.get_by_text("Turned about X, Y and Z by 0° · 90° · 0°").wait_for()
    assert angle.input_value() == "90"
    page.mouse.move(5, 5)
    assert find_face(page).ratio == pytest.approx(depth / width, rel=0.02)
    page.get_by_role("button", name="Turn by 90° about Z").click()
    assert find_face(page).ratio == pytest.approx(height / width, rel=0.02)
    for _ in range(2):
        page.keyboard.press("Control+z")
    assert operation(page, "Rotate").is_checked() is False
    assert find_face(page).ratio == pytest.approx(depth / height, rel=0.02)
    # with the keyboard: the side in the middle of the view
    page.locator("canvas").press("Enter")
    page.get_by_text("Turned about X, Y and Z by 0° · 90° · 0°").wait_for()
    convert(page, "Convert to 3MF")
    page.get_by_role("row", name="Size, mm 40 × 20 × 10 10 × 20 × 40").wait_for()


def test_no_inner_side_lies_on_the_bed(visit: Visit) -> None:
    page = visit.open()
    pick(page, ROOT / "examples/bracket.stl")
    look(page, "Orthographic", "Top")
    page.get_by_role("button", name="Lay flat", exact=True).click()
    face = find_face(page)
    # the base plate, beside which the wall rises
    page.mouse.click(face.left + 0.75 * (face.right - face.left), face.top + 0.15 * (face.bottom - face.top))
    page.get_by_text("The model cannot lie on this side").wait_for()
    assert operation(page, "Rotate").is_checked() is False


def drag(page: Any, handle: Any, x: float, y: float) -> None:
    """Drag a handle of the view by pixels."""
    place = handle.bounding_box()
    start = (place["x"] + place["width"] / 2, place["y"] + place["height"] / 2)
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(start[0] + x / 2, start[1] + y / 2)
    page.mouse.move(start[0] + x, start[1] + y)
    page.mouse.up()


def test_the_height_is_dragged_in_the_view(visit: Visit, tmp_path: Path) -> None:
    page = open_box(visit, tmp_path)
    look(page, "Orthographic", "Front")
    face = find_face(page)
    page.get_by_role("button", name="Dimensions").click()
    handle = page.get_by_role("slider", name="Height of the model")
    assert handle.get_attribute("aria-valuetext") == "10 mm"
    draw(page)
    # the handle is at the upper side of the box, of 10 mm; another 10 mm further up
    drag(page, handle, 0, face.top - face.bottom)
    height = page.get_by_label("Target height in mm", exact=True).and_(page.locator("input"))
    assert float(height.input_value()) == pytest.approx(20, abs=0.3)
    draw(page)
    labels = [float(text.removesuffix(" mm")) for text in page.locator(".label").all_inner_texts()]
    assert sorted(labels) == pytest.approx([20, 40, 80], rel=0.02)
    # one step of the history
    page.get_by_role("button", name="Undo").click()
    assert handle.get_attribute("aria-valuetext") == "10 mm"
    handle.focus()
    page.keyboard.press("PageUp")
    page.keyboard.press("ArrowDown")
    assert height.input_value() == "19"
    # the handle follows the field
    height.fill("30")
    page.wait_for_function("document.querySelector('.handle').ariaValueText === '30 mm'")


def test_the_plane_of_a_cut_is_dragged_in_the_view(visit: Visit, tmp_path: Path) -> None:
    page = open_box(visit, tmp_path)
    look(page, "Orthographic", "Front")
    plain, face = draw(page), find_face(page)
    page.get_by_role("switch", name="Cut at planes").check()
    field = page.get_by_label("Cut at planes", exact=True).and_(page.locator("input[type=text]"))
    assert field.input_value() == "z=50%"
    assert count_changed(plain, draw(page)) > 1_000
    field.fill("x=10")
    handle = page.get_by_role("slider", name="Position of the cut along X")
    assert handle.get_attribute("aria-valuetext") == "X 10 mm"
    draw(page)
    drag(page, handle, (face.right - face.left) / 4, 0)
    assert float(field.input_value().removeprefix("x=")) == pytest.approx(20, abs=0.5)
    handle.focus()
    page.keyboard.press("ArrowRight")
    assert float(field.input_value().removeprefix("x=")) == pytest.approx(21, abs=0.5)
    # a plane stays inside of the model; the view moves the handle after the field
    draw(page)
    drag(page, handle, face.right - face.left, 0)
    page.wait_for_function("field => field.value === 'x=40'", arg=field.element_handle())
    # the comma between two planes is no decimal mark
    field.fill("x=10,z=50%")
    page.wait_for_function("document.querySelectorAll('.handle').length === 2")


def write_large_box(folder: Path) -> Path:
    """Write a box of 320 × 160 × 80 mm, from the origin."""
    path = folder / "large.stl"
    mesh = Mesh(vertices=8 * box().vertices, faces=box().faces)
    Registry().write(Scene(meshes=(mesh,), parts=(Part(0, np.eye(4)),)), path)
    return path


def wait_for_cuts(page: Any, *texts: str) -> None:
    """Wait until the view has these handles of cuts, and only these."""
    page.wait_for_function(
        "texts => [...document.querySelectorAll('.handle')].map((each) => each.ariaValueText).join() === texts",
        arg=",".join(texts),
    )


def test_a_planned_cut_for_a_bed_is_dragged_and_the_model_cut_there(visit: Visit, tmp_path: Path) -> None:
    page = visit.open()
    pick(page, write_large_box(tmp_path))
    look(page, "Orthographic", "Front")
    plain, face = draw(page), find_face(page)
    operation(page, "Split for a bed").check()
    field = page.get_by_label("Positions of the cuts", exact=True)
    wait_for_cuts(page, "X 160 mm · planned")
    assert count_changed(plain, draw(page)) > 1_000
    assert field.input_value() == ""
    drag(page, page.get_by_role("slider", name="Position of the cut along X"), (face.right - face.left) / 8, 0)
    page.wait_for_function("field => field.value !== ''", arg=field.element_handle())
    position = float(field.input_value().removeprefix("x="))
    assert position == pytest.approx(200, abs=2)
    wait_for_cuts(page, f"X {position:g} mm")
    page.get_by_role("button", name="Undo").click()
    wait_for_cuts(page, "X 160 mm · planned")
    page.get_by_role("button", name="Redo").click()
    wait_for_cuts(page, f"X {position:g} mm")
    convert(page, "Convert to 3MF")
    pieces = Registry().inspect(download(page, "Download", tmp_path)).model.parts_listed
    assert [piece.size_mm[0] for piece in pieces] == pytest.approx([position, 320 - position], abs=1e-3)


def test_cuts_for_a_bed_are_changed_with_the_keyboard(visit: Visit, tmp_path: Path) -> None:
    page = visit.open("#split_for_bed=220x220x250")
    pick(page, write_large_box(tmp_path))
    field = page.get_by_label("Positions of the cuts", exact=True)
    handle = page.get_by_role("slider", name="Position of the cut along X")
    handle.focus()
    for key in ("PageUp", "ArrowUp", "ArrowLeft"):
        page.keyboard.press(key)
    wait_for_cuts(page, "X 170 mm")
    assert field.input_value() == "x=170"
    for _ in range(6):
        page.keyboard.press("PageUp")
    wait_for_cuts(page, "X 230 mm · piece too large")
    page.get_by_text("A piece is larger than the bed, so it is cut further.").wait_for()
    page.get_by_role("button", name="Add a cut along X").press("Enter")
    wait_for_cuts(page, "X 230 mm", "X 115 mm")
    page.get_by_role("button", name="Add a cut along Y").press("Enter")
    wait_for_cuts(page, "X 230 mm", "X 115 mm", "Y 80 mm")
    handle.first.focus()
    page.keyboard.press("Delete")
    wait_for_cuts(page, "X 115 mm", "Y 80 mm")
    page.get_by_role("button", name="Remove the cut Y 80 mm").press("Enter")
    wait_for_cuts(page, "X 115 mm")
    page.get_by_role("button", name="Undo").click()
    wait_for_cuts(page, "X 115 mm", "Y 80 mm")
    page.get_by_role("button", name="Use the planned cuts").press("Enter")
    wait_for_cuts(page, "X 160 mm · planned")
    assert field.input_value() == ""
    field.fill("x=90,y=50%")
    wait_for_cuts(page, "X 90 mm · piece too large", "Y 50 %")
    page.get_by_text("A piece is larger than the bed, so it is cut further.").wait_for()
    # the service rejects a text that cannot be read
    field.fill("x=90;y=50%")
    wait_for_cuts(page)
    assert page.get_by_text("A piece is larger than the bed, so it is cut further.").count() == 0


def test_planned_cuts_are_those_of_the_service(visit: Visit, tmp_path: Path) -> None:
    options = {
        "rotate_z_deg": "90",
        "scale_percent": "170",
        "split_for_bed": "220x185x100",
        "split_for_bed_connectors": "pegs",
    }
    path = write_large_box(tmp_path)
    page = visit.open("#" + "&".join(f"{name}={value}" for name, value in options.items()))
    pick(page, path)
    page.locator(".handle").first.wait_for()
    draw(page)
    planned = [handle.get_attribute("aria-valuetext").split()[:2] for handle in page.locator(".handle").all()]
    assert {axis for axis, _ in planned} == {"X", "Y", "Z"}
    Registry().convert(path, tmp_path / "pieces.3mf", options=options)
    lower = bounds_of_parts(Registry().read(tmp_path / "pieces.3mf"))[:, 0]
    for axis, number in zip("XYZ", range(3), strict=True):
        offsets = sorted(float(value) for name, value in planned if name == axis)
        assert offsets == pytest.approx(np.unique(lower[:, number].round(1))[1:], abs=0.11)
    # a model that fits is not cut
    page.get_by_label("Scale", exact=False).and_(page.locator("input[type=text]")).fill("50")
    page.get_by_text("The model fits the bed, so nothing is cut.").wait_for()
    wait_for_cuts(page)


def test_a_section_opens_the_model(visit: Visit, tmp_path: Path) -> None:
    page = open_box(visit, tmp_path)

    def count_cut() -> int:
        red, green, blue = np.moveaxis(draw(page), -1, 0)
        return int(((red > green + 40) & (green > blue + 40)).sum())

    assert count_cut() == 0
    page.get_by_role("button", name="Section").click()
    half = count_cut()
    assert half > 2_000
    # the inside of the other half faces away from the viewer
    page.get_by_role("button", name="Flip side").click()
    assert count_cut() < half
    page.get_by_role("button", name="Y", exact=True).click()
    page.get_by_role("slider", name="Position").fill("0")
    page.get_by_role("button", name="Flip side").click()
    page.get_by_role("button", name="Clear").click()
    assert count_cut() == 0


def open_pair(visit: Visit, folder: Path) -> Any:
    """Open two boxes, a red one on the left and a blue one, from the front."""
    path = folder / "pair.3mf"
    red = Material(name="red", base_color=(0.8, 0.0, 0.0, 1.0))
    blue = Material(name="blue", base_color=(0.0, 0.2, 0.8, 1.0))
    parts = (Part(0, np.eye(4), name="left box", material=0), Part(1, np.eye(4), name="right box", material=1))
    Registry().write(Scene(meshes=(box(), box(60.0)), parts=parts, materials=(red, blue)), path)
    page = visit.open()
    pick(page, path)
    look(page, "Orthographic", "Front")
    return page


def test_parts_are_listed_and_hidden(visit: Visit, tmp_path: Path) -> None:
    page = open_pair(visit, tmp_path)
    both = draw(page)
    page.get_by_role("button", name="Parts").click()
    sheet = page.get_by_role("group", name="Parts")
    texts = [" ".join(text.split()) for text in sheet.locator(".part").all_inner_texts()]
    assert {"left box 12", "right box 12"} <= set(texts)
    sheet.get_by_role("checkbox", name="right box").uncheck()
    sheet.get_by_role("button", name="Close").click()
    one = draw(page)
    changed = np.abs(both - one).max(axis=2) > 40
    width = changed.shape[1]
    assert changed[:, width // 2 :].sum() > 2_000
    assert changed[:, : width // 2].sum() < 100


def test_invisible_and_black_materials_are_seen(visit: Visit, tmp_path: Path) -> None:
    path = tmp_path / "ghost.3mf"
    ghost = Material(name="ghost", base_color=(0.8, 0.0, 0.0, 0.0))
    black = Material(name="black", base_color=(0.0, 0.0, 0.0, 1.0))
    parts = (Part(0, np.eye(4), material=0), Part(1, np.eye(4), material=1))
    Registry().write(Scene(meshes=(box(), box(60.0)), parts=parts, materials=(ghost, black)), path)
    page = visit.open()
    pick(page, path)
    look(page, "Orthographic", "Front")
    pixels = draw(page)
    height, width, _ = pixels.shape
    red, green, _ = pixels[height // 2, width // 4]
    assert red > green + 30
    assert pixels[height // 2, 3 * width // 4].min() > 10


def test_a_clicked_part_is_described_hidden_and_isolated(visit: Visit, tmp_path: Path) -> None:
    page = open_pair(visit, tmp_path)
    both = draw(page)
    left, top, width, height = (page.locator("canvas").bounding_box()[name] for name in ("x", "y", "width", "height"))
    page.mouse.click(left + width / 4, top + height / 2)
    card = page.get_by_role("group", name="Selected part")
    card.get_by_role("heading", name="left box").wait_for()
    card.get_by_text("40 × 20 × 10 mm").wait_for()
    assert card.get_by_role("img").get_attribute("aria-label") == "#cc0000"
    # the mark of the selection
    assert count_changed(both, draw(page)) > 2_000
    card.get_by_role("button", name="Isolate").click()
    page.keyboard.press("Escape")
    isolated = draw(page)
    half = isolated.shape[1] // 2
    assert count_changed(both[:, half:], isolated[:, half:]) > 2_000
    # with the keyboard
    canvas = page.locator("canvas")
    canvas.press("a")
    assert count_changed(isolated[:, half:], draw(page)[:, half:]) > 2_000
    page.mouse.click(left + 3 * width / 4, top + height / 2)
    card.get_by_role("heading", name="right box").wait_for()
    canvas.press("h")
    canvas.press("Escape")
    card.wait_for(state="detached")
    # inside of the focus ring
    assert count_changed(isolated[8:-8, half:-8], draw(page)[8:-8, half:-8]) < 100


def test_a_hidden_part_has_no_shadow(visit: Visit, tmp_path: Path) -> None:
    page = open_pair(visit, tmp_path)
    left, top, width, height = (page.locator("canvas").bounding_box()[name] for name in ("x", "y", "width", "height"))
    page.mouse.click(left + 3 * width / 4, top + height / 2)
    page.get_by_role("button", name="View").click()
    page.get_by_role("button", name="Isometric").click()
    page.keyboard.press("Escape")

    def count_shaded() -> int:
        """Return the pixels of the right half below the middle that are darker than the ground."""
        pixels = draw(page)
        rows, columns, _ = pixels.shape
        return int((pixels[rows // 2 : -100, columns // 2 : -20].max(axis=2) < 200).sum())

    assert count_shaded() > 2_000
    page.locator("canvas").press("h")
    assert count_shaded() < 100


def test_a_picture_is_saved(visit: Visit, tmp_path: Path) -> None:
    from PIL import Image

    page = open_box(visit, tmp_path)
    canvas = page.locator("canvas").bounding_box()
    with Image.open(download(page, "Save picture", tmp_path)) as picture:
        assert picture.format == "PNG"
        assert picture.size == (round(canvas["width"]), round(canvas["height"]))
        assert len(picture.convert("RGB").getcolors(1 << 24)) > 3


def test_both_panes_have_one_camera(visit: Visit) -> None:
    page = visit.open()
    pick(page, EXAMPLES / "bracket-clean.stl")
    convert(page, "Convert to 3MF")
    page.get_by_role("group", name="Compare").wait_for()

    def panes() -> tuple[np.ndarray, np.ndarray]:
        # between the buttons above and below, inside of the focus ring and the line in the middle
        pixels = draw(page)[110:600]
        half = pixels.shape[1] // 2
        return pixels[:, 12 : half - 12], pixels[:, half + 12 : 2 * half - 12]

    pictures = []
    for keys in ((), ("ArrowLeft", "ArrowLeft", "ArrowUp", "+")):
        page.locator("canvas").focus()
        for key in keys:
            page.keyboard.press(key)
        before, after = panes()
        assert count_changed(before, after) < before[..., 0].size / 200
        pictures.append(before)
    assert count_changed(*pictures) > 2_000


def test_the_keyboard_moves_the_slider(visit: Visit) -> None:
    page = visit.open()
    pick(page, EXAMPLES / "bracket.stl")
    convert(page, "Repair and save as 3MF")
    compare = page.get_by_role("group", name="Compare")

    def show(mode: str, key: str = "") -> np.ndarray:
        compare.get_by_role("button", name=mode, exact=True).click()
        if key:
            page.get_by_role("slider", name="Boundary between before and after").press(key)
        # beside the thumb and the labels
        return draw(page)[160:600, 90:-90]

    assert count_changed(show("Slider", "Home"), show("After")) < 100
    assert count_changed(show("Slider", "End"), show("Before")) < 100


def test_tools_open_and_close_with_the_keyboard(visit: Visit, tmp_path: Path) -> None:
    page = open_box(visit, tmp_path)
    tool = page.get_by_role("button", name="Section")
    tool.focus()
    page.keyboard.press("Enter")
    sheet = page.get_by_role("group", name="Section")
    sheet.wait_for()
    axis = sheet.get_by_role("button", name="X", exact=True)
    for _ in range(10):
        if axis.evaluate("element => element === document.activeElement"):
            break
        page.keyboard.press("Tab")
    else:
        pytest.fail("the Tab key does not reach the tool")
    page.keyboard.press("Escape")
    sheet.wait_for(state="detached")
    assert tool.evaluate("element => element === document.activeElement")


def test_printers_have_beds(visit: Visit, tmp_path: Path) -> None:
    page = open_box(visit, tmp_path)
    without = draw(page)
    page.get_by_role("button", name="Printer bed").click()
    page.get_by_label("Bed size").select_option("Prusa MINI+ · 180 × 180 × 180")
    assert [page.get_by_label(name, exact=True).input_value() for name in ("Width", "Depth", "Height")] == ["180"] * 3
    page.get_by_text("Fits on the bed.").wait_for()
    assert count_changed(without, draw(page)) > 1_000


def test_a_bed_is_seen_whole(visit: Visit, tmp_path: Path) -> None:
    page = open_box(visit, tmp_path)
    page.get_by_role("button", name="Dimensions").click()
    page.locator(".label").nth(2).wait_for()

    def measure() -> float:
        """Return the pixels between two sides of the box, which the view shows as labels."""
        draw(page)
        left, right = sorted(label.bounding_box()["x"] for label in page.locator(".label").all())[::2]
        return float(right - left)

    alone = measure()
    page.get_by_role("button", name="Printer bed").click()
    assert measure() < alone / 2
    page.get_by_role("group", name="Printer bed").get_by_role("button", name="Clear").click()
    assert measure() == pytest.approx(alone, rel=0.05)


def test_a_legend_does_not_push_the_model_out_of_a_phone(phone: Visit, tmp_path: Path) -> None:
    page = open_box(phone, tmp_path)
    page.get_by_role("button", name="Dimensions").click()
    look(page, "Front")
    page.get_by_role("button", name="Overhangs").click()
    page.locator(".coloring .scale").wait_for()
    draw(page)
    canvas = page.locator("canvas").bounding_box()
    for label in page.locator(".label").all():
        box = label.bounding_box()
        assert canvas["x"] < box["x"] + box["width"] / 2 < canvas["x"] + canvas["width"]


def write_sphere(path: Path, rings: int) -> int:
    """Write a bumpy sphere, and return its number of triangles."""
    u, v = np.meshgrid(np.linspace(0.01, np.pi - 0.01, rings), np.linspace(0, 2 * np.pi, rings), indexing="ij")
    radius = 40 + 2 * np.sin(9 * u) * np.sin(11 * v)
    points = np.stack([radius * np.sin(u) * np.cos(v), radius * np.sin(u) * np.sin(v), radius * np.cos(u)], axis=-1)
    corner = np.arange(rings * rings).reshape(rings, rings)
    a, b, c, d = corner[:-1, :-1], corner[1:, :-1], corner[1:, 1:], corner[:-1, 1:]
    faces = np.concatenate([np.stack(triple, axis=-1).reshape(-1, 3) for triple in ((a, b, c), (a, c, d))])
    mesh = Mesh(vertices=points.reshape(-1, 3), faces=faces.astype(np.int32))
    Registry().write(Scene(meshes=(mesh,), parts=(Part(0, np.eye(4)),)), path)
    return len(faces)


def test_software_draws_a_reduced_preview(visit: Visit, tmp_path: Path) -> None:
    """A processor turns 50 000 triangles 20 times in a second."""
    total = write_sphere(tmp_path / "sphere.stl", 225)
    page = visit.open()
    pick(page, tmp_path / "sphere.stl")
    note = page.locator(".stage-note").inner_text()
    shown = int(note.split("with ")[1].split(" of")[0].replace(",", ""))
    assert 20_000 < shown <= 50_000
    assert f"of {total:,} triangles" in note
    before = draw(page)
    page.locator("canvas").press("ArrowLeft")
    assert count_changed(before, draw(page)) > 1_000


def test_the_note_of_a_reduced_preview_does_not_cover_the_model(visit: Visit, tmp_path: Path) -> None:
    write_sphere(tmp_path / "sphere.stl", 225)
    page = visit.open()
    pick(page, tmp_path / "sphere.stl")
    shaded = draw(page)
    show_wireframe(page)
    rows = np.flatnonzero((np.abs(shaded - draw(page)).max(axis=2) > 40).sum(axis=1) > 5)
    canvas, note = (page.locator(name).bounding_box() for name in ("canvas", ".stage-note"))
    assert len(rows) > 300
    # with some space between them
    assert canvas["y"] + rows.max() + 10 < note["y"], (canvas, rows.max(), note)


def test_problems_are_listed_and_shown(visit: Visit) -> None:
    page = visit.open()
    pick(page, EXAMPLES / "bracket.stl")
    view = draw(page)
    for name, color in (("flipped face", "purple"), ("stray fragments", "orange")):
        page.get_by_role("list", name="Problems").get_by_role("button", name=name).click()
        page.get_by_text("Place 1 of 1").wait_for()
        pixels = draw(page)
        assert count_changed(view, pixels) > 1_000
        assert COLORS[color](*np.moveaxis(pixels, -1, 0)).sum() > 50
        view = pixels


COLORS: dict[str, Callable[..., np.ndarray]] = {
    "purple": lambda red, green, blue: (blue > green + 60) & (blue > red + 20),
    "orange": lambda red, green, blue: (red > green + 30) & (green > blue + 60),
}
