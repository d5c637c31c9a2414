"""Languages of /supported and /plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from http_serving import Running, serving
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
    [("/supported", ""), ("/supported", "en-US,de;q=0.5"), ("/supported?language=it", "de"), ("/supported", "it")],
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
