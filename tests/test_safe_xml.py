"""XML of strangers: trees, and documents that attack the parser."""

from __future__ import annotations

import tracemalloc
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meshhub import MeshhubError, ModelTooComplex, UnreadableFile
from meshhub.toolkit.safe_xml import MAX_DEPTH_COUNT, OFFSET, read_xml_tree

pytestmark = pytest.mark.once

DOCUMENT = """<?xml version="1.0"{}?>
<amf xmlns="http://example.com/a" xmlns:b="http://example.com/b" unit="inch">
  <object b:id="1">Größe &lt; 4 &#181;m</object><empty/>
</amf>"""


@pytest.mark.parametrize(
    ("encoding", "declaration"),
    [
        ("utf-8", ""),
        ("utf-8-sig", ' encoding="UTF-8"'),
        ("utf-16", ' encoding="UTF-16"'),
        ("utf-16-le", ""),
        ("utf-16-be", ""),
        ("latin-1", ' encoding="ISO-8859-1"'),
    ],
)
def test_a_tree_equals_that_of_the_standard_library(encoding: str, declaration: str) -> None:
    root = read_xml_tree(DOCUMENT.format(declaration).encode(encoding), "a.xml")
    expected = ElementTree.fromstring(DOCUMENT.format(""))
    assert ElementTree.tostring(root) == ElementTree.tostring(expected)
    assert root.tag == "{http://example.com/a}amf"
    assert root[0].attrib == {"{http://example.com/b}id": "1"}


def laughs() -> str:
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    return f'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY l0 "ha">{entities}]><a>&l9;</a>'


HOSTILE = {
    "billion laughs": (laughs(), "declares a document type"),
    "quadratic blow-up": (f'<!DOCTYPE a [<!ENTITY x "{"y" * 100_000}">]><a>{"&x;" * 10_000}</a>', "document type"),
    "local file": ('<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>', "document type"),
    "network": ('<!DOCTYPE a SYSTEM "http://127.0.0.1:1/a.dtd"><a/>', "document type"),
    "parameter entity": ('<!DOCTYPE a [<!ENTITY % x SYSTEM "file:///etc/passwd">%x;]><a/>', "document type"),
    "bare doctype": ("<!DOCTYPE a><a/>", "document type"),
    "undefined entity": ("<a>&x;</a>", "not well-formed"),
    "deep": ("<a>" * 100_000 + "</a>" * 100_000, f"more than {MAX_DEPTH_COUNT} deep"),
    "cut off": ("<a><b>", "not well-formed"),
    "empty": ("", "not well-formed"),
    "two roots": ("<a/><a/>", "not well-formed"),
    "unknown encoding": ('<?xml version="1.0" encoding="x-odd"?><a/>', "UTF-8"),
    "null": ("<a>\0</a>", "not well-formed"),
}


@pytest.mark.parametrize(("document", "message"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_documents_are_rejected_in_little_memory(document: str, message: str) -> None:
    data = document.encode()
    tracemalloc.start()
    with pytest.raises(UnreadableFile, match=message) as raised:
        read_xml_tree(data, "model.xml")
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "model.xml" in raised.value.message
    assert len(raised.value.message) < 160
    assert peak_bytes < 10_000_000


def test_too_many_elements_are_rejected() -> None:
    assert len(read_xml_tree(b"<a>" + b"<b/>" * 99 + b"</a>", "a", max_elements=100)) == 99
    with pytest.raises(ModelTooComplex, match="a has more than 100 elements"):
        read_xml_tree(b"<a>" + b"<b/>" * 100 + b"</a>", "a", max_elements=100)


@given(st.binary(max_size=200) | st.text(alphabet="<>/a&;![]='\"? ", max_size=60).map(str.encode))
def test_any_bytes_give_a_tree_or_a_coded_error(data: bytes) -> None:
    try:
        root = read_xml_tree(data, "a.xml")
    except MeshhubError:
        return
    assert isinstance(root.tag, str)


def test_trees_have_offsets_and_local_names_on_request() -> None:
    data = b'<a xmlns="urn:a" xmlns:x="urn:x"><x:b x:c="1"/></a>'
    root = read_xml_tree(data, "the file", namespaces=False, offsets=True)
    assert root.tag == "a"
    (element,) = root
    assert (element.tag, element.get("c")) == ("b", "1")
    assert data[int(element.attrib[OFFSET]) :].startswith(b"<x:b")
    assert read_xml_tree(data, "the file")[0].attrib == {"{urn:x}c": "1"}


def test_the_depth_can_be_raised() -> None:
    data = b"<a>" * 200 + b"</a>" * 200
    with pytest.raises(UnreadableFile, match="more than 64 deep"):
        read_xml_tree(data, "the file")
    assert sum(1 for _ in read_xml_tree(data, "the file", max_depth=200).iter()) == 200
    with pytest.raises(UnreadableFile, match="more than 199 deep"):
        read_xml_tree(data, "the file", max_depth=199)
