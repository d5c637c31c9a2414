"""The page in a real browser, against a real service."""

from __future__ import annotations

import base64
import gzip
import http.server
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import zipfile
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

from distributions import install
from meshhub import Registry
from meshhub.model.scene import Image, Material, Mesh, Part, Scene
from page_visits import Visit, chromium_only, convert, download, draw, operation, pick, replace_number, serving

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
BUILT = ROOT / "src/meshhub/http/page"
AXE = ROOT / "web/node_modules/axe-core/axe.min.js"
MAX_PAGE_BYTES = 450_000
"""Bytes of the page, compressed with gzip; a phone loads them in about three seconds over 3G."""


def write_textured_cube(path: Path) -> None:
    """Write a cube of which each side shows a red texture."""
    from PIL import Image as Picture

    picture = path.with_suffix(".png")
    Picture.new("RGB", (8, 8), (230, 20, 20)).save(picture)
    corners = np.array([[x, y, z] for x in (0, 20) for y in (0, 20) for z in (0, 20)], dtype=np.float64)
    quads = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    faces = np.array(
        [[4 * i + k for k in triple] for i in range(6) for triple in ((0, 1, 2), (0, 2, 3))], dtype=np.int32
    )
    mesh = Mesh(
        vertices=corners[np.array(quads).ravel()],
        faces=faces,
        uv=np.tile(np.array([[0, 0], [1, 0], [1, 1], [0, 1]], dtype=np.float32), (6, 1)),
        face_material=np.zeros(12, dtype=np.int32),
    )
    scene = Scene(
        meshes=(mesh,),
        parts=(Part(0, np.eye(4), name="cube"),),
        materials=(Material(name="red", base_color_image=0),),
        images=(Image(picture.read_bytes(), "image/png"),),
    )
    Registry().write(scene, path)


def test_a_phone_takes_a_model_from_drop_to_repaired_3mf(phone: Visit, tmp_path: Path) -> None:
    page = phone.open()
    pick(page, EXAMPLES / "bracket.stl")
    page.get_by_role("heading", name="Needs repair").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    convert(page, "Repair and save as 3MF")
    result = download(page, "Download bracket.3mf", tmp_path)
    assert Registry().inspect(result).model.watertight


def test_long_names_do_not_widen_the_page(phone: Visit, tmp_path: Path) -> None:
    page = phone.open()
    files = [tmp_path / name for name in ("<img src=x onerror=alert(1)>.stl", "x" * 200 + ".stl", "مرحبا بالعالم.stl")]
    for file in files:
        shutil.copy(EXAMPLES / "bracket.stl", file)
    pick(page, *files)
    page.get_by_role("button", name=files[2].name, exact=False).first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") == page.viewport_size["width"]


