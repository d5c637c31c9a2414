"""STEP over HTTP: all callers can send it, only Pro callers get it."""

from __future__ import annotations

import pytest

from http_serving import Running, check_error, read_report, unzip_response, zip_files
from meshhub import Registry, Source, Target
from meshhub.builtin_plugins.stl import StlWriterOptions
from meshhub.builtin_plugins.stl.writer import write
from models import brick, scene_of

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def stl() -> bytes:
    target = Target()
    write(scene_of(brick(10, 20, 30)), target, StlWriterOptions())
    return target.read()


def test_free_callers_see_the_format_locked(service: Running, stl: bytes) -> None:
    body = check_error(service.convert(stl, "a.stl", "step"), 403, "premium_format_required")
    assert "Pro" in body["error"] or "pro" in body["error"]
    check_error(service.convert(stl, "a.stl", ".STP"), 403, "premium_format_required")
    check_error(service.many(("a.stl", stl), target="step"), 403, "premium_format_required")
    check_error(service.batch(zip_files({"a.stl": stl}), "step"), 403, "premium_format_required")
    told_of = service.get("/supported").json()
    assert "step" not in told_of["output_formats"]
    assert "step" in told_of["input_formats"]
    assert (told_of["formats"]["step"]["requires"], told_of["formats"]["step"]["allowed"]) == ("pro", False)


def test_pro_callers_get_solids(service: Running, pro: dict[str, str], stl: bytes) -> None:
    answer = service.convert(stl, "Bracket 1.stl", "step", headers=pro)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "model/step"
    assert 'filename="Bracket 1.step"' in answer.headers["content-disposition"]
    assert answer.content.count(b"=ADVANCED_FACE(") == 6
    assert answer.content.count(b"=MANIFOLD_SOLID_BREP(") == 1
    assert b"Bracket" not in answer.content
    assert read_report(answer)["losses"] == []
    packed = unzip_response(service.batch(zip_files({"sub/a.stl": stl, "b.stl": stl}), "step", headers=pro))
    assert sorted(packed) == ["b.step", "sub/a.step"]


def test_all_callers_can_send_step(service: Running, pro: dict[str, str], stl: bytes) -> None:
    pytest.importorskip("OCP", reason="reading STEP needs OpenCASCADE")
    step = service.convert(stl, "a.stl", "step", headers=pro).content
    answer = service.convert(step, "a.STP", "stl")
    assert answer.status_code == 200
    model = Registry(entry_points=False).inspect(Source.from_bytes(answer.content, "a.stl")).model
    assert (model.faces, model.watertight) == (12, True)
    assert model.volume_mm3 == pytest.approx(6000)
    check_error(service.convert(step[: len(step) // 2], "a.step", "stl"), 422, "unreadable_file")
