"""Malformed requests get a well-formed response, never a 500, and leave no temporary files."""

from __future__ import annotations

import itertools
import operator
from urllib.parse import quote

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bombs import TRIANGLE, zip_entries
from http_serving import Running, zip_files
from meshhub.http.errors import STATUS
from waiting import wait_until

pytestmark = pytest.mark.once

QUICK = settings(max_examples=50, suppress_health_check=list(HealthCheck))
PATHS = {"/convert": "file", "/inspect": "file", "/convert-many": "files", "/convert-batch": "archive"}
ZIP = zip_files({"a/é.stl": TRIANGLE, "b.toy": b"toy", "c.txt": b"?"})

KIND = "multipart/form-data; boundary=b"
KINDS = (
    *[KIND] * 40, "multipart/form-data", "multipart/form-data; boundary=", 'multipart/form-data; boundary="b"',
    "Multipart/Form-Data;BOUNDARY=b;charset=klingon", "multipart/form-data; boundary=b; boundary=c",
    "multipart/form-data; boundary=" + "b" * 201, "multipart/form-data; boundary*=utf-8''%62",
    "multipart/mixed; boundary=b", "multipart/form-data; boundary=b\xe9", "application/json", "",
    ";;;", 'multipart/form-data; boundary="b',
)  # fmt: skip
FIELDS = (
    *['name="MAIN"; filename="a.stl"'] * 6, *['name="target"'] * 4, 'name="MAIN"', "name=MAIN; filename=a.stl",
    'name="repair"', 'name="stl_ascii"', 'name="toy_size"', 'name="report"', 'name=""', "", 'name="MAIN', "name",
    'name="a" "b"',
    'name="MAIN"; filename=""', 'name="MAIN"; filename="..\\..\\x.stl"', 'name="MAIN"; filename="/etc/passwd"',
    'name="MAIN"; filename="C:\\a.stl"', 'name="MAIN"; filename="CON.stl"', 'name="MAIN"; filename="a\\"b.stl"',
    "name=\"MAIN\"; filename*=UTF-8''%e2%82%ac%00%2f..%2f.stl", "name=\"MAIN\"; filename*=klingon''%ff",
    'name="MAIN"; filename="' + "x" * 3000 + '.stl"', 'name="MAIN"; name="target"; filename="a.stl"',
    'name="\u00e9\u202e"',
    'name*=UTF-8\'\'MAIN; filename="a.stl"', 'filename="a.stl"', 'name="target"; filename="target"',
)  # fmt: skip
HEADERS = (
    "Content-Type: text/plain; charset=utf-16", "Content-Type: text/plain; charset=hex", "Content-Type: ;;;=",
    "Content-Type: text/plain; charset=", "Content-Type: multipart/mixed; boundary=c", "Content-Type: model/stl",
    "Content-Transfer-Encoding: base64", "Content-Transfer-Encoding: 8bit", "Content-Length: 3", "Content-Length: -1",
    "Content-Disposition: attachment", "X: " + "y" * 5000, "nonsense", ": x", " folded", "X\0: y", "X-\u00e9: y",
)  # fmt: skip
BODIES = (
    *[TRIANGLE] * 3, *[ZIP] * 3, *[b"stl"] * 4, b"toy", b"true", b"", b"--b", b"\r\n--bb\r\n", b"\r\n--b-", b"--b--",
    b"\xff\xfe\xfa", b"\0" * 500, b"x" * 20_000,
    b"--c\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nx\r\n--c--",
)  # fmt: skip


def assert_well_formed(answer: httpx.Response) -> httpx.Response:
    """Assert that a response has the headers and the JSON of every response; return it."""
    assert answer.status_code < 500, answer.text
    assert answer.headers["x-request-id"]
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == "application/json"
        body = answer.json()
        assert STATUS[body["error_code"]] == answer.status_code
        assert body["error"].isprintable()
        assert body["request_id"] == answer.headers["x-request-id"]
    return answer


def send(service: Running, path: str, body: bytes, kind: str = KIND, cuts: list[int] | None = None) -> httpx.Response:
    """Send a body at once, or cut into chunks; return the response."""
    edges = sorted({0, len(body), *(cut % (len(body) + 1) for cut in cuts or [])})
    chunks = [body[start:end] for start, end in itertools.pairwise(edges)]
    content = iter(chunks) if cuts else body
    return assert_well_formed(
        service.client.post(path, content=content, headers={"Content-Type": kind.encode("latin-1")})
    )


