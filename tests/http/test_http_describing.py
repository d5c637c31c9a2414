"""/supported, /schema, /health, the documentation page, and settings."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from http_serving import Running, check_error, zip_files
from meshhub.engine.in_process import InProcess
from meshhub.http.errors import STATUS
from meshhub.http.intake.names import content_disposition, folder_label, label
from meshhub.http.server.app import create_app
from meshhub.model.options import option_fields
from meshhub.model.plans import LOCAL, Limits
from meshhub.pipeline.purposes import RESERVED
from meshhub.registry import Registry
from meshhub.service.settings import Settings
from meshhub.supported import supported

DOCS = Path(__file__).parents[2] / "docs" / "reference"


def test_health_needs_no_key(service: Running) -> None:
    for path in ("/health/live", "/health/ready"):
        answer = service.get(path)
        assert answer.status_code == 200
        assert "ratelimit-limit" not in answer.headers


def test_supported_lists_what_the_registry_lists(service: Running, pro: dict[str, str]) -> None:
    body = service.get("/supported").json()
    assert body["plan"] == "free"
    assert "toy" in body["input_formats"]
    assert "toy" in body["output_formats"]
    assert body["formats"]["gilded"]["requires"] == "pro"
    assert body["formats"]["gilded"]["allowed"] is False
    assert body["formats"]["lacking"]["write"] is False
    assert {operation["id"] for operation in body["operations"]} >= {"repair", "place-on-bed"}
    same = supported(service.registry, LOCAL)
    assert body["operations"] == same["operations"]
    assert service.get("/supported", headers=pro).json()["formats"]["gilded"]["allowed"] is True


def test_supported_answers_304_to_a_matching_etag(service: Running, pro: dict[str, str]) -> None:
    first = service.get("/supported")
    etag = first.headers["etag"]
    assert re.fullmatch(r'"[0-9a-f]+"', etag)
    for value in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        again = service.get("/supported", headers={"If-None-Match": value})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == etag
    assert service.get("/supported", headers={"If-None-Match": '"other"'}).status_code == 200
    assert service.get("/supported", headers={"If-None-Match": etag, **pro}).status_code == 200


def read_document(service: Running) -> dict[str, Any]:
    answer = service.get("/schema/openapi.json")
    assert answer.headers["content-type"] == "application/json"
    document: dict[str, Any] = answer.json()
    return document


def test_the_schema_has_every_option_as_a_field(service: Running) -> None:
    described = read_document(service)
    assert described["openapi"] == "3.1.0"
    form = described["paths"]["/convert"]["post"]["requestBody"]["content"]["multipart/form-data"]["schema"]
    fields = form["properties"]
    assert form["required"] == ["file", "target"]
    for _, struct in service.registry.declarations.option_structs():
        for field in option_fields(struct):
            assert fields[field.name]["title"] == field.title
            assert fields[field.name]["type"] == field.schema()["type"]
    assert fields["toy_size"]["exclusiveMinimum"] == 0
    assert fields["toy_size"]["maximum"] == 100
    assert fields["file"]["format"] == "binary"
    assert {"toy", "gilded"} <= set(fields["target"]["examples"])
    looking = described["paths"]["/inspect"]["post"]["requestBody"]["content"]["multipart/form-data"]["schema"]
    assert "toy_size" in looking["properties"]
    assert not {"place_on_bed", "target", "toy_twins"} & set(looking["properties"])


def test_no_plug_in_may_take_the_name_of_a_field_of_a_form(service: Running) -> None:
    declarations = service.registry.declarations
    names = {field.name for _, struct in declarations.option_structs() for field in option_fields(struct)}
    names |= declarations.check_fields().keys()
    for path, item in read_document(service)["paths"].items():
        form = item.get("post", {}).get("requestBody", {}).get("content", {}).get("multipart/form-data")
        if form is not None:
            assert form["schema"]["properties"].keys() - names <= RESERVED, path


def list_endpoints(service: Running) -> set[tuple[str, str]]:
    """Return the path and the method of every route of the service, without the files of the page."""
    app: Any = service.server.config.app
    return {
        (re.sub(r"{(\w+):\w+}", r"{\1}", route.path), method.lower())
        for route in app.routes
        if route.path not in app.state.service.page_files
        for method in route.methods - {"OPTIONS"}
    }


def test_the_schema_names_every_endpoint_and_every_error(service: Running) -> None:
    described = read_document(service)
    paths = described["paths"]
    assert {(path, method) for path, methods in paths.items() for method in methods} == list_endpoints(service)
    text = str(described)
    # only `meshhub app` sends the last two
    for code in set(STATUS) - {"not_found", "method_not_allowed", "app_token_required", "save_failed"}:
        assert f"`{code}`" in text
    operations = [operation["operationId"] for methods in paths.values() for operation in methods.values()]
    assert len(operations) == len(set(operations))
    references = re.findall(r"'\$ref': '([^']+)'", text)
    assert references
    for reference in references:
        node: Any = described
        for step in reference.removeprefix("#/").split("/"):
            node = node[step]


def assert_valid(schema: dict[str, Any], described: dict[str, Any], value: Any) -> None:
    """Assert that a value follows a schema of the document."""
    Draft202012Validator({**schema, "components": described["components"]}).validate(value)


def list_responses(described: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return every response with its status."""
    operations = [operation for methods in described["paths"].values() for operation in methods.values()]
    return [response for operation in operations for response in operation["responses"].items()]


