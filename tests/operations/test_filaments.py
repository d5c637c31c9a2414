"""Filaments of the user: names of colors, and files that slicers and other programs write."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import ImageColor
from test_reduce_colors import BLUE, RED, draw_halves, measure_areas, project_texture

from meshhub import InvalidOption, Registry
from meshhub.builtin_plugins.reduce_colors.color_names import CSS_COLORS
from meshhub.builtin_plugins.reduce_colors.filament_files import parse_filaments
from models import brick
from test_cli import meshhub_cli

pytestmark = pytest.mark.once

FIRE, SKY = ("Fire red", (208, 16, 32)), ("Sky blue", (48, 144, 208))

CONTENTS = {
    "list": "Fire red=#D01020, Sky blue=#3090D0",
    "lines": "Fire red #D01020\n\nSky blue\t#3090d0\n",
    "lines with commas": "Fire red,#D01020\r\nSky blue,#3090D0\r\n",
    "CSV": 'Name,Hex,TD\nFire red,D01020,3.5\n"Sky blue",#3090D0FF,8\nUnknown,,1\n',
    "CSV of a spreadsheet": "Color;Hex code\nFire red;#D01020\nSky blue;#3090D0\nRed again;#d01020\n",
    "JSON list": json.dumps([{"name": "Fire red", "color": "#D01020"}, {"name": "Sky blue", "color": "#3090D0"}]),
    "JSON object": json.dumps({"Fire red": "#D01020", "Sky blue": "#3090D0"}),
    "library": json.dumps(
        {
            "Filaments": [
                {"Brand": "A", "Color": "#D01020", "Name": "Fire red", "Transmissivity": 3.5, "uuid": "{12}"},
                {"Brand": "B", "Color": "#3090d0", "Name": "Sky blue", "Transmissivity": 8, "uuid": "{13}"},
            ]
        }
    ),
    "spools": json.dumps([{"id": 1, "name": "Fire red", "color_hex": "D01020"}, {"name": "Sky blue", "hex": "3090D0"}]),
    "Spoolman": json.dumps(
        [
            {
                "id": 1,
                "filament": {
                    "name": "Fire red",
                    "vendor": {"name": "A", "extra": {}},
                    "color_hex": "D01020",
                    "extra": {"td": '"3.5"'},
                },
            },
            {"id": 2, "filament": {"name": "Two", "multi_color_hexes": "D01020,3090D0", "extra": {}}},
            {"id": 3, "filament": {"name": "Sky blue", "color_hex": "3090D0FF", "extra": {"td": "8"}}},
        ]
    ),
    "SpoolmanDB": json.dumps(
        {
            "manufacturer": "A",
            "filaments": [
                {
                    "name": "{color_name}",
                    "material": "PLA",
                    "diameters": [1.75],
                    "colors": [
                        {"name": "Fire red", "hex": "D01020"},
                        {"name": "Rainbow", "hexes": ["FF0000", "00FF00"]},
                        {"name": "Sky blue", "hex": "3090D0"},
                    ],
                }
            ],
        }
    ),
    "Open Filament Database": json.dumps(
        {
            "variants": [
                {"id": "fire_red", "name": "Fire red", "color_hex": "#D01020", "hex_variants": ["#FF0000"]},
                {"id": "dual", "name": "Dual", "color_hex": ["#FF0000", "#00FF00"]},
                {"id": "sky_blue", "name": "Sky blue", "color_hex": ["#3090D0"], "traits": {"silk": True}},
            ]
        }
    ),
    "BambuStudio project": json.dumps(
        {
            "version": "02.00.00.00",
            "extruder_colour": ["#018001"],
            "filament_colour": ["#D01020", "#3090D0"],
            "filament_settings_id": ["Fire red", "Sky blue"],
        },
        indent=4,
    ),
    "PrusaSlicer settings": '# generated\nextruder_colour = ""\nfilament_colour = #D01020;#3090D0\n'
    'filament_settings_id = "Fire red";"Sky blue"\n',
    "PrusaSlicer project": "; filament_colour = #D01020;#3090D0\n; filament_settings_id = Fire red;Sky blue\n",
    "PrusaSlicer bundle": "[filament:Fire red]\nfilament_colour = #D01020\n\n[filament:Sky blue]\n"
    "filament_colour = #3090D0\n\n[printer:MK4]\nextruder_colour = #00FF00\n",
}


@pytest.mark.parametrize("kind", CONTENTS)
def test_files_with_filaments_are_read(kind: str) -> None:
    filaments = parse_filaments(CONTENTS[kind])
    assert [filament[:2] for filament in filaments] == [FIRE, SKY]
    transmission_mm = (3.5, 8.0) if kind in ("CSV", "library", "Spoolman") else (0.0, 0.0)
    assert tuple(filament.transmission_mm for filament in filaments) == transmission_mm


@pytest.mark.parametrize("length", ["0", "-3", "inf", "nan", "opaque", ""])
def test_a_transmission_distance_that_is_no_length_is_unknown(length: str) -> None:
    (filament,) = parse_filaments(f"Name,Hex,Transmission_Distance\nFire red,#D01020,{length}\n")
    assert filament == (*FIRE, 0.0)


def test_the_names_are_those_of_css() -> None:
    expected = {name: ImageColor.getrgb(name) for name in ImageColor.colormap}
    assert {name: parse_filaments(name)[0].color for name in CSS_COLORS} == expected
    assert parse_filaments("Red, #0000FF,tan=Tan") == [
        ("Red", (255, 0, 0), 0.0),
        ("", (0, 0, 255), 0.0),
        ("tan", (210, 180, 140), 0.0),
    ]
    assert [filament.color for filament in parse_filaments("red,#0000FF")] == [(255, 0, 0), (0, 0, 255)]


@given(st.text(max_size=80) | st.sampled_from(sorted(CONTENTS.values())).flatmap(lambda t: st.just(t[: len(t) // 2])))
def test_any_text_is_a_list_or_an_error_of_the_option(text: str) -> None:
    try:
        filaments = parse_filaments(text)
    except InvalidOption as error:
        assert error.options == ("reduce_colors_palette",)
        assert error.message.isprintable()
    else:
        assert all(name.isprintable() and len(name) <= 60 for name, *_ in filaments)


def test_the_command_line_reads_a_file_and_3mf_keeps_the_names(tmp_path: Path) -> None:
    with Registry(entry_points=False) as registry:
        registry.write(project_texture(brick(20, 20, 2), draw_halves()), tmp_path / "a.glb")
        content = "Name,Hex\nFire red,#D01020\nSky blue,#0050B0\nGrass,#00FF00\n"
        (tmp_path / "mine.csv").write_text(content)
        options = ("--reduce-colors-palette", "mine.csv", "--reduce-colors", "2")
        done = meshhub_cli("convert", "a.glb", "b.3mf", *options, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        marked = ("--reduce-colors-palette", "@mine.csv", "--reduce-colors", "2", "--force")
        assert meshhub_cli("convert", "a.glb", "b.3mf", *marked, cwd=tmp_path).returncode == 0
        scene = registry.read(tmp_path / "b.3mf")
        assert [material.name for material in scene.materials] == ["Fire red", "Sky blue"]
        areas = measure_areas(scene)
        assert areas[FIRE[1]] == pytest.approx(480, rel=0.02)
        # the other interfaces take the content, and never a path
        registry.convert(tmp_path / "a.glb", tmp_path / "c.3mf", reduce_colors=2, reduce_colors_palette=content)
        assert measure_areas(registry.read(tmp_path / "c.3mf")) == areas
        with pytest.raises(InvalidOption, match="lists colors as"):
            registry.convert(tmp_path / "a.glb", tmp_path / "d.3mf", reduce_colors_palette=str(tmp_path / "mine.csv"))


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "No such file"), (b"\xff\xfe", "not UTF-8"), (b"#" * (2 << 20), "over 1048576 bytes")],
)
def test_the_error_of_a_file_that_cannot_be_read_says_why(tmp_path: Path, content: bytes | None, words: str) -> None:
    with Registry(entry_points=False) as registry:
        registry.write(project_texture(brick(), draw_halves(RED, BLUE)), tmp_path / "a.glb")
    if content is not None:
        (tmp_path / "mine.txt").write_bytes(content)
    done = meshhub_cli("convert", "a.glb", "b.3mf", "--reduce-colors-palette", "mine.txt", cwd=tmp_path)
    assert done.returncode == 2
    assert words.encode() in done.stderr
