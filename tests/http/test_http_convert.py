"""POST /convert and /inspect."""

from __future__ import annotations

import json
import socket
from urllib.parse import unquote

import httpx
import pytest

from builtin_formats import MEDIA_TYPES, MESH_TARGETS
from http_serving import ASCII_STL, Running, check_error, read_report
from waiting import wait_until


def test_a_file_is_converted(service: Running) -> None:
    answer = service.convert(toy_size="5")
    assert answer.status_code == 200
    assert answer.json() == {"faces": 12}
    assert answer.headers["content-type"] == "model/x-toy"
    assert answer.headers["content-length"] == str(len(answer.content))
    assert "content-encoding" not in answer.headers
    report = read_report(answer)
    assert (report["source"], report["target"], report["faces_in"], report["faces_out"]) == ("toy", "toy", 12, 12)
    assert {"feature": "names", "step": "toy"} in report["losses"]
    assert "truncated" not in report


@pytest.mark.parametrize("target", ["TOY", ".toy", " .Toy "])
def test_case_and_dots_of_the_target_are_ignored(service: Running, target: str) -> None:
    assert service.convert(target=target).status_code == 200


@pytest.mark.parametrize(
    ("sent", "plain", "whole"),
    [
        ("part.toy", "part.toy", "part.toy"),
        ("Höhe 5 µm.toy", "Hohe 5 m.toy", "H%C3%B6he%205%20%C2%B5m.toy"),
        ("零件.toy", "model.toy", "%E9%9B%B6%E4%BB%B6.toy"),
        ("../../etc/x.toy", "x.toy", "x.toy"),
        ("C:\\parts\\y.toy", "y.toy", "y.toy"),
        ("a.toy.gz", "a.toy.toy", "a.toy.toy"),
        ('we"ird; name.toy', "we_ird_ name.toy", "we_ird%3B%20name.toy"),
        ("con.toy", "_con.toy", "_con.toy"),
        (".toy", "model.toy", "model.toy"),
        ("..stl", "model.toy", "model.toy"),
    ],
)
def test_the_result_is_named_after_the_upload(service: Running, sent: str, plain: str, whole: str) -> None:
    answer = service.convert(name=sent)
    disposition = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{whole}"
    assert answer.headers["content-disposition"] == disposition


def test_a_long_name_keeps_its_extension(service: Running) -> None:
    answer = service.convert(name="x" * 3000 + ".toy")
    assert answer.status_code == 200
    assert len(answer.headers["content-disposition"]) < 500


def test_a_long_name_of_any_script_fits_a_file_system(service: Running) -> None:
    answer = service.convert(name="模" * 90 + ".toy")
    name = unquote(answer.headers["content-disposition"].rpartition("''")[2])
    assert name.startswith("模" * 60) and name.endswith(".toy")
    # with room for a number before the extension
    assert len(name.encode()) <= 210


def test_a_name_encoded_by_rfc_5987_is_decoded(service: Running) -> None:
    body = (
        b'--b\r\nContent-Disposition: form-data; name="target"\r\n\r\ntoy\r\n'
        b"--b\r\nContent-Disposition: form-data; name=\"file\"; filename*=utf-8''%C3%A4.toy\r\n\r\ntoy\r\n--b--\r\n"
    )
    answer = service.client.post("/convert", content=body, headers={"Content-Type": "multipart/form-data; boundary=b"})
    assert answer.headers["content-disposition"].endswith("filename*=UTF-8''%C3%A4.toy")


def test_options_reach_the_plugins(service: Running) -> None:
    looked = service.post("/inspect", {"file": ("a.toy", b"toy")}, {"toy_size": " 7.5 ", "toy_notes": ""})
    assert looked.status_code == 200
    body = looked.json()
    assert body["model"]["size_mm"] == [1, 2, 7.5]
    assert body["model"]["watertight"] is True
    assert body["model"]["volume_mm3"] == pytest.approx(15)
    assert body["source"]["format"] == "toy"


def test_operations_run(service: Running) -> None:
    answer = service.convert(target_height_mm="40", place_on_bed="yes")
    steps = {note.get("step") for note in read_report(answer)["notes"]}
    assert answer.status_code == 200
    assert "toy" in steps


