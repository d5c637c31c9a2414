"""The public Python API is the one that tests/public_api.txt lists."""

from __future__ import annotations

import difflib

import pytest

import public_api


@pytest.mark.once
def test_a_change_of_the_public_api_is_a_decision() -> None:
    listed = public_api.LIST.read_text(encoding="utf-8").splitlines()
    changes = list(difflib.unified_diff(listed, public_api.list_api().splitlines(), "listed", "code", n=0, lineterm=""))
    assert not changes, "write it down: python tests/support/public_api.py, and CHANGELOG.md\n" + "\n".join(changes)


def test_the_list_has_functions_classes_fields_and_methods() -> None:
    listed = public_api.LIST.read_text(encoding="utf-8").splitlines()
    assert "meshhub.Caller.plan: required" in listed
    assert any(line.startswith("meshhub.Registry.convert(self, source: Inputs, output: Output, *,") for line in listed)
    assert any(line.startswith("meshhub.toolkit.topology.") and "->" in line for line in listed)
    assert not any("._" in line.partition("(")[0].replace(".__init__", "") for line in listed)
