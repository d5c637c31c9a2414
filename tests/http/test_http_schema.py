"""Schemathesis over the service's own description: never a 500, and every answer as it is described.

In the tests the requests are few and always the same. `MESHHUB_TEST_SCHEMA=500` (`tox -e schema`) makes so
many for each endpoint and each kind, at random.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from bombs import TRIANGLE
from http_serving import Running, serving, zip_of
from meshhub import Registry
from meshhub.http.description.openapi import document

pytestmark = pytest.mark.once

WANTED = int(os.environ.get("MESHHUB_TEST_SCHEMA", "0"))
QUICK = settings(
    max_examples=WANTED or 25,
    derandomize=not WANTED,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],
)
KINDS = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]
CHECKS = {
    # a picture under a field for models is as valid as any bytes, and rightly refused
    "positive_data_acceptance": {"enabled": False},
    "negative_data_rejection": {"expected-statuses": [400, 401, 403, 404, 405, 413, 415, 422]},
}

FILES = (TRIANGLE, TRIANGLE[:60], b"", b"toy", b"toy empty", b"toy fault", zip_of({"a.stl": TRIANGLE, "b.toy": b"toy"}))
TARGETS = ("stl", ".OBJ", "ply", "glb", "gltf", "3mf", "step", "toy", "nothing")


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Any]]:
    """A service that answers /metrics too, and what it says about itself."""
    with serving(tmp_path_factory.mktemp("schema"), {"workers": 2, "metrics": "everyone"}) as running:
        # without a test's own option that writes as many bytes as it is told
        told = json.loads(running.get("/schema/openapi.json").text.replace('"toy_weight"', '"toy_twins"'))
        config = schemathesis.Config.from_dict({"checks": CHECKS})
        yield running, schemathesis.openapi.from_dict(told, config=config)


def endpoints() -> list[tuple[str, str, Any]]:
    """The endpoints as the description lists them; what takes no body cannot be sent a wrong one."""
    paths = document(Registry(entry_points=False))["paths"]
    found = [(path, method) for path, methods in paths.items() for method in methods]
    return [(*one, kind) for one in found for kind in KINDS if one[1] == "post" or kind is KINDS[0]]


@pytest.mark.parametrize(("path", "method", "kind"), endpoints())
def test_what_is_sent_by_the_description_is_answered_by_it(
    described: tuple[Running, Any], path: str, method: str, kind: Any
) -> None:
    running, schema = described
    operation = schema[path][method.upper()]
    seen: list[int] = []

    @QUICK
    @given(
        case=operation.as_strategy(generation_mode=kind),
        file=st.none() | st.sampled_from(FILES),
        target=st.sampled_from(TARGETS),
    )
    def ask(case: Any, file: bytes | None, target: str) -> None:
        if file is not None and kind is KINDS[0] and isinstance(case.body, dict):
            # what it makes up is never a model: send some
            main = next(name for name in ("file", "files", "archive") if name in case.body)
            case.body[main] = [file, file] if main == "files" else file
            if "target" in case.body:
                case.body["target"] = target
        answer = case.call(base_url=running.url)
        seen.append(answer.status_code)
        case.validate_response(answer)
        if answer.status_code >= 400:
            assert answer.json()["error_code"]

    ask()
    assert seen
    assert all(status < 500 for status in seen)
