"""Languages of texts and messages over HTTP."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from http_serving import Running, serving
from meshhub import Registry
from meshhub.error_codes import ERROR_CODES
from meshhub.pipeline.catalogs import find_catalogs
from test_cli import EXAMPLE
from translated_plugin import translated


@pytest.fixture(scope="module")
def german(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Serve a plug-in with a German catalog."""
    folder = tmp_path_factory.mktemp("german")
    with translated(folder / "site") as plugin, serving(folder, {}, None, (plugin,)) as running:
        yield running


def find_operation(body: dict[str, Any], operation_id: str) -> dict[str, Any]:
    (operation,) = [operation for operation in body["operations"] if operation["id"] == operation_id]
    return operation


@pytest.mark.parametrize(
    ("path", "header"),
    [
        ("/supported?language=de", ""),
        ("/supported?language=de-AT", "en"),
        ("/supported", "de-AT,de;q=0.9,en;q=0.8"),
        ("/supported?language=", "de"),
    ],
)
def test_texts_of_plugins_are_served_in_german(german: Running, path: str, header: str) -> None:
    answer = german.get(path, headers={"Accept-Language": header})
    assert answer.headers["content-language"] == "de"
    assert {"X-Api-Key", "Accept-Language"} <= set(answer.headers["vary"].split(", "))
    body = answer.json()
    assert body["language"] == "de"
    assert body["faults"] == []
    tint = find_operation(body, "tint")
    assert tint["label"] == "Tönen"
    assert tint["options"]["properties"]["tint"] == {
        "type": "string",
        "title": "Farbton",
        "description": "Färbt das ganze Modell.",
        "enum": ["cold", "warm"],
        "oneOf": [{"const": "cold", "title": "kalte Farben"}, {"const": "warm", "title": "warme Farben"}],
    }
    assert find_operation(body, "repair")["label"] == "Reparieren"
    # a plug-in without a catalog
    assert find_operation(body, "polish")["label"] == "Polish"


@pytest.mark.parametrize(
    ("path", "header"),
    [("/supported", ""), ("/supported", "en-US,de;q=0.5"), ("/supported?language=xx", "de"), ("/supported", "xx")],
)
def test_texts_are_english_otherwise(german: Running, path: str, header: str) -> None:
    answer = german.get(path, headers={"Accept-Language": header})
    assert answer.headers["content-language"] == "en"
    assert find_operation(answer.json(), "tint")["label"] == "Tint"


def test_each_language_has_its_etag(german: Running) -> None:
    english, translation = german.get("/supported"), german.get("/supported?language=de")
    assert english.headers["etag"] != translation.headers["etag"]
    known = {"If-None-Match": translation.headers["etag"]}
    again = german.get("/supported", headers={**known, "Accept-Language": "de"})
    assert (again.status_code, again.headers["vary"]) == (304, "X-Api-Key, Accept-Language")
    assert german.get("/supported", headers=known).status_code == 200


def test_options_are_json_schema_in_every_language(german: Running) -> None:
    for language in ("en", "de"):
        body = german.get(f"/supported?language={language}").json()
        described = [*body["formats"].values(), *body["operations"], body]
        for schema in (entry["options"] for entry in described):
            Draft202012Validator.check_schema(schema)
        Draft202012Validator(find_operation(body, "tint")["options"]).validate({"tint": "warm"})
        assert not Draft202012Validator(find_operation(body, "tint")["options"]).is_valid({"tint": "hot"})