def build_part(name: str, content: bytes) -> bytes:
    """Return a part as HTTP libraries build it."""
    header = f'--b\r\nContent-Disposition: form-data; name="{name}"' + ('; filename="a.stl"' if name == "MAIN" else "")
    return header.encode() + b"\r\n\r\n" + content + b"\r\n"


@st.composite
def parts(draw: st.DrawFn) -> bytes:
    """Generate a part of a form, valid or malformed."""
    newline = draw(st.sampled_from(["\r\n"] * 9 + ["\n"]))
    lines = [f"Content-Disposition: form-data; {draw(st.sampled_from(FIELDS))}"] * draw(
        st.sampled_from([1] * 9 + [0, 2])
    )
    lines += draw(st.lists(st.sampled_from(HEADERS), max_size=2)) if draw(st.integers(0, 4)) == 0 else []
    head = newline.join(["--b", *lines, "", ""]).encode()
    return (
        head
        + (draw(st.sampled_from(BODIES)) if draw(st.booleans()) else draw(st.binary(max_size=30)))
        + newline.encode()
    )


@QUICK
@given(
    path=st.sampled_from(sorted(PATHS)),
    form=st.builds(
        operator.add,
        st.lists(
            st.sampled_from([build_part("MAIN", TRIANGLE), build_part("target", b"stl")]), max_size=2, unique=True
        ),
        st.lists(parts(), max_size=2),
    ),
    kind=st.sampled_from(KINDS),
    around=st.sampled_from(
        [(b"", b"--b--\r\n")] * 16 + [(b"before\r\n", b"--b--after"), (b"", b""), (b"", b"--b--" * 2)]
    ),
    short=st.sampled_from([0] * 16 + [1, 3, 7, 40]),
    cuts=st.lists(st.integers(0, 100_000), max_size=6),
)
def test_random_forms_get_a_well_formed_response(
    service: Running,
    path: str,
    form: list[bytes],
    kind: str,
    around: tuple[bytes, bytes],
    short: int,
    cuts: list[int],
) -> None:
    body = (around[0] + b"".join(form) + around[1]).replace(b"MAIN", PATHS[path].encode())
    send(service, path, body[: len(body) - short], kind, cuts)


def test_a_truncated_form_gets_a_well_formed_response(service: Running) -> None:
    head = b'--b\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n%s\r\n'
    body = head % (b"file", b'; filename="a.toy"', b"toy") + head % (b"target", b"", b"toy") + b"--b--\r\n"
    for length in range(len(body) - 2):
        assert send(service, "/convert", body[:length]).json()["error_code"] == "invalid_multipart"
    assert send(service, "/convert", body[:-2]).status_code == 200


def test_a_truncated_archive_gets_a_well_formed_response(service: Running) -> None:
    whole = zip_entries(("a.toy", b"toy"))
    for length in range(0, len(whole), 3):
        answer = assert_well_formed(service.batch(whole[:length]))
        assert answer.json()["error_code"] == ("unreadable_file" if length else "empty_model")
    assert service.batch(whole).status_code == 200


@QUICK
@given(
    method=st.sampled_from(["GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "PROPFIND"]),
    path=st.sampled_from([*PATHS, "/plan", "/supported", "/schema", "/health/live", "/nowhere", "/"])
    | st.text(st.characters(codec="utf-8"), max_size=30).map("/{}".format),
    query=st.text(st.characters(codec="utf-8"), max_size=20),
    headers=st.dictionaries(
        st.sampled_from(["X-Api-Key", "X-Request-ID", "X-Forwarded-For", "Accept", "If-None-Match", "Range", "Cookie",
                         "Content-Type", "Content-Encoding", "Origin", "Authorization"]),
        st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=30)
        | st.sampled_from(["gzip", "*/*", "text/html", "bytes=0-", "a" * 3000]),
        max_size=3,
    ),
)  # fmt: skip
def test_random_requests_get_a_well_formed_response(
    service: Running, method: str, path: str, query: str, headers: dict[str, str]
) -> None:
    url = f"{service.url}{quote(path)}?{quote(query)}"
    sent_headers = {name: text.strip().encode("latin-1") for name, text in headers.items()}
    answer = service.client.request(method, url, headers=sent_headers)
    if method == "HEAD":
        assert answer.content == b""
        assert answer.status_code < 500
    else:
        assert_well_formed(answer)


@pytest.fixture(scope="module", autouse=True)
def assert_no_files_remain(service: Running) -> object:
    """Assert after the tests that no folder of a request remains."""
    yield
    wait_until(lambda: not service.leftovers())