def test_answers_match_the_schema(service: Running) -> None:
    described = read_document(service)
    for path in ("/plan", "/supported"):
        schema = described["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        declared = described["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        body = service.get(path).json()
        assert set(declared["required"]) <= set(body) <= set(declared["properties"])
        assert_valid(schema, described, body)
    looked = service.post("/inspect", {"file": ("a.toy", b"toy")}).json()
    inspection = described["components"]["schemas"]["Inspection"]
    assert set(inspection["required"]) <= set(looked) <= set(inspection["properties"])
    assert_valid(inspection, described, looked)
    failed = check_error(service.many(("a.toy", b"toy fault"), ("b.toy", b"toy fault")), 422, "conversion_failed")
    assert failed["details"]
    assert_valid(described["components"]["schemas"]["ErrorBody"], described, failed)


def test_the_document_is_valid_openapi(service: Running) -> None:
    OpenAPIV31SpecValidator(read_document(service)).validate()


def test_examples_follow_their_schemas(service: Running) -> None:
    described = read_document(service)
    posts = [methods["post"] for methods in described["paths"].values() if "post" in methods]
    bodies = [operation["requestBody"]["content"] for operation in posts]
    contents = [content for body in bodies for content in body.values()]
    # the reference page fills its forms from the example
    for form in [body["multipart/form-data"] for body in bodies if "multipart/form-data" in body]:
        texts = {name for name in form["schema"]["required"] if name not in ("file", "files", "archive")}
        assert texts <= form["example"].keys()
    for status, response in list_responses(described):
        typed = [content for name, content in response.get("content", {}).items() if name == "application/json"]
        assert all("example" in media or "examples" in media for media in typed), status
        contents += typed
    assert len(contents) > 40
    for content in contents:
        if "example" in content:
            assert_valid(content["schema"], described, content["example"])
        for reference in content.get("examples", {}).values():
            name = reference["$ref"].rpartition("/")[2]
            assert_valid(content["schema"], described, described["components"]["examples"][name]["value"])


def walk_schemas(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every schema below a part of the document."""
    for key, below in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if key in ("example", "examples", "default"):
            continue
        if key in ("schema", "items", "additionalProperties"):
            yield below
        elif key in ("schemas", "properties"):
            yield from below.values()
        elif key in ("anyOf", "oneOf", "allOf"):
            yield from below
        yield from walk_schemas(below)


def test_the_document_uses_only_constructs_that_client_generators_support(service: Running) -> None:
    """Several of them fail on boolean schemas and tuples, or type a value without `type` as anything."""
    described = read_document(service)
    schemas = list(walk_schemas(described))
    assert len(schemas) > 200
    for schema in schemas:
        if schema is False:
            continue
        assert isinstance(schema, dict)
        assert {"type", "$ref", "anyOf"} & set(schema), schema
        assert not {"prefixItems", "const", "default"} & set(schema), schema
        assert schema.get("type") != "array" or isinstance(schema["items"], dict), schema
    for status, response in list_responses(described):
        assert status == "304" or response["content"]
        assert all(content["schema"] for content in response.get("content", {}).values())
    for methods in described["paths"].values():
        for operation in methods.values():
            assert operation["operationId"]
            assert operation["summary"]
            assert set(operation["tags"]) <= {tag["name"] for tag in described["tags"]}


def test_operation_ids_are_stable(service: Running) -> None:
    """Generated clients name their functions after them."""
    paths = read_document(service)["paths"]
    assert {path: [operation["operationId"] for operation in methods.values()] for path, methods in paths.items()} == {
        "/convert": ["convert"],
        "/convert-many": ["convert_many"],
        "/combine": ["combine"],
        "/convert-batch": ["convert_batch"],
        "/explain": ["explain"],
        "/inspect": ["inspect"],
        "/check": ["check"],
        "/quote": ["quote"],
        "/render": ["render"],
        "/preview": ["preview"],
        "/printers": ["send_file", "list_printers"],
        "/jobs": ["submit_job", "list_jobs"],
        "/jobs/{job_id}": ["show_job", "cancel_job"],
        "/jobs/{job_id}/events": ["follow_job"],
        "/jobs/{job_id}/result": ["download_result"],
        "/plan": ["plan"],
        "/supported": ["supported"],
        "/health/live": ["health_live"],
        "/health/ready": ["health_ready"],
        "/metrics": ["metrics"],
        "/schema": ["schema_page"],
        "/schema/openapi.json": ["schema_document"],
    }


def test_documented_headers_are_sent(service: Running) -> None:
    described = read_document(service)
    sent_headers = {
        "/convert": service.convert(),
        "/convert-many": service.many(("a.toy", b"toy")),
        "/convert-batch": service.batch(zip_files({"a.toy": b"toy"})),
        "/inspect": service.post("/inspect", {"file": ("a.toy", b"toy")}),
        "/plan": service.get("/plan"),
        "/supported": service.get("/supported"),
        "/health/live": service.get("/health/live"),
        "/schema/openapi.json": service.get("/schema/openapi.json"),
    }
    errors = {
        "/convert": service.convert(target="nothing"),
        "/plan": service.get("/plan", headers={"X-Api-Key": "wrong"}),
    }
    for path, response in [*sent_headers.items(), *errors.items()]:
        (operation,) = described["paths"][path].values()
        headers = operation["responses"][str(response.status_code)]["headers"]
        # a request with a wrong key does not count against a rate limit
        uncounted = {name for name in headers if name.startswith("RateLimit-") and response.status_code == 401}
        # the cache is off
        for name in headers.keys() - uncounted - {"X-Meshhub-Cache"}:
            declared = described["components"]["headers"][headers[name]["$ref"].rpartition("/")[2]]
            assert response.headers[name].isdecimal() or declared["schema"]["type"] == "string"


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_the_page_works_without_a_network(service: Running) -> None:
    answer = service.get("/schema", headers={"Accept": "text/html,*/*"})
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    page = Page()
    page.feed(answer.text)
    loaded = [
        attributes.get("src") or attributes.get("href") for tag, attributes in page.tags if tag in ("script", "link")
    ]
    assert len(loaded) == 5
    for address in loaded:
        assert address == "data:," or service.get(f"/{address}").status_code == 200
    assert not [tag for tag, attributes in page.tags if tag in ("img", "iframe", "style") or "style" in attributes]
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert "//" not in answer.text
    assert service.get("/schema", headers={"Accept": "application/json"}).json() == read_document(service)
    assert service.get("/schema").json() == read_document(service)


def test_every_endpoint_and_limit_is_documented() -> None:
    endpoints = (DOCS / "http.md").read_text(encoding="utf-8")
    settings = (DOCS / "settings.md").read_text(encoding="utf-8")
    for path in ("/convert", "/convert-many", "/convert-batch", "/inspect", "/plan", "/supported", "/health/ready"):
        assert re.search(rf"^## (GET|POST) {path}$", endpoints, re.M)
    for limit in Limits.__struct_fields__:
        assert f"| `{limit}` |" in settings


def test_settings_from_the_environment() -> None:
    settings = Settings.from_environment(
        {
            "MESHHUB_WORKERS": "3",
            "MESHHUB_QUEUE": " 7 ",
            "MESHHUB_DRAIN_SECONDS": "0.5",
            "MESHHUB_TRUSTED_PROXIES": "10.0.0.0/8, ::1",
            "MESHHUB_PLAN_FREE_MAX_BATCH_FILES": "9",
            "MESHHUB_PLAN_FREE_CONVERSION_TIMEOUT_SECONDS": "1.5",
            "MESHHUB_PLAN_BIG_SHOP_REQUESTS_PER_MINUTE": "none",
            "MESHHUB_DATABASE_URL": "",
            "MESHHUB_SOMETHING_ELSE": "x",
            "HOME": "/",
        }
    )
    assert (settings.workers, settings.queue, settings.drain_seconds, settings.database_url) == (3, 7, 0.5, None)
    assert settings.trusted_proxies == ("10.0.0.0/8", "::1")
    assert settings.plan_limits == {
        "free": {"max_batch_files": 9, "conversion_timeout_seconds": 1.5},
        "big-shop": {"requests_per_minute": None},
    }
    assert (settings.worker_count, settings.batch_worker_count) == (3, 1)
    assert Settings.from_environment({}) == Settings()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("WORKERS", "many", "workers"),
        ("WORKERS", "0", "workers"),
        ("QUEUE", "-1", "queue"),
        ("TRUSTED_PROXIES", "10.0.0.0/99", "10.0.0.0/99"),
        ("PLAN_FREE_MAX_FILES", "1", "MAX_FILES"),
        ("PLAN_FREE_MAX_BATCH_FILES", "lots", "MAX_BATCH_FILES"),
        ("PLAN_FREE_MAX_BATCH_FILES", "nan", "MAX_BATCH_FILES"),
        ("PLAN_FREE_MAX_BATCH_FILES", "0", "MAX_BATCH_FILES"),
    ],
)
def test_invalid_settings_are_rejected(name: str, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Settings.from_environment({f"MESHHUB_{name}": text})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (Settings(free_plan="gratis"), "gratis"),
        (Settings(plan_limits={"gratis": {"max_batch_files": 3}}), "gratis"),
        (Settings(plan_limits={"free": {"max_batch_files": 2.5}}), "max_batch_files"),
        (Settings(rate_limit_url="pigeon://"), "rate_limit_url"),
        (Settings(database_url="pigeon"), "database URL"),
    ],
)
def test_an_app_with_invalid_settings_is_rejected(settings: Settings, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        create_app(settings, Registry(entry_points=False))
    with pytest.raises(ValueError, match="engine"):
        create_app(Settings(), Registry(entry_points=False), engine=InProcess())


def test_a_limit_can_be_lifted(serve: Any) -> None:
    running = serve(plan_limits={"free": dict.fromkeys(Limits.__struct_fields__)})
    answer = running.get("/plan")
    assert set(answer.json()["limits"].values()) == {None}
    assert answer.json()["usage"] == {"requests_remaining": None, "resets_in_seconds": None}
    assert "ratelimit-limit" not in answer.headers
    assert running.many(*[("a.toy", b"toy")] * 5).status_code == 200
    check_error(running.convert(target="gilded"), 403, "premium_format_required")


@pytest.mark.parametrize("module", ["litestar", "sqlalchemy"])
def test_a_missing_extra_is_reported_with_its_install_command(module: str) -> None:
    code = (
        "import importlib.util as u, sys\n"
        "real = u.find_spec\n"
        f"u.find_spec = lambda name, *a: None if name == {module!r} else real(name, *a)\n"
        "import meshhub\n"
        "try:\n    import meshhub.http\nexcept ImportError as error:\n    print(error)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    assert 'pip install "' in result.stdout
    assert module in result.stdout


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.stl", "a.stl"),
        ("", "model"),
        ("..", "model"),
        ("/", "model"),
        ("a/../b.stl", "b.stl"),
        ("a\0b\r\n.stl", "ab.stl"),
        ("x\u202elts.exe", "xlts.exe"),
        ("COM1.stl", "_COM1.stl"),
        (" . a . ", ". a"),
        ("a:b*.stl", "a_b_.stl"),
        ("parts/.stl", "model.stl"),
        ("\u200b.stl", "model.stl"),
        ("\ufeff", "model"),
        ("\U0001f469\u200d\U0001f680.stl", "\U0001f469\u200d\U0001f680.stl"),
        (".a.stl", ".a.stl"),
    ],
)
def test_file_names_are_sanitized(name: str, expected: str) -> None:
    assert label(name) == expected
    content_disposition(expected).encode("ascii")


def test_folder_names_are_sanitized() -> None:
    assert folder_label("a/../b/c:d/x.stl") == "a/b/c_d"
    assert folder_label("x.stl") == ""


def test_report_is_a_field_only_where_it_has_an_effect(service: Running) -> None:
    paths = service.get("/schema/openapi.json").json()["paths"]
    with_report = {
        path
        for path, item in paths.items()
        if "post" in item
        and "report" in item["post"]["requestBody"]["content"]["multipart/form-data"]["schema"]["properties"]
    }
    assert with_report == {"/convert-many", "/convert-batch", "/check", "/jobs"}