def test_the_label_of_the_plan_is_translated(german: Running) -> None:
    for language, label in (("en", "Free"), ("de", "Kostenlos")):
        answer = german.get("/plan", headers={"Accept-Language": language})
        assert (answer.json()["label"], answer.headers["content-language"]) == (label, language)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Serve the built-in plug-ins."""
    with serving(tmp_path_factory.mktemp("languages"), {}, None, ()) as running:
        yield running


def write_obj() -> tuple[str, bytes]:
    """Return a file whose reader reports a note: its materials are not there."""
    return "part.obj", b"mtllib gone.mtl\nusemtl x\nv 0 0 0\nv 10 0 0\nv 0 10 0\nv 0 0 10\nf 1 2 3\nf 1 2 4\n"


@pytest.mark.parametrize(
    ("language", "not_found", "broken"),
    [
        ("de", "Diese Adresse gibt es nicht: there is no endpoint '/nowhere'", "Die Datei lässt sich nicht lesen: "),
        ("fr-CA", "Cette adresse n’existe pas : there is no endpoint '/nowhere'", "Le fichier est illisible : "),
        ("es", "Esta dirección no existe: there is no endpoint '/nowhere'", "El archivo no se puede leer: "),
        ("xx", "there is no endpoint '/nowhere'", ""),
    ],
)
def test_errors_are_in_the_language_of_the_request(
    service: Running, language: str, not_found: str, broken: str
) -> None:
    headers = {"Accept-Language": language}
    answer = service.get("/nowhere", headers=headers)
    assert answer.headers["content-language"] == ("en" if language == "xx" else language[:2])
    assert "Accept-Language" in answer.headers["vary"]
    assert answer.json()["error_code"] == "not_found"
    assert answer.json()["error"].startswith(not_found)
    file = ("cut.glb", b"glTF\x02\x00\x00\x00\xff\xff\x00\x00")
    english = service.post("/inspect", files={"file": file}).json()
    answer = service.post("/inspect", files={"file": file}, headers=headers)
    assert answer.json()["error_code"] == english["error_code"]
    assert answer.json()["error"] == broken + english["error"]


def test_every_error_of_the_service_has_a_meaning_in_every_language() -> None:
    registry = Registry(entry_points=False)
    for language in find_catalogs("meshhub"):
        assert registry.texts(language).errors.keys() == ERROR_CODES.keys()


def test_notes_are_in_the_language_of_the_request(service: Running) -> None:
    files = {"file": write_obj()}
    english = service.post("/inspect", files=files)
    german = service.post("/inspect", files=files, headers={"Accept-Language": "de-CH, en;q=0.5"})
    assert (english.headers["content-language"], german.headers["content-language"]) == ("en", "de")
    notes, translated = english.json()["notes"], german.json()["notes"]
    assert [note["code"] for note in notes] == [note["code"] for note in translated]
    assert notes and all(note["message"] != other["message"] for note, other in zip(notes, translated, strict=True))
    figures = ("notes", "source")
    assert {**german.json(), **dict.fromkeys(figures)} == {**english.json(), **dict.fromkeys(figures)}


def test_the_report_of_a_conversion_is_in_the_language_of_the_request(service: Running) -> None:
    form = {"files": {"file": write_obj()}, "data": {"target": "stl"}}
    english = service.post("/convert", **form)
    german = service.post("/convert", **form, headers={"Accept-Language": "de"})
    assert english.content == german.content
    assert "Accept-Language" in german.headers["vary"]
    notes, translated = (json.loads(answer.headers["x-meshhub-report"])["notes"] for answer in (english, german))
    assert [note["code"] for note in notes] == [note["code"] for note in translated]
    assert all(note["message"] != other["message"] for note, other in zip(notes, translated, strict=True))


def test_findings_are_in_the_language_of_the_request(service: Running) -> None:
    files = {"file": ("bracket.stl", EXAMPLE.read_bytes())}
    answer = service.post("/check", files=files, data={"checks": "mesh"}, headers={"Accept-Language": "fr"})
    assert answer.headers["content-language"] == "fr"
    assert answer.json()["findings"][0]["message"].startswith("16 arêtes sont ouvertes ; les trancheurs")


def test_a_job_is_described_in_the_language_of_each_request(service: Running) -> None:
    submitted = service.post("/jobs", files={"file": write_obj()}, data={"target": "stl"})
    path = f"/jobs/{submitted.json()['id']}"
    # the stream ends with the job
    events = service.get(f"{path}/events", headers={"Accept-Language": "de"})
    assert events.headers["content-language"] == "de"
    english, german = service.get(path).json(), service.get(path, headers={"Accept-Language": "de"}).json()
    assert json.loads(events.text.strip().splitlines()[-1].removeprefix("data: "))["report"] == german["report"]
    notes, translated = english["report"]["notes"], german["report"]["notes"]
    assert [note["code"] for note in notes] == [note["code"] for note in translated]
    assert notes[0]["message"] != translated[0]["message"]


def test_files_of_results_are_in_the_language_of_their_request(service: Running) -> None:
    files = [("files", write_obj()), ("files", ("cut.glb", b"glTF\x02\x00\x00\x00\xff\xff\x00\x00"))]
    form = {"files": files, "data": {"target": "stl", "report": "true"}}
    german = {"Accept-Language": "de"}
    answer = service.post("/convert-many", **form, headers=german)
    submitted = service.post("/jobs", **form, headers=german).json()["id"]
    inspection = service.post("/jobs", files={"file": write_obj()}, data={"kind": "inspect"}, headers=german).json()[
        "id"
    ]
    for job in (submitted, inspection):
        # the stream ends with the job
        service.get(f"/jobs/{job}/events")
    note = "Diese Material- oder Texturdateien fehlen: 'gone.mtl'"
    # a later request in another language does not change them
    content = service.get(f"/jobs/{submitted}/result", headers={"Accept-Language": "fr"}).content
    for archive in (answer.content, content):
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            converted, _ = json.loads(opened.read("report.json"))["files"]
            (failed,) = json.loads(opened.read("errors.json"))
        assert converted["report"]["notes"][0]["message"] == note
        assert failed["error"].startswith("Die Datei lässt sich nicht lesen: ")
    assert service.get(f"/jobs/{inspection}/result").json()["notes"][0]["message"] == note


def test_explanations_are_in_the_language_of_the_request(service: Running) -> None:
    fields = {"sources": '[{"name": "a.stl"}, {"name": "a.doc"}]', "target": "3mf", "repair": "true"}
    # without files, httpx would send a form of another type
    form = {name: (None, text) for name, text in fields.items()}
    answer = service.post("/explain", form, headers={"Accept-Language": "es"})
    readable, unknown = answer.json()["files"]
    assert any(step["because"].startswith("etapa ") for step in readable["steps"])
    assert unknown["error"].startswith("Ni el contenido ni la extensión")


def test_a_long_list_of_languages_costs_nothing(service: Running) -> None:
    answer = service.get("/plan", headers={"Accept-Language": "-".join(["a"] * 3000) + ",de"})
    assert (answer.status_code, answer.headers["content-language"]) == (200, "en")
