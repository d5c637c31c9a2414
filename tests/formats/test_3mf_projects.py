"""Projects for slicers: their settings, printers and names, and projects that get another printer."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from meshhub import InvalidOption, Registry
from meshhub.builtin_plugins.threemf.printers import PRINTERS
from meshhub.model.report import Report
from meshhub.model.scene import Material, Part, Scene
from meshhub.model.source import Source, Target
from meshhub.toolkit.geometry import bounds
from models import brick
from threemf_models import CORE, mesh_xml
from threemf_projects import DIALECTS, paint_triangles, project

pytestmark = pytest.mark.once

SLICERS = ["bambu", "orca"]
SETTINGS = "Metadata/project_settings.config"
BRICK = brick()

REAL = (
    "estampo+bambu-3mf__test-cube-petgcf.gcode.3mf",
    "estampo+bambu-3mf__test_box_10x10x5.gcode.3mf",
    "estampo+bambu-3mf__tests_fixtures_e2e_cura_p1s_reference.gcode.3mf",
    "estampo+bambu-3mf__tests_fixtures_reference.gcode.3mf",
)
"""Files of a P1S that OrcaSlicer 2.3.1 and BambuStudio 2.5 wrote, with 5 filaments."""

KEYS: dict[str, Any] = {
    "version": "02.00.00.00",
    "name": "project_settings",
    "from": "project",
    "printer_model": "Bambu Lab P1S",
    "printer_variant": "0.4",
    "printer_settings_id": "Bambu Lab P1S 0.4 nozzle",
    "print_settings_id": "0.20mm Standard @BBL X1C",
    "filament_settings_id": ["Generic PLA", "Generic PLA"],
    "filament_ids": ["GFL99", "GFL99"],
    "filament_type": ["PLA", "PLA"],
    "filament_colour": ["#FF0000", "#00FF00"],
    "filament_diameter": ["1.75", "1.75"],
    "nozzle_diameter": ["0.4"],
    "inherits_group": [""] * 4,
    "different_settings_to_system": [""] * 4,
}
"""Settings of a model of two colors for the default printer."""


def convert(source: Scene | Source, **options: Any) -> tuple[dict[str, bytes], Report]:
    """Convert to 3MF, and return the entries of the file and the report."""
    target = Target("result.3mf")
    report = Registry(entry_points=False).convert(source, target, target="3mf", **options)
    with zipfile.ZipFile(io.BytesIO(target.read())) as archive:
        return {name: archive.read(name) for name in archive.namelist()}, report


def messages(report: Report) -> dict[str, str]:
    return {note.code: note.message for note in report.notes}


def two_colors(name: str = "") -> Scene:
    materials = (Material("a", (1.0, 0.0, 0.0, 1.0)), Material("b", (0.0, 1.0, 0.0, 1.0)))
    return Scene((BRICK,), (Part(0, material=0), Part(0, material=1)), materials, name=name)


def read_settings(entries: dict[str, bytes]) -> dict[str, Any]:
    settings: dict[str, Any] = json.loads(entries[SETTINGS])
    return settings


def metadata(element: ElementTree.Element) -> dict[str | None, str | None]:
    return {entry.get("key"): entry.get("value") for entry in element.findall("metadata")}


@pytest.fixture(scope="module")
def written() -> dict[str, Any]:
    return read_settings(convert(two_colors(), threemf_profile="bambu")[0])


@pytest.mark.parametrize("key", KEYS)
def test_a_project_states_each_setting(written: dict[str, Any], key: str) -> None:
    assert written[key] == KEYS[key]


def test_a_project_has_no_other_settings(written: dict[str, Any]) -> None:
    assert list(written) == list(KEYS)


@pytest.mark.parametrize("key", KEYS)
def test_each_setting_has_the_form_of_real_projects(corpus: Path, written: dict[str, Any], key: str) -> None:
    """Lists have an entry for each filament, and groups one more for the process and the printer."""
    found = []
    for name in REAL:
        with zipfile.ZipFile(corpus / "3mf" / name) as archive:
            real = json.loads(archive.read(SETTINGS))
        if key in real:
            found.append((type(real[key]), len(real[key]) if len(real["filament_colour"]) == 5 else 0))
    if key in ("inherits_group", "different_settings_to_system"):
        # BambuStudio leaves them out of sliced files, and a file of OrcaSlicer has an entry less
        assert {kind for kind, _ in found} == {list} and max(length for _, length in found) in (6, 7)
    elif isinstance(KEYS[key], str):
        assert [kind for kind, _ in found] == [str] * len(REAL)
    else:
        assert [kind for kind, _ in found] == [list] * len(REAL)
        assert key == "nozzle_diameter" or {length for _, length in found} == {5}


def test_real_projects_name_the_presets_of_the_default_printer(corpus: Path, written: dict[str, Any]) -> None:
    for name in REAL:
        with zipfile.ZipFile(corpus / "3mf" / name) as archive:
            real = json.loads(archive.read(SETTINGS))
        for key in ("printer_model", "printer_variant", "printer_settings_id", "print_settings_id"):
            assert real[key] == written[key]
    # the last one has a generic filament of BambuStudio
    assert (real["filament_settings_id"][0], real["filament_ids"][0]) == ("Generic PLA", "GFL99")


@pytest.mark.parametrize("printer", PRINTERS)
def test_a_project_names_the_presets_of_its_printer(printer: Any) -> None:
    wanted = PRINTERS[printer]
    scene = Scene((replace(BRICK, vertices=BRICK.vertices - 500),), (Part(0),))
    entries, _ = convert(scene, threemf_profile=wanted.presets.slicers[-1], threemf_printer=printer)
    settings = read_settings(entries)
    assert (
        settings["printer_settings_id"] == wanted.presets.printer and settings["printer_model"] == wanted.presets.model
    )
    assert settings["filament_settings_id"] == [wanted.presets.filaments["PLA"]]
    assert len(settings["nozzle_diameter"]) == len(settings.get("extruder_type", ["0.4"])) == wanted.presets.nozzles
    scene = Registry(entry_points=False).read(Source.from_bytes(_pack(entries), "a.3mf"))
    assert np.allclose(bounds(scene)[:, :2].mean(axis=0), np.array(wanted.plate_mm) / 2)


@pytest.mark.parametrize(
    ("profile", "printer", "match"),
    [
        ("standard", "bambu-a1", "needs a project of its slicer.*bambu or threemf_profile=orca"),
        ("prusa", "bambu-a1", "PrusaSlicer takes no printer"),
        ("bambu", "snapmaker-u1", "printer snapmaker-u1 needs.*threemf_profile=orca"),
    ],
)
def test_a_printer_needs_its_slicer(profile: str, printer: str, match: str) -> None:
    with pytest.raises(InvalidOption, match=match):
        convert(two_colors(), threemf_profile=profile, threemf_printer=printer)


@pytest.mark.parametrize("profile", DIALECTS)
@pytest.mark.parametrize(("title", "names"), [("", ["Object 1"]), ("Duck", ["Duck"])])
def test_objects_without_a_name_get_one(profile: str, title: str, names: list[str]) -> None:
    scene = Scene((replace(BRICK, name=""),), (Part(0),), name=title)
    entries, _ = convert(scene, threemf_profile=profile)
    name = "Metadata/Slic3r_PE_model.config" if profile == "prusa" else "Metadata/model_settings.config"
    config = ElementTree.fromstring(entries[name])
    elements = [*config.iter("volume"), *config.iter("part")]
    if profile != "prusa":
        elements += config.iter("object")
    assert elements and [metadata(element)["name"] for element in elements] == names * len(elements)


@pytest.mark.parametrize("profile", SLICERS)
def test_a_project_has_its_plate_and_pictures_in_lists(profile: str) -> None:
    entries, _ = convert(two_colors(), threemf_profile=profile)
    (plate,) = ElementTree.fromstring(entries["Metadata/model_settings.config"]).iter("plate")
    picture = "Metadata/plate_1.png"
    assert metadata(plate) == {"plater_id": "1", "plater_name": "", "locked": "false", "thumbnail_file": picture}
    links = ElementTree.fromstring(entries["_rels/.rels"])
    targets = {str(link.get("Type")).rpartition("/")[2]: link.get("Target") for link in links}
    covers = ("thumbnail", "cover-thumbnail-middle", "cover-thumbnail-small")
    assert [targets[kind] for kind in covers] == ["/" + picture] * 3 and picture in entries


def _pack(entries: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return file.getvalue()


OLD = {
    "version": "02.05.00.66",
    "printer_settings_id": "Bambu Lab X1 Carbon 0.4 nozzle",
    "printable_area": ["0x0", "256x0", "256x256", "0x256"],
    "filament_colour": ["#FF0000", "#00FF00"],
    "filament_type": ["PETG", "TPU"],
    "layer_height": "0.12",
    "outer_wall_speed": ["200"],
    "different_settings_to_system": ["layer_height;outer_wall_speed", "nozzle_temperature", "", "machine_start_gcode"],
    "flush_volumes_matrix": ["0", "140", "140", "0"],
}


def painted_project(files: dict[str, str] | None = None, **settings: Any) -> Source:
    mesh = paint_triangles(BRICK, {0: ' paint_color="84843"', 1: ' paint_seam="4"'})
    files = {SETTINGS: json.dumps(OLD | settings), **(files or {})}
    return project("bambu", {"a": mesh, "x": mesh_xml(scale=0.5)}, kinds={"x": "negative_part"}, files=files)


def test_a_project_for_another_printer_keeps_everything_but_settings_of_the_old_one() -> None:
    source = painted_project()
    with zipfile.ZipFile(io.BytesIO(source.read())) as archive:
        before = {name: archive.read(name) for name in archive.namelist()}
    entries, report = convert(source, threemf_profile="bambu", threemf_printer="bambu-a1-mini")
    assert {name for name in before if before[name] != entries[name]} == {SETTINGS, "3D/3dmodel.model"}
    # the middle of the plate was 128 mm
    assert entries["3D/3dmodel.model"] == before["3D/3dmodel.model"].replace(
        b'<item objectid="100"/>', b'<item transform="1 0 0 0 1 0 0 0 1 -38 -38 0" objectid="100"/>'
    )
    settings = read_settings(entries)
    assert settings["version"] == "02.05.00.66" and settings["filament_colour"] == ["#FF0000", "#00FF00"]
    assert settings["filament_settings_id"] == ["Generic PETG @BBL A1M", "Generic PLA @BBL A1M"]
    assert settings["different_settings_to_system"] == ["layer_height", "", "", ""]
    assert settings["layer_height"] == "0.12" and "outer_wall_speed" not in settings
    notes = messages(report)
    assert set(notes) == {"filament_types_replaced", "printer_settings_replaced"}
    assert "2 (TPU)" in notes["filament_types_replaced"]
    for lost in ("Bambu Lab X1 Carbon 0.4 nozzle", "machine_start_gcode", "nozzle_temperature", "outer_wall_speed"):
        assert lost in notes["printer_settings_replaced"]


def test_the_losses_of_another_printer_are_counted_beyond_the_message() -> None:
    keys = [f"a_long_name_of_a_setting_{number}" for number in range(9)]
    files = {"Metadata/process_settings_1.config": "{}", "Metadata/plate_1.json": "{}"}
    source = painted_project(files, different_settings_to_system=[";".join(keys)])
    entries, report = convert(source, threemf_profile="orca", threemf_printer="snapmaker-u1")
    message = messages(report)["printer_settings_replaced"]
    assert "lost: 1 own preset, a_long_name_of_a_setting_0" in message and message.endswith(" more")
    assert len(message) < 160 and not set(files) & set(entries)


def test_objects_stay_on_their_plates() -> None:
    """Plates are a grid with a gap of a fifth, whose second row is below the first one."""
    entries = dict(convert(two_colors(), threemf_profile="bambu")[0])
    items = "".join(
        f'<item objectid="3" transform="1 0 0 0 1 0 0 0 1 {x} {y} 5"/>'
        for x, y in [(128, 128), (435.2, 128), (128, -179.2)]
    )
    entries["3D/3dmodel.model"] = b"".join(
        (entries["3D/3dmodel.model"].partition(b"<build>")[0], b"<build>", items.encode(), b"</build></model>")
    )
    plates = "".join(
        f'<plate><metadata key="plater_id" value="{plate + 1}"/><model_instance><metadata key="object_id" value="3"/>'
        f'<metadata key="instance_id" value="{plate}"/></model_instance></plate>'
        for plate in range(3)
    )
    entries["Metadata/model_settings.config"] = f"<config>{plates}</config>".encode()
    moved, _ = convert(
        Source.from_bytes(_pack(entries), "a.3mf"), threemf_profile="bambu", threemf_printer="bambu-a1-mini"
    )
    root = ElementTree.fromstring(moved["3D/3dmodel.model"])
    places = [
        [float(number) for number in str(item.get("transform")).split()[9:]] for item in root.iter(f"{{{CORE}}}item")
    ]
    assert np.allclose(places, [(90, 90, 5), (306, 90, 5), (90, -126, 5)])


def test_parts_larger_than_the_plate_are_noted() -> None:
    source = project("bambu", {"a": mesh_xml(scale=100)}, files={SETTINGS: json.dumps(OLD)})
    _, report = convert(source, threemf_profile="bambu", threemf_printer="bambu-a1-mini")
    assert "1 of 1 parts are larger than the plate of Bambu Lab A1 mini" in messages(report)["larger_than_plate"]


@pytest.mark.parametrize("text", ["{", "[]", '{"printable_area": ["x"], "filament_colour": 3, "version": {}}'])
def test_unusual_settings_do_not_prevent_another_printer(text: str) -> None:
    source = project("orca", {"a": mesh_xml()}, files={SETTINGS: text})
    entries, report = convert(source, threemf_profile="orca", threemf_printer="bambu-h2d")
    assert read_settings(entries)["printer_model"] == "Bambu Lab H2D"
    assert "an unknown printer" in messages(report)["printer_settings_replaced"]


def test_a_sliced_project_gets_no_other_printer() -> None:
    source = painted_project({"Metadata/plate_1.gcode": "G1"})
    with pytest.raises(InvalidOption, match="cannot change machine code"):
        convert(source, threemf_profile="bambu", threemf_printer="bambu-a1")


def test_another_slicer_gets_the_materials_of_the_filaments() -> None:
    entries, report = convert(painted_project(), threemf_profile="prusa")
    assert b"; filament_type = PETG;TPU\n" in entries["Metadata/Slic3r_PE.config"]
    assert "filament_types_replaced" not in messages(report)
    back, _ = convert(Source.from_bytes(_pack(entries), "a.3mf"), threemf_profile="orca", threemf_printer="bambu-p2s")
    assert read_settings(back)["filament_type"] == ["PETG", "PLA"]


@pytest.mark.skipif(shutil.which("prusa-slicer") is None, reason="Debian's prusa-slicer is not installed")
def test_the_settings_for_prusaslicer_are_those_that_it_knows(tmp_path: Path) -> None:
    ours, _ = convert(two_colors(), threemf_profile="prusa")
    model, saved = tmp_path / "a.3mf", tmp_path / "settings.ini"
    model.write_bytes(_pack(ours))
    subprocess.run(["prusa-slicer", "--save", saved, model], check=True, capture_output=True)
    theirs, written = _parse_ini(saved.read_bytes()), _parse_ini(ours["Metadata/Slic3r_PE.config"])
    assert set(written) <= set(theirs)
    for key in ("filament_colour", "filament_type", "nozzle_diameter"):
        assert theirs[key] == written[key]


def _parse_ini(data: bytes) -> dict[str, str]:
    rows = (row.removeprefix("; ").partition(" = ") for row in data.decode().splitlines() if " = " in row)
    return {key: value for key, _, value in rows}
