"""POST /explain."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from http_serving import Running, check_error


def explain(service: Running, *sources: dict[str, Any], headers: Any = None, **fields: str) -> Any:
    """Explain conversions to `target` (default: 3mf); return the body of the response."""
    fields = {"target": "3mf", "sources": json.dumps(sources), **fields}
    # without files, httpx would send a form of another type
    answer = service.post("/explain", {name: (None, text) for name, text in fields.items()}, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_chain_is_explained_without_a_file(service: Running) -> None:
    body = explain(service, {"name": "sub/bracket.GLB", "size": 684}, target="stl", repair="true")
    (row,) = body["files"]
    assert (body["plan"], body["locked"]) == ("free", [])
    assert (row["name"], row["format"], row["ok"], row["error"]) == ("bracket.GLB", "glb", True, None)
    assert [(step["kind"], step["id"]) for step in row["steps"]] == [
        ("read", "glb"), ("operation", "repair"), ("write", "stl"),
    ]  # fmt: skip
    assert row["steps"][0]["because"] == "extension .glb"
    assert row["steps"][1]["options"] == {"repair": True}
    assert {"feature": "textures", "step": "stl"} in row["losses"]


def test_the_explained_chain_is_that_of_the_conversion(service: Running) -> None:
    (row,) = explain(service, {"name": "a.toy"}, target="toy", polish="true", step_deviation_mm="1")["files"]
    zipped = service.many(("a.toy", b"toy"), report="true", polish="true", step_deviation_mm="1")
    assert zipped.status_code == 200
    assert [step["id"] for step in row["steps"]] == ["toy", "polish", "toy"]
    assert [note["code"] for note in row["notes"]] == ["option_unused"]
    assert '"option_unused"' in zipped.headers["x-meshhub-report"]


def test_a_format_overrides_the_name(service: Running) -> None:
    rows = explain(service, {"format": ".OBJ"}, {"name": "x.stl", "format": "ply"}, {"name": "x.bin"})["files"]
    assert [row["format"] for row in rows] == ["obj", "ply", None]
    assert [(row["ok"], row["error_code"]) for row in rows][2] == (False, "unsupported_format")


def test_options_of_single_files_apply(service: Running) -> None:
    rows = explain(
        service, {"name": "a.stl"}, {"name": "b.stl"}, repair="true", file_options='{"1": {"repair": false}}'
    )["files"]
    assert [[step["id"] for step in row["steps"]] for row in rows] == [["stl", "repair", "3mf"], ["stl", "3mf"]]


def test_a_plan_locks_a_format_and_another_does_not(service: Running, pro: dict[str, str]) -> None:
    (row,) = explain(service, {"name": "a.toy"}, target="gilded")["files"]
    assert not row["ok"]
    assert [(lock["id"], lock["error_code"]) for lock in row["locked"]] == [("gilded", "premium_format_required")]
    assert [step["id"] for step in row["steps"]] == ["toy", "gilded"]
    (row,) = explain(service, {"name": "a.toy"}, target="gilded", headers=pro)["files"]
    assert (row["ok"], row["locked"]) == (True, [])


def test_limits_of_the_plan_lock_sizes_and_counts(service: Running) -> None:
    body = explain(service, *({"name": "a.stl", "size": 21 << 20} for _ in range(4)))
    assert [[lock["error_code"] for lock in row["locked"]] for row in body["files"]] == [["file_too_large"]] * 4
    assert [lock["error_code"] for lock in body["locked"]] == ["too_many_files", "file_too_large"]


def test_a_review_locks_a_conversion(service: Running) -> None:
    (row,) = explain(service, {"name": "a.toy"}, target="toy", toy_size="66")["files"]
    (lock,) = row["locked"]
    refused = check_error(service.convert(toy_size="66"), 403, lock["error_code"])
    assert (lock["id"], lock["message"]) == ("review", refused["error"])


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"target": "nonsense"}, 400, "unsupported_target"),
        ({"target": ""}, 400, "missing_field"),
        ({"sources": ""}, 400, "missing_field"),
        ({"sources": "[]"}, 400, "invalid_option"),
        ({"sources": "[{}]"}, 400, "invalid_option"),
        ({"sources": '[{"nome": "a.stl"}]'}, 400, "invalid_option"),
        ({"sources": '[{"name": 3}]'}, 400, "invalid_option"),
        ({"sources": '[{"name": "a.stl", "size": -1}]'}, 400, "invalid_option"),
        ({"sources": '[{"format": "nonsense"}]'}, 400, "invalid_option"),
        ({"target_height_mm": "-1"}, 400, "invalid_option"),
        ({"file_options": '{"1": {}}'}, 400, "invalid_option"),
        ({"nonsense": "1"}, 400, "invalid_option"),
        ({"report": "1"}, 400, "invalid_option"),
        ({"sources": '["' + "x" * 20_000 + '"]'}, 400, "invalid_multipart"),
    ],
)
def test_wrong_forms_are_errors(service: Running, fields: dict[str, str], status: int, code: str) -> None:
    form = {"target": "3mf", "sources": '[{"name": "a.stl"}]', **fields}
    check_error(service.post("/explain", {name: (None, text) for name, text in form.items()}), status, code)


@pytest.mark.parametrize("field", ["file", "files", "archive", "sources", "mesh"])
def test_files_are_rejected(service: Running, field: str) -> None:
    form = [("target", (None, "3mf")), (field, ("a.stl", b"solid x" * 4000))]
    check_error(service.post("/explain", form), 400, "missing_field")


def test_a_form_without_files_is_small(service: Running) -> None:
    answer: httpx.Response = service.post("/explain", {"file": ("a.stl", bytes(2 << 20))})
    check_error(answer, 413, "file_too_large")