def test_an_unused_option_is_noted(service: Running) -> None:
    answer = service.post("/convert", {"file": ("a.toy", b"toy")}, {"target": "toy", "place_on_bed": "off"})
    assert "option_unused" not in {note["code"] for note in read_report(answer)["notes"]}
    answer = service.post("/convert", {"file": ("a.toy", b"toy")}, {"target": "stl", "toy_twins": "on"})
    assert "option_unused" in {note["code"] for note in read_report(answer)["notes"]}


@pytest.mark.parametrize("off", ["false", "no", "0"])
def test_an_operation_that_is_switched_off_does_not_run(service: Running, off: str) -> None:
    codes = {note["code"] for note in read_report(service.convert(polish_strength="0.5"))["notes"]}
    assert "polished" in codes and "option_unused" not in codes
    codes = {note["code"] for note in read_report(service.convert(polish_strength="0.5", polish=off))["notes"]}
    assert "polished" not in codes and "option_unused" in codes


def test_a_long_report_header_is_truncated(service: Running) -> None:
    answer = service.convert(toy_notes="300")
    report = read_report(answer)
    assert report["truncated"] is True
    assert report["faces_out"] == 12
    assert 0 < len(report["notes"]) < 300


def test_a_truncated_report_keeps_the_codes_of_its_notes(service: Running) -> None:
    report = read_report(service.convert(toy_notes="30"))
    assert report["truncated"] is True
    assert {f"remark_{number}" for number in range(30)} <= {note["code"] for note in report["notes"]}


def test_a_result_with_companions_is_rejected_by_convert(service: Running) -> None:
    answer = service.convert(toy_twins="1")
    assert "companions_left_out" in {note["code"] for note in read_report(answer)["notes"]}


def test_the_content_takes_precedence_over_the_extension(service: Running) -> None:
    answer = service.convert(b"toy", name="model.stl")
    assert answer.status_code == 200
    assert "content_beats_name" in {note["code"] for note in read_report(answer)["notes"]}
    assert service.convert(b"toy", name="nothing").status_code == 200


def test_a_part_without_a_file_name_is_a_file(service: Running) -> None:
    answer = service.client.post("/convert", files={"file": (None, b"toy"), "target": (None, b"toy")})
    assert answer.status_code == 200
    assert 'filename="model.toy"' in answer.headers["content-disposition"]


@pytest.mark.parametrize("target", MESH_TARGETS)
def test_every_target_has_its_media_type(service: Running, target: str) -> None:
    answer = service.convert(ASCII_STL, "t.stl", target)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == MEDIA_TYPES[target]
    assert f'filename="t{service.registry.formats[target].extensions[0]}"' in answer.headers["content-disposition"]
    assert read_report(answer)["faces_out"] == 2


def test_inspect_takes_no_target(service: Running) -> None:
    answer = service.post("/inspect", {"file": ("a.toy", b"toy")}, {"target": "stl"})
    assert "target" in check_error(answer, 400, "invalid_option")["error"]


def test_temporary_files_are_removed(service: Running) -> None:
    service.convert()
    service.convert(b"toy empty")
    service.convert(target="nonsense")
    wait_until(lambda: not service.leftovers())


def test_the_report_and_the_result_omit_the_name_of_the_upload(service: Running) -> None:
    """It is in Content-Disposition alone."""
    answer = service.convert(name="topsecret.toy")
    assert "topsecret" not in json.dumps(read_report(answer))
    assert b"topsecret" not in answer.content


def test_a_large_answer_is_complete(service: Running) -> None:
    weight = (3 << 20) + 17
    answer = service.convert(toy_weight=str(weight))
    assert answer.content == b'{"faces": 12}' + bytes(weight)
    assert answer.headers["content-length"] == str(len(answer.content))


def test_a_client_that_disconnects_during_an_answer_leaves_no_files(service: Running) -> None:
    request = httpx.Request(
        "POST",
        f"{service.url}/convert",
        files={"file": ("a.toy", b"toy")},
        data={"target": "toy", "toy_weight": "200000000"},
    )
    head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    with socket.socket() as client:
        # a buffer that is limited only after the connection may already hold most of the answer, which ends the request
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
        client.settimeout(60)
        client.connect(("127.0.0.1", service.port))
        client.sendall(f"POST /convert HTTP/1.1\r\n{head}\r\n".encode() + request.read())
        assert client.recv(1 << 12).startswith(b"HTTP/1.1 200 ")
        assert service.leftovers()
    wait_until(lambda: not service.leftovers())
