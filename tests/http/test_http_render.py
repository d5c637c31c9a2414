"""POST /render."""

from __future__ import annotations

import io
import json
import struct

import httpx
import numpy as np
import pytest
from PIL import Image

from http_serving import ASCII_STL, Running, check_error, read_report
from models import brick
from threemf_projects import paint_triangles, project
from waiting import wait_until


def test_a_picture_comes_back(service: Running) -> None:
    answer = service.post("/render", {"file": ("Höhe.stl", ASCII_STL)}, {"size": "320x200", "view": "top,front"})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "image/png"
    assert "filename*=UTF-8''H%C3%B6he.png" in answer.headers["content-disposition"]
    assert read_report(answer)["target"] == "png"
    with Image.open(io.BytesIO(answer.content)) as image:
        assert image.size == (320, 200)
        assert len(image.getcolors(1 << 16) or ()) > 5
    again = service.post("/render", {"file": ("Höhe.stl", ASCII_STL)}, {"size": "320x200", "view": "top,front"})
    assert again.content == answer.content


def test_a_picture_from_a_process_of_its_own(isolated: Running) -> None:
    answer = isolated.post("/render", {"file": ("part.stl", ASCII_STL)}, {"background": "transparent"})
    assert answer.status_code == 200, answer.text
    with Image.open(io.BytesIO(answer.content)) as image:
        assert (image.size, image.mode) == ((1280, 960), "RGBA")
    wait_until(lambda: not isolated.leftovers())


@pytest.mark.parametrize("fields", [{}, {"threemf_paint": "split"}, {"threemf_paint": "dominant"}])
def test_pictures_previews_and_inspections_show_paint_unless_the_request_does_not(
    service: Running, fields: dict[str, str]
) -> None:
    mesh = paint_triangles(brick(), {0: ' paint_color="00083"'})
    file = ("painted.3mf", project("bambu", {"a": mesh}).read())
    is_split = fields != {"threemf_paint": "dominant"}

    def ask(path: str, **more: str) -> httpx.Response:
        answer = service.post(path, {"file": file}, {**fields, **more})
        assert answer.status_code == 200, answer.text
        return answer

    assert (ask("/inspect").json()["model"]["faces"] > 12) == is_split
    preview = ask("/preview").content
    (length,) = struct.unpack_from("<I", preview, 12)
    facts = json.loads(preview[20 : 20 + length])["asset"]["extras"]["meshhub"]
    assert (facts["triangles"] > 12) == (facts["inspection"]["model"]["faces"] > 12) == is_split
    codes = {note["code"] for note in read_report(ask("/render", size="320x200"))["notes"]}
    assert ("paint_split" in codes, "paint_simplified" in codes) == (is_split, not is_split)


@pytest.mark.parametrize("fields", [{"target_height_mm": "40"}, {"recipe": "print"}])
def test_options_of_operations_show_the_model_before_and_after(service: Running, fields: dict[str, str]) -> None:
    plain = service.post("/render", {"file": ("part.stl", ASCII_STL)}, {"size": "320x200"})
    answer = service.post("/render", {"file": ("part.stl", ASCII_STL)}, {"size": "320x200", **fields})
    assert answer.status_code == 200, answer.text
    assert answer.content != plain.content
    with Image.open(io.BytesIO(answer.content)) as image:
        left, right = (np.asarray(image.crop(box)) for box in ((0, 20, 160, 200), (160, 20, 320, 200)))
    widths = [np.ptp(np.flatnonzero((half != half[0, 0]).any(axis=(0, 2)))) for half in (left, right)]
    assert min(widths) > 50 and abs(widths[0] - widths[1]) <= 2, "each scale fills its tile"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"size": "9x9"}, "invalid_option"),
        ({"view": "sideways"}, "invalid_option"),
        ({"color_by": "surface"}, "invalid_option"),
        ({"color_by": "mood"}, "invalid_option"),
        ({"color_limit": "0", "color_by": "thickness"}, "invalid_option"),
        ({"edges": "yes"}, "invalid_option"),
        ({"marks": "1,2"}, "invalid_option"),
        ({"sise": "100x100"}, "invalid_option"),
        ({"target": "png"}, "invalid_option"),
    ],
)
def test_wrong_options_are_errors(service: Running, fields: dict[str, str], code: str) -> None:
    body = check_error(service.post("/render", {"file": ("part.stl", ASCII_STL)}, fields), 400, code)
    assert next(iter(fields)) in body["error"]


def test_measures_have_a_limit(service: Running) -> None:
    pictures = [
        service.post(
            "/render", {"file": ("part.stl", ASCII_STL)}, {"size": "320x240", "color_by": "thickness", **fields}
        )
        for fields in ({}, {"color_limit": "2"})
    ]
    assert [picture.status_code for picture in pictures] == [200, 200]
    assert pictures[0].content != pictures[1].content


def test_wrong_files_are_errors(service: Running) -> None:
    check_error(service.post("/render", {"file": ("part.stl", b"solid x\nendsolid x\n")}), 422, "empty_model")
    check_error(service.post("/render", {"file": ("part.bin", b"\0" * 200)}), 415, "unsupported_format")
    check_error(service.post("/render", {"files": ("part.stl", ASCII_STL)}), 400, "missing_field")


def test_the_options_of_pictures_belong_to_this_endpoint_alone(service: Running) -> None:
    check_error(service.post("/inspect", {"file": ("part.stl", ASCII_STL)}, {"size": "100x100"}), 400, "invalid_option")
    check_error(
        service.post("/convert", {"file": ("p.stl", ASCII_STL)}, {"target": "stl", "view": "top"}),
        400,
        "invalid_option",
    )


def test_pictures_are_counted(service: Running) -> None:
    service.post("/render", {"file": ("part.stl", ASCII_STL)})
    text = service.get("/metrics").text
    assert 'meshhub_conversions_total{outcome="ok",source="stl",target="png"}' in text
    assert 'meshhub_requests_total{endpoint="/render",status="200"}' in text


def test_pictures_are_described(service: Running) -> None:
    form = service.get("/schema/openapi.json").json()["paths"]["/render"]["post"]["requestBody"]["content"]
    properties = form["multipart/form-data"]["schema"]["properties"]
    assert {"file", "view", "size", "color_by", "edges", "background", "input_unit"} <= properties.keys()
    assert {"repair", "reduce_colors"} <= properties.keys()
    assert properties.keys().isdisjoint({"target", "threemf_profile"})
    colors = {"model", "part", "surface", "thickness", "overhang", "defects", "islands", "none"}
    assert set(properties["color_by"]["enum"]) == colors
