"""POST /convert-many and /convert-batch."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest

from http_serving import Running, check_error, read_report, unzip_response, zip_files
from meshhub.http.intake.conversion_requests import FileResult, InputFile
from meshhub.http.responses.reports import batch_header
from meshhub.http.responses.results import pack_results
from meshhub.model.capabilities import Format
from meshhub.model.notes import Note
from meshhub.model.report import FileReport, Report
from meshhub.model.source import Target
from meshhub.model.translations import Texts
from meshhub.pipeline import archived_models, companion_mentions

OBJ = Format(id="obj", label="OBJ", extensions=(".obj",))

GLTF = {
    "asset": {"version": "2.0"},
    "buffers": [{"uri": "data/my%20points.bin", "byteLength": 36}],
}


def failures(entries: dict[str, bytes]) -> dict[str, str]:
    """errors.json as file → code."""
    rows: list[dict[str, Any]] = json.loads(entries["errors.json"])
    assert all(set(row) - {"values"} == {"file", "error", "error_code"} for row in rows)
    return {row["file"]: row["error_code"] for row in rows}


def test_several_files_are_answered_with_one_zip(service: Running) -> None:
    answer = service.many(("a.toy", b"toy"), ("sub/b.toy", b"toy"), ("c c.toy", b"toy"))
    assert list(unzip_response(answer)) == ["a.toy", "b.toy", "c c.toy"]
    assert answer.headers["x-meshhub-converted"] == "3"
    assert answer.headers["x-meshhub-failed"] == "0"
    report = read_report(answer)
    assert (report["converted"], report["failed"], report["faces_in"], report["faces_out"]) == (3, 0, 36, 36)


def test_entries_of_the_zip_have_distinct_names(service: Running, pro: dict[str, str]) -> None:
    names = ["a.toy", "a.toy", "A.toy", "a.stl", "a-2.toy", "errors.toy", "ä.toy", "ä.toy"]
    answer = service.many(*((name, b"toy") for name in names), headers=pro)
    assert list(unzip_response(answer)) == [
        "a.toy", "a-2.toy", "A-3.toy", "a-4.toy", "a-2-2.toy", "errors.toy", "ä.toy", "ä-2.toy",
    ]  # fmt: skip


def test_files_named_by_an_extension_alone_get_visible_names(service: Running) -> None:
    answer = service.many((".toy", b"toy"), (".toy", b"toy"), ("model.toy", b"toy"))
    assert list(unzip_response(answer)) == ["model.toy", "model-2.toy", "model-3.toy"]
    answer = service.batch(zip_files({".toy": b"toy", "parts/.toy": b"toy"}))
    assert sorted(unzip_response(answer)) == ["model.toy", "parts/model.toy"]


def test_files_with_the_same_name_are_all_counted(service: Running) -> None:
    answer = service.many(("a.toy", b"toy"), ("a.toy", b"toy"))
    assert read_report(answer)["faces_in"] == 24
    assert answer.headers["x-meshhub-converted"] == "2"


def test_textures_are_packed_without_being_loaded_into_memory(tmp_path: Path) -> None:
    size = 8 << 20
    report = Report(source=FileReport(format="glb"), target=FileReport(format="obj"))
    outcomes = []
    for number, color in enumerate(b"rrg"):
        folder = tmp_path / str(number)
        folder.mkdir()
        target = Target("model.obj", folder=folder)
        (folder / "model.obj").write_bytes(b"v 0 0 0")
        target.companion("texture.png", bytes([color]) * size)
        file = InputFile(name=f"{number}.glb", folder="", stem=str(number), path=folder)
        outcomes.append(FileResult(file, report, target))
    tracemalloc.start()
    try:
        pack_results(tmp_path / "result.zip", outcomes, OBJ, report=False, texts=Texts())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < size
    with zipfile.ZipFile(tmp_path / "result.zip") as archive:
        # what is the same lies there once, another texture of that name in a folder beside its model
        assert archive.namelist() == ["0.obj", "texture.png", "1.obj", "2/2.obj", "2/texture.png"]
        assert [set(archive.read(name)) for name in ("texture.png", "2/texture.png")] == [{b"r"[0]}, {b"g"[0]}]


@pytest.mark.parametrize("is_compressed", [False, True])
def test_what_is_compressed_is_only_stored(tmp_path: Path, is_compressed: bool) -> None:
    model_format = Format(id="any", label="Any", extensions=(".any", ".other"), is_compressed=is_compressed)
    target = Target("model.any", folder=tmp_path)
    (tmp_path / "model.any").write_bytes(b"model" * 100)
    for name in ("wood.JPG", "wood.mtl"):
        target.companion(name, b"wood" * 100)
    result = FileResult(
        InputFile(name="a.glb", folder="", stem="a", path=tmp_path),
        Report(source=FileReport(format="glb"), target=FileReport(format="any")),
        target,
    )
    pack_results(tmp_path / "result.zip", [result], model_format, report=True, texts=Texts())
    with zipfile.ZipFile(tmp_path / "result.zip") as archive:
        assert {info.filename for info in archive.infolist() if info.compress_type == zipfile.ZIP_STORED} == (
            {"a.any", "wood.JPG"} if is_compressed else {"wood.JPG"}
        )
        assert archive.testzip() is None


def test_a_report_lists_each_code_of_a_file_once() -> None:
    first, second = (Note(code=code, message="text") for code in ("frame_converted", "material_simplified"))
    report = Report(source=FileReport(format="gltf"), target=FileReport(format="glb"), notes=(first, second, first))
    header = json.loads(batch_header([("a.gltf", report), ("b.gltf", report), ("a.gltf", report)], 0))
    assert header["notes"] == {name: ["frame_converted", "material_simplified"] for name in ("a.gltf", "b.gltf")}


def test_the_report_header_of_a_large_batch_is_truncated(service: Running, pro: dict[str, str]) -> None:
    answer = service.many(*((f"{'long' * 20}{n}.toy", b"toy") for n in range(100)), headers=pro)
    report = read_report(answer)
    assert report["truncated"] is True
    assert report["converted"] == 100
    assert report["faces_out"] == 1200
    assert 0 < len(report["notes"]) < 100


def test_failed_files_are_listed_and_counted(service: Running) -> None:
    answer = service.many(("a.toy", b"toy"), ("b.toy", b"toy empty"), ("c.xyz", b"???"))
    entries = unzip_response(answer)
    assert list(entries) == ["a.toy", "errors.json"]
    assert failures(entries) == {"b.toy": "empty_model", "c.xyz": "unsupported_format"}
    assert answer.headers["x-meshhub-converted"] == "1"
    assert answer.headers["x-meshhub-failed"] == "2"


def test_the_error_details_list_the_files_if_all_of_them_fail(service: Running) -> None:
    body = check_error(service.many(("a.toy", b"toy empty"), ("b.toy", b"toy empty")), 422, "empty_model")
    assert [failure["file"] for failure in body["details"]] == ["a.toy", "b.toy"]
    body = check_error(service.many(("a.toy", b"toy empty"), ("c.xyz", b"???")), 422, "conversion_failed")
    assert {failure["error_code"] for failure in body["details"]} == {"empty_model", "unsupported_format"}


def test_an_unexpected_error_fails_only_its_file(service: Running) -> None:
    answer = service.many(("a.toy", b"toy"), ("b.toy", b"toy fault"))
    entries = unzip_response(answer)
    assert failures(entries) == {"b.toy": "conversion_failed"}
    assert b"secret" not in entries["errors.json"]


def test_the_zip_contains_a_report_on_request(service: Running) -> None:
    entries = unzip_response(service.many(("a.toy", b"toy"), ("b.toy", b"toy empty"), report="true"))
    assert list(entries) == ["a.toy", "errors.json", "report.json"]
    result, failed = json.loads(entries["report.json"])["files"]
    assert (result["file"], result["output"]) == ("a.toy", "a.toy")
    assert result["report"]["target"]["faces"] == 12
    assert failed["error_code"] == "empty_model"
    assert "report.json" not in unzip_response(service.many(("a.toy", b"toy"), report="no"))


def test_the_same_request_gives_the_same_bytes(service: Running) -> None:
    first, second = (service.many(("a.toy", b"toy"), ("b.toy", b"toy"), target="ply") for _ in range(2))
    assert unzip_response(first)
    assert first.content == second.content


def test_companions_are_written_beside_their_model(service: Running) -> None:
    entries = unzip_response(service.many(("a.toy", b"toy"), ("b.toy", b"toy"), toy_twins="on"))
    assert list(entries) == ["a.toy", "twin.txt", "b.toy"]
    assert entries["twin.txt"] == b"3"


def test_different_companions_with_the_same_name_get_separate_folders(service: Running) -> None:
    """An .obj names its .mtl, which therefore cannot be renamed."""
    red, blue = (f"v 0 0 0 {c}\nv 1 0 0 {c}\nv 0 1 0 {c}\nusemtl m\nf 1 2 3\n".encode() for c in ("1 0 0", "0 0 1"))
    archive = zip_files(
        {
            "red.obj": b"mtllib red.mtl\n" + red,
            "red.mtl": b"newmtl m\nKd 1 0 0\n",
            "blue.obj": b"mtllib blue.mtl\n" + blue,
            "blue.mtl": b"newmtl m\nKd 0 0 1\n",
        }
    )
    entries = unzip_response(service.batch(archive, "obj"))
    models = [name for name in entries if name.endswith(".obj")]
    assert len(models) == 2
    for model in models:
        beside = model.rpartition("/")[0]
        library = next(line.split()[1] for line in entries[model].decode().splitlines() if line.startswith("mtllib"))
        color = b"1 0 0" if "red" in model else b"0 0 1"
        assert color in entries[f"{beside}/{library}".lstrip("/")]


def test_the_folders_of_an_archive_are_kept(service: Running) -> None:
    archive = zip_files(
        {"z/a.toy": b"toy", "a.toy": b"toy", "z/y/a.toy": b"toy", "__MACOSX/z/._a.toy": b"x", "z/.DS_Store": b"x"}
    )
    answer = service.batch(archive, "stl")
    assert list(unzip_response(answer)) == ["z/a.stl", "a.stl", "z/y/a.stl"]
    assert 'filename="models-converted.zip"' in answer.headers["content-disposition"]


def test_files_of_unknown_formats_in_an_archive_fail(service: Running) -> None:
    archive = zip_files({"a.toy": b"toy", "readme.txt": b"about a.toy", "b.toy": b"toy", "c.toy": b"toy"})
    entries = unzip_response(service.batch(archive))
    assert list(entries) == ["a.toy", "b.toy", "c.toy", "errors.json"]
    assert failures(entries) == {"readme.txt": "unsupported_format"}


def test_a_model_without_an_extension_is_identified_by_its_content(service: Running) -> None:
    assert list(unzip_response(service.batch(zip_files({"odd.name": b"toy", "none": b"toy"})))) == [
        "odd.toy",
        "none.toy",
    ]


def test_companions_are_used_but_not_counted_as_models(service: Running) -> None:
    archive = zip_files(
        {
            "m/a.toy": b"toy needs Textures/Wood%20Grain.PNG",
            "m/textures/wood grain.png": b"...",
            "b.toy": b"toy needs notes.mtl",
            "notes.mtl": b"map_Kd deeper.jpg",
            "deeper.jpg": b"...",
            "c.toy": b"toy",
            "stray.png": b"...",
        }
    )
    answer = service.batch(archive, "stl")
    entries = unzip_response(answer)
    assert list(entries) == ["m/a.stl", "b.stl", "c.stl", "errors.json"]
    assert failures(entries) == {"stray.png": "unsupported_format"}


def test_a_missing_companion_is_reported(service: Running) -> None:
    entries = unzip_response(service.batch(zip_files({"a.toy": b"toy needs x.png", "b.toy": b"toy"})))
    assert failures(entries) == {"a.toy": "external_reference"}


def test_a_file_over_the_limit_in_an_archive_fails_alone(serve: Any) -> None:
    small = serve(plan_limits={"free": {"max_file_bytes": 50_000, "requests_per_minute": 1000}})
    archive = zip_files({"a.toy": b"toy", "b.toy": bytes(range(256)) * 300})
    assert failures(unzip_response(small.batch(archive))) == {"b.toy": "file_too_large"}


def test_a_damaged_entry_fails_alone(service: Running) -> None:
    valid = b"toy " + bytes(range(256)) * 4
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("a.toy", b"toy")
        archive.writestr("b.toy", valid)
    broken = buffer.getvalue().replace(valid, valid[::-1])
    assert failures(unzip_response(service.batch(broken))) == {"b.toy": "unreadable_file"}


def test_an_invalid_form_rejects_the_whole_request(service: Running) -> None:
    archive = zip_files({"a.toy": b"toy"})
    check_error(service.batch(archive, "nonsense"), 400, "unsupported_target")
    check_error(service.batch(archive, "gilded"), 403, "premium_format_required")
    check_error(service.batch(archive, toy_size="-1"), 400, "invalid_option")
    check_error(service.many(("a.toy", b"toy"), report="perhaps"), 400, "invalid_option")


def read_heights(entries: dict[str, bytes]) -> list[float]:
    """Return the height of each source in `report.json`."""
    return [row["report"]["source"]["size_mm"][2] for row in json.loads(entries["report.json"])["files"]]


def test_options_of_single_files_override_the_common_ones(service: Running) -> None:
    own = json.dumps({"1": {"toy_size": 5}, "2": {"toy_size": "2", "input_unit": "m"}})
    toys = [(f"{number}.toy", b"toy") for number in range(3)]
    common = read_heights(unzip_response(service.many(*toys, report="true", toy_size="1")))
    heights = read_heights(unzip_response(service.many(*toys, report="true", toy_size="1", file_options=own)))
    assert heights == pytest.approx([common[0], 5 * common[0], 2000 * common[0]])
    # a batch applies them to the paths in the archive
    archive = zip_files({"a.toy": b"toy", "sub/a.toy": b"toy"})
    entries = unzip_response(
        service.batch(archive, report="true", toy_size="1", file_options='{"sub/a.toy": {"toy_size": 5}}')
    )
    assert read_heights(entries) == pytest.approx([common[0], 5 * common[0]])


def test_options_of_single_files_add_operations(service: Running) -> None:
    answer = service.many(("a.toy", b"toy"), ("b.toy", b"toy"), report="1", file_options='{"0": {"polish": true}}')
    rows = json.loads(unzip_response(answer)["report.json"])["files"]
    assert [[step["step"] for step in row["report"]["steps"]] for row in rows] == [
        ["toy", "polish", "toy"],
        ["toy"] * 2,
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[1]", "file_options"),
        ('{"0": 1}', "file_options"),
        ('{"0": {"toy_size": [1]}}', "file_options"),
        ('{"0": {"toy_size": 1}', "file_options"),
        ('{"2": {"toy_size": 1}}', "'2'"),
        ('{"a.toy": {"toy_size": 1}}', "'a.toy'"),
        ('{"0": {"toy_size": -1}}', "toy_size"),
        ('{"0": {"tyo_size": 1}}', "did you mean 'toy_size'"),
        ('{"0": {"target": "stl"}}', "target"),
    ],
)
def test_invalid_options_of_single_files_reject_the_request(service: Running, text: str, words: str) -> None:
    answer = service.many(("a.toy", b"toy"), ("b.toy", b"toy"), file_options=text)
    assert words in check_error(answer, 400, "invalid_option")["error"]


@pytest.mark.parametrize("path", ["/convert", "/inspect", "/jobs"])
def test_one_file_takes_no_options_by_file(service: Running, path: str) -> None:
    fields = {"kind": "convert"} if path == "/jobs" else {}
    fields |= {"target": "toy"} if path != "/inspect" else {}
    answer = service.post(path, {"file": ("a.toy", b"toy")}, {**fields, "file_options": "{}"})
    error = check_error(answer, 400, "invalid_option")["error"]
    assert "'file_options' is for several files" in error
    assert service.post(path, {"file": ("a.toy", b"toy")}, {**fields, "file_options": " "}).is_success


@pytest.mark.parametrize("path", ["/convert", "/jobs"])
def test_two_main_fields_are_rejected_with_the_cause(service: Running, path: str) -> None:
    fields = {"kind": "convert", "target": "toy"} if path == "/jobs" else {"target": "toy"}
    answer = service.post(path, {"file": ("a.toy", b"toy"), "files": ("b.toy", b"toy")}, fields)
    error = check_error(answer, 400, "invalid_option")["error"]
    assert "'file' and 'files' were both sent" in error


def test_an_unknown_option_has_a_short_message(service: Running) -> None:
    error = check_error(service.convert(nonsense="1"), 400, "invalid_option")["error"]
    assert "'nonsense'" in error
    assert "GET /supported" in error
    assert len(error) < 160


@pytest.mark.parametrize(
    ("archive", "status", "code"),
    [
        (b"", 422, "empty_model"),
        (b"not a zip at all", 422, "unreadable_file"),
        (zip_files({}), 422, "empty_model"),
        (zip_files({"__MACOSX/._a": b"x"}), 422, "empty_model"),
        (zip_files({"../a.toy": b"toy"}), 422, "unsafe_archive"),
        (zip_files({"a.toy": b"toy " + b" " * 4_000_000}), 422, "unsafe_archive"),
        (zip_files({"a.txt": b"x"}), 415, "unsupported_format"),
    ],
)
def test_an_invalid_archive_is_rejected(service: Running, archive: bytes, status: int, code: str) -> None:
    check_error(service.batch(archive), status, code)


def test_an_archive_with_too_many_models_is_rejected(service: Running) -> None:
    archive = zip_files({f"{number}.toy": b"toy" for number in range(4)})
    check_error(service.batch(archive), 413, "too_many_files")
    hidden = zip_files({f"{number}.odd": b"toy" for number in range(4)})
    check_error(service.batch(hidden), 413, "too_many_files")


def test_an_archive_that_unpacks_beyond_the_limit_is_rejected(serve: Any) -> None:
    small = serve(plan_limits={"free": {"max_request_bytes": 100_000, "requests_per_minute": 1000}})
    archive = zip_files({f"{n}.toy": bytes(range(256)) * 200 for n in range(3)})
    check_error(small.batch(archive), 413, "archive_too_large")


def test_companions_of_gltf_files_in_archives_are_found(service: Running) -> None:
    """A glTF whose buffer came along, and one whose did not; sent through the real reader."""
    archive = zip_files(
        {"a.gltf": json.dumps(GLTF).encode(), "data/my points.bin": bytes(36), "other.bin": b"x", "b.toy": b"toy"}
    )
    assert set(failures(unzip_response(service.batch(archive)))) == {"a.gltf", "other.bin"}


def test_the_search_for_companions_is_bounded(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[bytes] = []
    look = companion_mentions._names_at_end

    def counted(window: bytes, names: Any, longest: int) -> set[str]:
        looked_at.append(window)
        return look(window, names, longest)

    monkeypatch.setattr(companion_mentions, "_names_at_end", counted)
    monkeypatch.setattr(archived_models, "MAX_HIT_COUNT", 60)
    monkeypatch.setattr(archived_models, "_MAX_TOTAL_HIT_COUNT", 200)
    noisy = {f"{number}.part": b"toy needs 0.part " + b" .part" * 100 for number in range(20)}
    model = b"toy needs 0.part " + " ".join(noisy).encode()
    answer = service.batch(zip_files({"a.toy": model, **noisy, "never.part": b"?"}))
    assert read_report(answer)["converted"] == 1
    assert len(looked_at) == 200


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("b.png", {"b.png"}),
        ("ab.png", set()),
        ("map_Kd a b.png", {"a b.png", "b.png"}),
        ("map_Kd my%20b.png", {"b.png"}),
        ("folder\\B.PNG", {"b.png"}),
        ('"folder/b.png"', {"b.png"}),
    ],
)
def test_companion_names_match_whole_words_only(tmp_path: Path, text: str, names: set[str]) -> None:
    path = tmp_path / "text"
    path.write_text(text)
    assert companion_mentions.find_mentions(path, {"b.png", "a b.png"}, 100)[0] == names


def test_an_archive_of_windows_may_separate_folders_with_backslashes(service: Running) -> None:
    archive = zip_files({"parts_one_a.toy": b"toy", "parts_two_b.toy": b"toy"})
    archive = archive.replace(b"parts_one_a", b"parts\\one\\a").replace(b"parts_two_b", b"parts\\two\\b")
    answer = service.batch(archive)
    assert answer.status_code == 200
    assert sorted(unzip_response(answer)) == ["parts/one/a.toy", "parts/two/b.toy"]


def test_an_archive_that_is_sent_as_a_model_goes_to_another_endpoint(service: Running) -> None:
    for endpoint in ("/convert", "/inspect"):
        files = {"file": ("a.zip", zip_files({"a.toy": b"toy"}))}
        answer = service.client.post(endpoint, files=files, data={"target": "toy"} if endpoint == "/convert" else {})
        assert answer.status_code == 415
        assert "an archive goes to /convert-batch" in answer.json()["error"]
