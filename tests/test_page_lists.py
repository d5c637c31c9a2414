"""Names of plug-ins that the page lists by hand exist: a wrong one would only be without effect."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import get_args

import pytest

from meshhub import Registry
from meshhub.error_codes import ERROR_CODES
from meshhub.model.capabilities import Feature, Stage

pytestmark = pytest.mark.once

WEB = Path(__file__).parent.parent / "web" / "src"

REGISTRY = Registry(entry_points=False)
TEXTS = REGISTRY.texts("de")

OPERATIONS = REGISTRY.operations.keys()
FORMATS = REGISTRY.formats.keys()
EXTENSIONS = {name.removeprefix(".") for format_ in REGISTRY.formats.values() for name in format_.extensions}
OPTIONS = REGISTRY.options.keys() | REGISTRY.declarations.check_fields().keys()
STAGES = {stage.name.lower() for stage in Stage}


def read_constant(file: str, name: str) -> str:
    """Return the value of a constant of the page as its source has it."""
    (value,) = re.findall(rf"^(?:export )?const {name}\b[^=]*= (.*?);$", (WEB / file).read_text("utf-8"), re.M | re.S)
    return str(value)


def list_texts(source: str) -> list[str]:
    """Return the texts in quotes."""
    return re.findall(r'"([^"]*)"', source)


@pytest.mark.parametrize(
    ("file", "name", "known"),
    [
        ("ui/settings.tsx", "EVERYDAY", OPERATIONS),
        ("ui/canvas.tsx", "INNER_OPERATIONS", OPERATIONS),
        ("state/converting.ts", "DIVIDING_OPERATIONS", OPERATIONS),
        ("draft.ts", "SLOW_FORMATS", FORMATS),
        ("chain.ts", "PRINT_FORMATS", FORMATS),
        ("chain.ts", "APPEARANCE", get_args(Feature)),
        ("own-result.ts", "PLAIN_FORMATS", FORMATS),
        ("intake.ts", "WITH_FOLDER", EXTENSIONS),
        ("ui/result.tsx", "SLICER_EXTENSIONS", EXTENSIONS),
        ("verdict.ts", "INCOMPLETE_CODES", TEXTS.notes),
        ("requests.ts", "PASSING_CODES", ERROR_CODES),
        ("state/failures.ts", "VAGUE_CODES", ERROR_CODES),
        ("draft.ts", "TARGET_FACES", OPTIONS),
        ("draft.ts", "CELL", OPTIONS),
        ("pose.ts", "ROTATION", OPTIONS),
        ("pose.ts", "AUTOMATIC_TURNS", OPTIONS),
        ("ui/cuts.ts", "BED_CUTS", OPTIONS),
        ("ui/palette.tsx", "COUNT", OPTIONS),
        ("ui/targets.tsx", "PROJECT", OPTIONS),
        ("ui/verdict.tsx", "MAIN_OPTIONS", OPTIONS),
    ],
)
def test_each_name_of_a_list_is_declared(file: str, name: str, known: Collection[str]) -> None:
    listed = list_texts(read_constant(file, name))
    assert listed
    assert [text for text in listed if text not in known] == []


def test_the_groups_of_operations_have_each_stage_once() -> None:
    groups = re.findall(r'\["\w+", \[(.*?)\]\]', read_constant("ui/settings.tsx", "GROUPS"))
    assert sorted(text for stages in groups for text in list_texts(stages)) == sorted(STAGES)


def test_remedies_set_options_for_codes_that_exist() -> None:
    remedies = re.findall(r'(\w+): \["(\w+)", (.*?)\],', read_constant("settings.ts", "REMEDIES"))
    assert remedies
    for code, option, value in remedies:
        assert code in TEXTS.notes or code in ERROR_CODES
        assert REGISTRY.options[option].parse(value.strip('"')) is not None


def test_each_option_that_the_page_reads_is_declared() -> None:
    read = {
        (path.name, name)
        for path in sorted(WEB.rglob("*.ts*"))
        for name in re.findall(r'\b(?:options|properties)\["(\w+)"\]', path.read_text("utf-8"))
    }
    assert len(read) > 5
    assert [(file, name) for file, name in sorted(read) if name not in OPTIONS] == []