def test_before_and_after_are_compared(visit: Visit) -> None:
    page = visit.open()
    pick(page, EXAMPLES / "bracket.stl")
    convert(page, "Repair and save as 3MF")
    row = page.get_by_role("row", name="Watertight no yes")
    row.wait_for()
    compare = page.get_by_role("group", name="Compare")
    pictures = {}
    for mode in ("Before", "After", "Slider", "Side by side"):
        compare.get_by_role("button", name=mode, exact=True).click()
        pictures[mode] = draw(page)
    changed = np.abs(pictures["Before"] - pictures["After"]).max(axis=2) > 40
    assert 50 < changed.sum() < changed.size / 5
    # the slider shows the left half of one and the right half of the other
    width = changed.shape[1]
    for half, mode in ((np.s_[:, : width // 3], "Before"), (np.s_[:, -width // 3 :], "After")):
        # the compositor rounds single pixels differently
        assert (np.abs(pictures["Slider"][half] - pictures[mode][half]) <= 2).mean() > 0.99


@pytest.mark.parametrize("settings", [{"Recipe": "3D print"}, {"Scale to height": "80", "Rotate": "30"}])
def test_a_moved_result_is_compared_at_the_place_of_the_model(
    visit: Visit, tmp_path: Path, settings: dict[str, str]
) -> None:
    """The slider wipes over one part, although the conversion moves, turns or scales it."""
    path = tmp_path / "far.stl"
    scene = Registry().read(EXAMPLES / "bracket.stl")
    far = [Mesh(vertices=mesh.vertices + (400, 300, 50), faces=mesh.faces) for mesh in scene.meshes]
    Registry().write(Scene(meshes=tuple(far), parts=scene.parts), path)
    page = visit.open()
    pick(page, path)
    if "Recipe" in settings:
        page.get_by_label("Recipe").select_option("3D print")
    else:
        page.get_by_role("switch", name="Scale to height").check()
        page.get_by_label("Target height in mm").fill(settings["Scale to height"])
        operation(page, "Rotate").check()
        page.get_by_label("Rotate about X, degrees").fill(settings["Rotate"])
    convert(page, "Repair and save as 3MF")
    compare = page.get_by_role("group", name="Compare")
    pictures = {}
    for mode in ("Before", "Slider"):
        compare.get_by_role("button", name=mode, exact=True).click()
        # beside the thumb and the labels
        pictures[mode] = draw(page)[160:600]
    differs = np.abs(pictures["Before"] - pictures["Slider"]).max(axis=2) > 60
    # the repaired surfaces, and the lines of the defects
    assert differs.mean() < 0.02
    page.get_by_role("list", name="Highlight changes").get_by_text("New").wait_for()


def test_a_drop_anywhere_is_read(visit: Visit) -> None:
    page = visit.open()
    data = page.evaluate_handle(
        """text => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([Uint8Array.from(atob(text), c => c.charCodeAt(0))], "part.stl"));
            return transfer;
        }""",
        base64.b64encode((EXAMPLES / "bracket-clean.stl").read_bytes()).decode(),
    )
    page.dispatch_event("body", "drop", {"dataTransfer": data})
    page.get_by_role("heading", name="Closed").wait_for()
    # a valid model is not repaired by default
    assert page.get_by_role("switch", name="Repair").is_checked() is False


@pytest.mark.skipif(importlib.util.find_spec("OCP") is None, reason="needs the extra 'step'")
def test_a_step_file_is_shown(visit: Visit, tmp_path: Path) -> None:
    path = tmp_path / "bracket.step"
    Registry().convert(EXAMPLES / "bracket-clean.stl", path)
    page = visit.open()
    pick(page, path)
    page.get_by_role("heading", name="Closed").wait_for()
    page.get_by_text("More options").click()
    page.get_by_text("Reading STEP", exact=True).wait_for()
    page.get_by_label("Maximum deviation when reading STEP, in mm").wait_for()


def test_textures_are_shown(visit: Visit, tmp_path: Path) -> None:
    path = tmp_path / "cube.glb"
    write_textured_cube(path)
    page = visit.open()
    pick(page, path)
    pixels = draw(page)
    is_red = (pixels[..., 0] > 90) & (pixels[..., 1] < 60) & (pixels[..., 2] < 60)
    assert is_red.sum() > 20_000


def test_losses_are_shown_before_the_conversion(visit: Visit, tmp_path: Path) -> None:
    path = tmp_path / "cube.glb"
    write_textured_cube(path)
    page = visit.open()
    pick(page, path)
    page.get_by_role("radio", name="STL").check(force=True)
    page.get_by_text("STL cannot keep:").wait_for()
    assert "textures" in page.get_by_text("STL cannot keep:").inner_text()


def test_a_broken_file_is_explained(visit: Visit, tmp_path: Path) -> None:
    path = tmp_path / "broken.stl"
    path.write_bytes(b"solid nothing\nfacet normal 0 0")
    page = visit.open()
    pick(page, path)
    alert = page.get_by_role("alert").inner_text()
    assert "cannot be read" in alert
    assert "Export the model again" in alert
    page.get_by_role("button", name="Remove broken.stl").click()
    page.get_by_role("button", name="Choose files").wait_for()


def test_an_unknown_kind_of_file_is_answered_with_the_formats(visit: Visit, tmp_path: Path) -> None:
    path = tmp_path / "notes.xyz"
    path.write_bytes(b"no model")
    page = visit.open()
    pick(page, path)
    assert re.search(r"one of these formats: .*\bstl\b", page.get_by_role("alert").inner_text())


def test_a_file_above_the_limit_of_the_plan_is_not_uploaded(visit: Visit, tmp_path: Path) -> None:
    path = tmp_path / "large.stl"
    path.write_bytes(bytes(30 << 20))
    page = visit.open()
    pick(page, path)
    alert = page.get_by_role("alert").inner_text()
    assert "30 MB" in alert and "20 MB" in alert
    page.get_by_role("button", name="Enter an API key").wait_for()
    assert not [line for line in visit.requests if line.endswith("/preview")]


def test_three_files_become_one_zip(visit: Visit, tmp_path: Path) -> None:
    write_textured_cube(tmp_path / "cube.glb")
    page = visit.open()
    pick(page, EXAMPLES / "bracket.stl", EXAMPLES / "bracket-clean.stl", tmp_path / "cube.glb")
    assert page.locator(".file-tab").count() == 3
    convert(page, "Convert 3 files to 3MF")
    result = download(page, "Download all (3)", tmp_path)
    with zipfile.ZipFile(result) as archive:
        assert archive.testzip() is None
        assert sorted(archive.namelist()) == ["bracket-clean.3mf", "bracket.3mf", "cube.3mf"]


def test_files_above_the_number_of_the_plan_are_left_out(visit: Visit, tmp_path: Path) -> None:
    paths = [tmp_path / f"{index}.stl" for index in range(4)]
    for path in paths:
        path.write_bytes((EXAMPLES / "bracket-clean.stl").read_bytes())
    page = visit.open()
    pick(page, *paths)
    assert page.locator(".file-tab").count() == 3
    assert "4 files are more than the 3" in page.get_by_role("alert").inner_text()


def test_a_zip_with_companions_keeps_its_colors(visit: Visit, tmp_path: Path) -> None:
    write_textured_cube(tmp_path / "cube.glb")
    folder = tmp_path / "obj"
    folder.mkdir()
    Registry().convert(tmp_path / "cube.glb", folder / "cube.obj")
    with zipfile.ZipFile(tmp_path / "cube.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in folder.iterdir():
            archive.write(path, f"cube/{path.name}")
    page = visit.open()
    pick(page, tmp_path / "cube.zip")
    page.get_by_role("radio", name="GLB").check(force=True)
    convert(page, "Convert to GLB")
    scene = Registry().read(download(page, "Download cube.glb", tmp_path))
    assert len(scene.images) == 1


def test_companions_do_not_count_as_files_of_the_plan(visit: Visit, tmp_path: Path) -> None:
    """A textured OBJ in a ZIP has more files than the plan Free allows models at once."""
    write_striped_plate(tmp_path / "plate.obj")
    with zipfile.ZipFile(tmp_path / "plate.zip", "w") as archive:
        for name in ("plate.obj", "plate.mtl", "plate.png"):
            archive.write(tmp_path / name, name)
        for number in range(3):
            archive.write(tmp_path / "plate.png", f"maps/normal-{number}.png")
    page = visit.open()
    pick(page, tmp_path / "plate.zip")
    page.get_by_text("textures").first.wait_for()
    pixels = draw(page)
    assert ((pixels[..., 0] > 90) & (pixels[..., 1] < 60) & (pixels[..., 2] < 60)).sum() > 2_000
    page.get_by_role("button", name="Will it print?").click()
    page.get_by_role("region", name="Print check").locator(".verdict").wait_for()
    assert page.get_by_role("alert").count() == 0
    convert(page, "Convert to 3MF")


def test_a_conversion_is_canceled(visit: Visit) -> None:
    page = visit.open()
    pick(page, EXAMPLES / "bracket.stl")
    for path in ("**/convert-many", "**/jobs"):
        page.route(path, lambda route: None)
    page.get_by_role("button", name="Repair and save as 3MF").click()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Repair and save as 3MF").wait_for()
    assert page.get_by_role("alert").count() == 0


def test_the_keyboard_is_enough(visit: Visit, tmp_path: Path) -> None:
    page = visit.open()
    # a key is faster than the driver, which begins to intercept dialogs with the first listener
    page.on("filechooser", lambda _: None)

    def tab_to(name: str) -> None:
        for _ in range(80):
            page.keyboard.press("Tab")
            # the body, and regions that scroll, have all texts
            focused = page.evaluate(
                "(element => element.matches('button, a, input, canvas') ? "
                "`${element.ariaLabel ?? ''} ${element.textContent ?? ''}` : '')(document.activeElement)"
            )
            if name in focused:
                return
        pytest.fail(f"the Tab key does not reach {name!r}")

    tab_to("Choose files")
    with page.expect_file_chooser() as chooser:
        page.keyboard.press("Enter")
    chooser.value.set_files(EXAMPLES / "bracket.stl")
    page.get_by_role("heading", name="Needs repair").wait_for()
    # the format and the button are near for the keyboard
    near = []
    for _ in range(10):
        page.keyboard.press("Tab")
        near.append(page.evaluate("document.activeElement.name || document.activeElement.textContent"))
    assert {"target", "Repair and save as 3MF"} <= set(near)
    tab_to("3D view of bracket.stl")
    before = draw(page)
    for key in ("ArrowLeft", "ArrowUp", "+"):
        page.keyboard.press(key)
    assert np.abs(draw(page) - before).max() > 40
    tab_to("16 open edges")
    page.keyboard.press("Enter")
    page.get_by_text("Place 1 of 3").wait_for()
    tab_to("Repair and save as 3MF")
    page.keyboard.press("Enter")
    page.get_by_role("region", name="Result").wait_for()
    # the next step has the focus
    page.wait_for_function("document.activeElement.matches('.panel-footer button.primary')")
    assert download(page, lambda: page.keyboard.press("Enter"), tmp_path).name == "bracket.3mf"


GERMAN = {
    "Preferences": "Einstellungen der Seite",
    "API key": "API-Schlüssel",
    "Choose files": "Dateien wählen",
    "Repair": "Reparieren",
    "Will it print?": "Druckbar?",
    "Scale to height": "Auf Höhe skalieren",
    "More options": "Weitere Optionen",
    "Views": "Ansichten",
    "Display": "Darstellung",
    "Section": "Schnitt",
    "Measure": "Messen",
    "Printer bed": "Druckbett",
    "Parts": "Teile",
    "Repair and save as 3MF": "Reparieren, als 3MF speichern",
    "Result": "Ergebnis",
    "Compare": "Vergleichen",
    "For programs": "Für Programme",
}
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True}


@pytest.mark.parametrize(
    ("scheme", "language", "window"),
    [("light", "en-US", {}), ("dark", "de-DE", {}), ("dark", "en-US", PHONE), ("light", "de-DE", PHONE)],
    ids=["light", "dark-german", "phone-dark", "phone-german"],
)
def test_axe_finds_no_violation(
    browser: Any, address: str, tmp_path: Path, scheme: str, language: str, window: dict[str, Any]
) -> None:
    if not AXE.exists():
        pytest.skip("needs `npm ci` in web/")
    visit = Visit(browser, address, color_scheme=scheme, locale=language, **window)
    page = visit.open()

    def name(english: str) -> str:
        return GERMAN[english] if language == "de-DE" else english

    def check(state: str) -> None:
        page.evaluate(AXE.read_text())
        violations = page.evaluate("axe.run().then(({ violations }) => violations)")
        rows = [(row["id"], [node["html"] for node in row["nodes"]]) for row in violations]
        assert (state, rows) == (state, [])
        width = page.evaluate("document.documentElement.scrollWidth")
        assert (state, width) == (state, page.viewport_size["width"])

    check("welcome")
    for dialog in ("Preferences", "API key"):
        page.get_by_role("button", name=name(dialog)).click()
        page.get_by_role("dialog", name=name(dialog)).wait_for()
        check(dialog)
        page.keyboard.press("Escape")
        page.get_by_role("dialog").wait_for(state="detached")
    pick(page, write_pair(tmp_path), button=name("Choose files"))
    page.get_by_role("switch", name=name("Repair")).uncheck()
    page.get_by_role("button", name=name("Will it print?")).click()
    page.locator(".issue").first.wait_for()
    check("verdict")
    page.get_by_role("switch", name=name("Repair")).check()
    page.get_by_role("switch", name=name("Scale to height")).check()
    page.get_by_text(name("More options")).click()
    check("settings")
    for tool in ("Views", "Display", "Section", "Measure", "Printer bed", "Parts"):
        button = page.get_by_role("button", name=name(tool), exact=True)
        button.click()
        check(tool)
        button.press("Escape")
    convert(page, name("Repair and save as 3MF"), result=name("Result"))
    page.get_by_role("group", name=name("Compare")).wait_for()
    page.get_by_text(name("For programs")).click()
    check("result")
    visit.close()


def write_pair(folder: Path) -> Path:
    """Write a model of two parts, one of them without its top."""
    corners = np.array([[x, y, z] for x in (0, 20) for y in (0, 20) for z in (0, 20)], dtype=np.float64)
    quads = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    faces = np.array([[quad[k] for k in triple] for quad in quads for triple in ((0, 1, 2), (0, 2, 3))], dtype=np.int32)
    meshes = (Mesh(vertices=corners, faces=faces), Mesh(vertices=corners + (30, 0, 0), faces=faces[:-2]))
    path = folder / "pair.glb"
    Registry().write(Scene(meshes=meshes, parts=(Part(0, np.eye(4), name="a"), Part(1, np.eye(4), name="b"))), path)
    return path


@chromium_only(reason="Firefox does not tell the bodies of requests")
def test_operations_and_formats_of_plug_ins_appear(visit: Visit) -> None:
    """The form is generated, so that a plug-in needs no change of the page."""

    def add_plugins(route: Any) -> None:
        response = route.fetch()
        body = response.json()
        foam = {
            "foam_mm": {"type": "number", "title": "Bubble", "description": "Diameter.", "minimum": 0.5, "maximum": 9},
            "foam_drain": {"type": "boolean", "title": "Add a drain", "description": "For resin.", "default": False},
            "foam_style": {"type": "string", "title": "Style", "enum": ["round", "square"], "default": "round"},
        }
        common = {"requires": None, "allowed": True, "objection": None, "remedy": None}
        body["operations"].append(
            {
                **common,
                "id": "foam",
                "stage": "hollow",
                "label": "Foam",
                "available": True,
                "drops": [],
                "options": {"properties": foam},
            }
        )
        body["operations"].append(
            {
                **common,
                "id": "lattice",
                "stage": "shape",
                "label": "Lattice",
                "available": False,
                "remedy": "pip install lattice",
                "drops": [],
                "options": {"properties": {"lattice": {"type": "boolean", "title": "Lattice", "default": False}}},
            }
        )
        route.fulfill(response=response, body=json.dumps(body))

    sent: list[str] = []
    visit.page.route("**/supported?*", add_plugins)
    page = visit.open()
    pick(page, EXAMPLES / "bracket-clean.stl")

    def record(route: Any) -> None:
        sent.append(route.request.post_data_buffer.decode("latin-1"))
        route.abort()

    for path in ("**/convert-many", "**/jobs"):
        page.route(path, record)
    operation(page, "Foam").check()
    page.get_by_label("Bubble").fill("20")
    page.get_by_text("Enter 0.5 to 9.").wait_for()
    assert page.get_by_role("button", name="Convert to 3MF").is_disabled()
    page.get_by_label("Bubble").fill("2")
    page.get_by_label("Add a drain").check()
    page.get_by_label("Style").select_option("square")
    assert operation(page, "Lattice").is_disabled()
    page.get_by_text("pip install lattice").wait_for()
    page.get_by_role("button", name="Convert to 3MF").click()
    page.get_by_role("alert").get_by_text("The server does not answer").wait_for()
    for name, value in (("foam_mm", "2"), ("foam_drain", "true"), ("foam_style", "square")):
        assert f'name="{name}"\r\n\r\n{value}\r\n' in sent[0]


def test_installed_plug_ins_appear(browser: Any, tmp_path: Path) -> None:
    """A format of a distribution in `plugins/` is listed, has its options, and converts."""
    install(tmp_path / "site", "meshhub-off", off="meshhub_off")
    path = os.pathsep.join([str(tmp_path / "site"), str(ROOT / "plugins/meshhub-off/src"), *filter(None, sys.path)])
    with serving(tmp_path, PYTHONPATH=path) as url:
        visit = Visit(browser, url)
        page = visit.open()
        assert "OFF" in page.locator(".formats").inner_text().split()
        pick(page, EXAMPLES / "bracket.stl")
        page.get_by_role("radio", name="OFF").check(force=True)
        page.get_by_text("More options").click()
        page.get_by_text("Write colors from 0 to 1 instead of from 0 to 255.").wait_for()
        page.get_by_label("Colors as fractions").check()
        convert(page, "Repair and save as OFF")
        result = download(page, "Download bracket.off", tmp_path)
        assert result.read_bytes().startswith(b"OFF")
        visit.close()


def test_a_recipe_sets_its_options(visit: Visit) -> None:
    page = visit.open()
    pick(page, EXAMPLES / "bracket-clean.stl")
    page.get_by_label("Recipe").select_option("3D print")
    page.get_by_text("A valid, closed mesh on the print bed.").wait_for()
    page.get_by_role("listitem").get_by_text("Place on bed").wait_for()
    for name in ("Repair", "Place on bed"):
        assert operation(page, name).is_checked()
    # each can be turned off
    page.get_by_role("switch", name="Repair", exact=True).uncheck()
    page.get_by_role("listitem").get_by_text("Repair").wait_for(state="detached")
    convert(page, "Convert to 3MF")


def test_surfaces_that_a_repair_adds_are_green(visit: Visit, tmp_path: Path) -> None:
    """An open box gets its top back."""
    corners = np.array([[x, y, z] for x in (0, 20) for y in (0, 20) for z in (0, 20)], dtype=np.float64)
    quads = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4]]
    faces = np.array([[quad[k] for k in triple] for quad in quads for triple in ((0, 1, 2), (0, 2, 3))], dtype=np.int32)
    path = tmp_path / "box.stl"
    Registry().write(Scene(meshes=(Mesh(vertices=corners, faces=faces),), parts=(Part(0, np.eye(4)),)), path)
    page = visit.open()
    pick(page, path)
    convert(page, "Repair and save as 3MF")
    page.get_by_role("list", name="Highlight changes").get_by_text("New").wait_for()
    page.get_by_role("group", name="Compare").get_by_role("button", name="After", exact=True).click()

    def count_green() -> int:
        red, green, blue = np.moveaxis(draw(page), -1, 0)
        is_green = (green > red + 60) & (green > blue + 30)
        # the Y axis beside the cube of views
        is_green[:140, -140:] = False
        return int(is_green.sum())

    assert count_green() > 5_000
    page.get_by_role("button", name="Display").click()
    page.get_by_role("checkbox", name="Highlight changes").uncheck()
    assert count_green() == 0


@chromium_only(reason="no folder can be chosen in Firefox")
def test_a_folder_is_read(visit: Visit, tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    for name in ("a.stl", "b.stl"):
        (folder / name).write_bytes((EXAMPLES / "bracket-clean.stl").read_bytes())
    page = visit.open()
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Choose a folder").click()
    chooser.value.set_files(folder)
    page.get_by_role("button", name="Convert 2 files to 3MF").wait_for()


def test_a_locked_format_says_what_it_needs(visit: Visit) -> None:
    page = visit.open()
    pick(page, EXAMPLES / "bracket-clean.stl")
    page.get_by_role("radio", name="STEP").check(force=True)
    page.get_by_text("STEP needs another plan").wait_for()
    assert page.get_by_role("button", name="Convert to STEP").is_disabled()


def test_a_note_offers_its_remedy(visit: Visit, tmp_path: Path) -> None:
    scene = Registry().read(EXAMPLES / "bracket-clean.stl")
    path = tmp_path / "meters.stl"
    small = [Mesh(vertices=mesh.vertices / 1000, faces=mesh.faces) for mesh in scene.meshes]
    Registry().write(Scene(meshes=tuple(small), parts=scene.parts), path)
    page = visit.open()
    pick(page, path)
    page.get_by_role("button", name="Set Unit of the file: m").click()
    page.get_by_text("60 × 40 × 50 mm").wait_for()


def test_a_link_restores_the_settings(visit: Visit) -> None:
    page = visit.open("#target=stl&target_height_mm=40&stl_ascii=true")
    pick(page, EXAMPLES / "bracket-clean.stl")
    assert page.get_by_role("radio", name="STL").is_checked()
    assert page.get_by_label("Target height in mm").input_value() == "40"
    assert page.get_by_role("button", name="Convert to STL").is_enabled()


def test_links_and_snippets_repeat_a_conversion_below_a_path(browser: Any, tmp_path: Path) -> None:
    """A service below the path of a proxy, a key, and the texts that the page offers to copy."""
    with serving(tmp_path, MESHHUB_ROOT_PATH="/tools/mesh") as url:
        key = create_key(tmp_path)
        visit = Visit(browser, url + "tools/mesh/")
        visit.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = visit.open()
        page.get_by_role("button", name="API key").click()
        page.get_by_role("dialog").get_by_label("API key").first.fill(key)
        page.get_by_role("button", name="Use the key").click()
        page.get_by_text("Pro plan").first.wait_for()
        path = tmp_path / "part;v2 'a'.stl"
        path.write_bytes((EXAMPLES / "bracket.stl").read_bytes())
        pick(page, path)
        page.get_by_role("switch", name="Scale to height").check()
        page.get_by_label("Target height in mm").fill("40")
        convert(page, "Repair and save as 3MF")
        page.get_by_text("For programs").click()
        curl, python = page.locator(".snippet pre").all_inner_texts()
        for command in (["bash", "-euc", curl], [sys.executable, "-c", python]):
            subprocess.run(command, cwd=tmp_path, env={**os.environ, "MESHHUB_API_KEY": key}, check=True, timeout=300)
            (result,) = tmp_path.glob("*.3mf")
            model = Registry().inspect(result).model
            assert (model.watertight, round(model.size_mm[2], 3)) == (True, 40.0)
            result.unlink()
        page.get_by_role("button", name="Copy link to these settings").click()
        page.get_by_role("button", name="Copied").wait_for()
        link = page.evaluate("navigator.clipboard.readText()")
        assert link.startswith(url + "tools/mesh/#")
        assert key not in curl + python + link
        page.get_by_role("button", name=f"Remove {path.name}").click()
        page.goto(link)
        pick(page, EXAMPLES / "bracket-clean.stl")
        assert page.get_by_label("Target height in mm").input_value() == "40"
        paths = {urlsplit(line.split()[1]).path for line in visit.requests if line.split()[1].startswith("http")}
        assert all(path.startswith("/tools/mesh/") for path in paths)
        visit.close()


def test_reduced_colors_show_their_filaments(visit: Visit, tmp_path: Path) -> None:
    """A textured OBJ and its companions become a painted 3MF, on the page and by the texts that it offers to copy."""
    write_striped_plate(tmp_path / "plate.obj")
    page = visit.open()
    pick(page, *(tmp_path / name for name in ("plate.obj", "plate.mtl", "plate.png")))
    page.get_by_label("Recipe").select_option("3D print in color")
    page.get_by_role("switch", name="Reduce colors").check()
    page.get_by_role("textbox", name="Number of colors").fill("3")
    page.get_by_role("button", name="save as 3MF").or_(page.get_by_role("button", name="to 3MF")).click()
    palette = page.get_by_role("region", name="Filaments")
    palette.wait_for()
    lines = palette.get_by_role("listitem").all_inner_texts()
    text = " ".join(lines)
    colors = [bytes.fromhex(color) for color in re.findall("#([0-9A-F]{6})", text)]
    assert {tuple(round(channel / 64) for channel in color) for color in colors} == {(4, 0, 0), (0, 3, 0), (0, 0, 4)}
    assert sum(float(share) for share in re.findall(r"([\d.]+) %", text)) == pytest.approx(100, abs=0.2)
    page.get_by_text("For programs").click()
    curl, python = page.locator(".snippet pre").all_inner_texts()
    # the curl line packs the files with zip
    commands = [[sys.executable, "-c", python], *([["bash", "-euc", curl]] if shutil.which("zip") else [])]
    for command in commands:
        subprocess.run(command, cwd=tmp_path, check=True, timeout=300)
        with zipfile.ZipFile(tmp_path / "plate.zip") as archive:
            (result,) = archive.namelist()
            scene = Registry().read(archive.read(result), options={"threemf_paint": "split"})
        painted = {tuple(round(255 * value) for value in material.base_color[:3]) for material in scene.materials}
        assert painted == {tuple(color) for color in colors}
        tmp_path.joinpath("plate.zip").unlink()


def write_striped_plate(path: Path) -> None:
    """Write a plate with red, green and blue stripes as OBJ, with its material and texture."""
    from PIL import Image as Picture

    picture = Picture.new("RGB", (90, 8))
    for index, color in enumerate([(230, 20, 20), (20, 180, 20), (20, 20, 230)]):
        picture.paste(color, (30 * index, 0, 30 * index + 30, 8))
    picture.save(path.with_suffix(".png"))
    path.with_suffix(".mtl").write_text("newmtl stripes\nKd 1 1 1\nmap_Kd plate.png\n")
    corners = [(x, y, z) for z in (0, 4) for y in (0, 20) for x in (0, 60)]
    sides = ["1 3 4 2", "5 6 8 7", "1 2 6 5", "3 7 8 4", "1 5 7 3", "2 4 8 6"]
    path.write_text(
        "mtllib plate.mtl\nusemtl stripes\n"
        + "".join(f"v {x} {y} {z}\nvt {0.01 + x / 60 * 0.98} {y / 20}\n" for x, y, z in corners)
        + "".join("f " + " ".join(f"{corner}/{corner}" for corner in side.split()) + "\n" for side in sides)
    )


def create_key(folder: Path) -> str:
    """Create a key of the plan Pro for the service of a folder."""
    result = subprocess.run(
        [sys.executable, "-m", "meshhub", "keys", "create", "--plan", "pro", "--label", "page"],
        env={**os.environ, "MESHHUB_DATABASE_URL": f"sqlite:///{folder / 'keys.sqlite3'}"},
        check=True,
        capture_output=True,
        text=True,
    )
    return result.stdout.strip()


def test_links_are_copied_without_https(visit: Visit) -> None:
    """Browsers have no clipboard interface on pages without HTTPS, except on this machine."""
    visit.context.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    visit.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = visit.open()
    pick(page, EXAMPLES / "bracket-clean.stl")
    convert(page, "Convert to 3MF")
    page.get_by_role("button", name="Copy link to these settings").click()
    page.get_by_role("button", name="Copied").wait_for()


def test_the_page_works_without_storage(visit: Visit) -> None:
    """Browsers deny storage to a frame of another site."""
    visit.context.add_init_script(
        "for (const name of ['localStorage', 'sessionStorage'])"
        " Object.defineProperty(window, name, { get() { throw new DOMException('denied', 'SecurityError') } })"
    )
    page = visit.open()
    page.get_by_role("button", name="Preferences").click()
    page.get_by_label("Theme").select_option("Dark")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.keyboard.press("Escape")
    pick(page, EXAMPLES / "bracket-clean.stl")
    page.get_by_role("heading", name="Closed").wait_for()


def test_wall_thickness_is_measured_with_the_keyboard(visit: Visit) -> None:
    page = visit.open()
    pick(page, EXAMPLES / "bracket-clean.stl")
    page.get_by_role("button", name="Measure", exact=True).click()
    page.get_by_role("group", name="Measure").get_by_role("button", name="Wall thickness").click()
    page.locator("canvas").focus()
    page.keyboard.press("4")
    draw(page)
    page.keyboard.press("Enter")
    page.get_by_role("status").get_by_text("mm").wait_for()
    value = page.locator(".measured").inner_text()
    assert 0 < float(value.removesuffix(" mm")) <= 60


def test_a_model_that_is_larger_than_the_bed_is_reported(visit: Visit) -> None:
    page = visit.open()
    pick(page, EXAMPLES / "bracket-clean.stl")
    page.get_by_role("button", name="Printer bed").click()
    page.get_by_text("Fits on the bed.").wait_for()
    replace_number(page.get_by_label("Height", exact=True), "45")
    page.get_by_text("Does not fit").wait_for()


def test_a_browser_without_webgl_shows_a_picture_of_the_server(visit: Visit) -> None:
    visit.context.add_init_script("HTMLCanvasElement.prototype.getContext = () => null")
    page = visit.open()
    visit.page.on("console", lambda message: None)
    pick(page, EXAMPLES / "bracket.stl")
    picture = page.get_by_role("img", name="Picture of bracket.stl")
    picture.wait_for()
    assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") > 100
    convert(page, "Repair and save as 3MF")
    # a legend without problems would only say so
    pick(page, EXAMPLES / "bracket-clean.stl", button="Add files")
    page.get_by_role("checkbox", name="Highlight problems").wait_for(state="detached")
    # three.js reports the missing context
    visit.problems = [line for line in visit.problems if "WebGL" not in line]


def test_german_is_a_second_language(browser: Any, address: str) -> None:
    visit = Visit(browser, address, locale="de-DE")
    page = visit.open()
    page.get_by_role("button", name="Dateien wählen").wait_for()
    assert page.evaluate("document.documentElement.lang") == "de"
    pick(page, EXAMPLES / "bracket-clean.stl", button="Dateien wählen")
    page.get_by_label("Rezept").select_option("3D-Druck")
    page.get_by_text("Ein gültiges, geschlossenes Netz auf dem Druckbett.").wait_for()
    page.get_by_role("listitem").get_by_text("Auf das Bett stellen").wait_for()
    page.get_by_text("Weitere Optionen").click()
    page.get_by_label("Art der 3MF-Datei").select_option("BambuStudio")
    page.get_by_label("Einheit der Datei").select_option("Zoll (in)")
    visit.close()


def test_a_damaged_archive_is_german(browser: Any, address: str, tmp_path: Path) -> None:
    path = tmp_path / "teile.zip"
    path.write_bytes(b"PK\x03\x04 is cut off")
    visit = Visit(browser, address, locale="de-DE")
    page = visit.open()
    pick(page, path, button="Dateien wählen")
    page.get_by_text("teile.zip ist beschädigt oder ungewöhnlich gepackt.").wait_for()
    visit.close()


def test_another_language_translates_what_is_shown(visit: Visit) -> None:
    """The form keeps its settings."""
    page = visit.open()
    pick(page, EXAMPLES / "bracket-clean.stl")
    page.get_by_role("switch", name="Scale to height").check()
    page.get_by_label("Target height in mm").fill("40")
    page.get_by_role("button", name="Preferences").click()
    page.get_by_label("Language").select_option("Deutsch")
    page.keyboard.press("Escape")
    page.get_by_role("switch", name="Auf Höhe skalieren").wait_for()
    assert page.get_by_label("Höhe in mm").input_value() == "40"
    page.get_by_text("Tarif „Kostenlos“").first.wait_for()


def test_a_shop_embeds_the_page(browser: Any, tmp_path: Path) -> None:
    """The shop loads a model into the frame and receives the result."""
    shop = tmp_path / "shop"
    shop.mkdir()
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(shop))
    handler.log_message = lambda *arguments: None  # type: ignore[attr-defined]
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        origin = f"http://127.0.0.1:{server.server_port}"
        pytest.importorskip("litestar", reason="needs the extra 'http'")
        with serving(tmp_path, MESHHUB_FRAME_ANCESTORS=origin) as url:
            (shop / "part.stl").write_bytes((EXAMPLES / "bracket.stl").read_bytes())
            theme = "accent=e91e63&background=101820&radius=0"
            (shop / "index.html").write_text(SHOP.replace("SERVICE", f"{url}?embed=1&origin={origin}&{theme}"))
            page = browser.new_page()
            page.goto(f"{origin}/index.html")
            page.wait_for_function("window.result", timeout=60_000)
            name, size, kind, held = page.evaluate(
                "(({ name, size, format, data }) => [name, size, format, data.byteLength])(window.result)"
            )
            assert (name, kind, held) == ("part.3mf", "3mf", size)
            look = (
                page.frame_locator("iframe")
                .locator(".button.primary")
                .evaluate(
                    """button => {
                    const { backgroundColor, borderRadius } = getComputedStyle(button);
                    return [backgroundColor, borderRadius, document.documentElement.dataset.theme];
                }"""
                )
            )
            assert look == ["rgb(233, 30, 99)", "0px", "dark"]
            # a result is sent to the origin in the address alone
            (shop / "other.html").write_text(SHOP.replace("SERVICE", f"{url}?embed=1&origin=https://other.example"))
            page.goto(f"{origin}/other.html")
            page.frame_locator("iframe").locator(".formats").wait_for()
            page.wait_for_timeout(500)
            assert page.evaluate("window.messages") == []
            page.close()
        server.shutdown()


SHOP = """<!doctype html><title>Shop</title><iframe src="SERVICE" width="1000" height="700"></iframe>
<script>
const frame = document.querySelector("iframe").contentWindow;
const origin = new URL("SERVICE").origin;
window.messages = [];
addEventListener("message", async ({ data, origin: sender }) => {
  window.messages.push(data.type);
  if (sender !== origin) return;
  if (data.type === "meshhub:ready") {
    const model = await (await fetch("part.stl")).arrayBuffer();
    frame.postMessage({ type: "meshhub:options", target: "3mf", options: { repair: true } }, origin);
    frame.postMessage({ type: "meshhub:load", name: "part.stl", data: model }, origin);
  }
  if (data.type === "meshhub:loaded") frame.postMessage({ type: "meshhub:convert" }, origin);
  if (data.type === "meshhub:result") window.result = data;
});
</script>
"""


def test_the_page_is_small() -> None:
    files = [path for path in BUILT.rglob("*") if path.is_file() and path.suffix not in (".br", ".gz")]
    assert sum(len(gzip.compress(path.read_bytes())) for path in files) <= MAX_PAGE_BYTES
    assert all("://" not in reference for reference in _references(BUILT / "index.html"))


def _references(path: Path) -> list[str]:
    return re.findall(r'(?:src|href)="([^"]*)"', path.read_text())
