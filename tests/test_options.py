"""Options: fields from Structs, values from text."""

from __future__ import annotations

import pickle
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct

from meshhub import Registry
from meshhub.builtin_plugins.print import PrintOptions
from meshhub.errors import InvalidOption, MeshhubError
from meshhub.model.options import (
    OptionField,
    build_options,
    decode,
    flag_of,
    has_set_option,
    option_fields,
    parse_options,
    schema,
)
from meshhub.toolkit.cut_planes import parse_planes
from meshhub.toolkit.lengths import parse_lengths


class Sample(Struct, frozen=True, kw_only=True):
    sample_flag: Annotated[bool, Meta(title="Flag")] = False
    sample_count: Annotated[int, Meta(title="Count", ge=4, le=100)] | None = None
    sample_length_mm: Annotated[float, Meta(title="Length", description="How long.", gt=0, le=1000)] | None = None
    sample_kind: Annotated[Literal["round", "square"], Meta(title="Kind")] = "round"
    sample_text: Annotated[str, Meta(title="Text", max_length=20)] = ""


def field(name: str) -> OptionField:
    return next(field for field in option_fields(Sample) if field.name == name)


@pytest.mark.parametrize("text", ["true", "1", "yes", "on", "TRUE", " On "])
def test_words_for_true_are_parsed(text: str) -> None:
    assert field("sample_flag").parse(text) is True


@pytest.mark.parametrize("text", ["false", "0", "no", "off", "NO"])
def test_words_for_false_are_parsed(text: str) -> None:
    assert field("sample_flag").parse(text) is False


@pytest.mark.parametrize("name", [field.name for field in option_fields(Sample)])
@pytest.mark.parametrize("text", ["", "   "])
def test_empty_text_is_absent(name: str, text: str) -> None:
    assert field(name).parse(text) is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sample_flag", "maybe"), ("sample_flag", "2"),
        ("sample_count", "3"), ("sample_count", "101"), ("sample_count", "5.0"), ("sample_count", "1_0"),
        ("sample_count", "٥٠"), ("sample_count", "5e1"), ("sample_count", "9" * 5000),
        ("sample_length_mm", "0"), ("sample_length_mm", "-1"), ("sample_length_mm", "nan"),
        ("sample_length_mm", "inf"), ("sample_length_mm", "1e999"), ("sample_length_mm", "1,5"),
        ("sample_length_mm", "1_0"), ("sample_length_mm", "0x10"), ("sample_length_mm", "10 yd"),
        ("sample_kind", "oval"),
    ],
)  # fmt: skip
def test_an_invalid_value_is_rejected_with_the_name_of_its_option(name: str, text: str) -> None:
    with pytest.raises(InvalidOption, match=f"'{name}'") as caught:
        field(name).parse(text)
    assert len(caught.value.message) < 300


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sample_flag", 1), ("sample_count", True), ("sample_count", 5.0), ("sample_length_mm", True),
        ("sample_length_mm", float("nan")), ("sample_length_mm", 10**400), ("sample_kind", 3), ("sample_text", b"x"),
    ],
)  # fmt: skip
def test_values_of_a_wrong_type_are_rejected(name: str, value: object) -> None:
    with pytest.raises(InvalidOption, match=f"'{name}'"):
        field(name).parse(value)


@given(st.floats(min_value=1e-300, max_value=1000, exclude_min=True))
def test_numbers_survive_text(value: float) -> None:
    assert field("sample_length_mm").parse(repr(value)) == value


@given(st.text(max_size=20))
def test_any_text_is_parsed_or_rejected_with_the_name_of_its_option(text: str) -> None:
    for field in option_fields(Sample):
        try:
            field.parse(text)
        except InvalidOption as error:
            assert repr(field.name) in error.message


def test_decode_keeps_defaults_and_parses() -> None:
    assert decode(Sample, {"sample_count": "7", "sample_kind": "SQUARE"}) == Sample(
        sample_count=7, sample_kind="square"
    )


FIELDS = {field.name: field for field in option_fields(Sample)}


def test_false_and_empty_values_are_not_set() -> None:
    values = parse_options(FIELDS, {"sample_flag": "no", "sample_count": "", "sample_length_mm": "2"})
    assert values == {"sample_flag": False, "sample_count": None, "sample_length_mm": 2.0}
    assert has_set_option(Sample, values)
    assert not has_set_option(Sample, values | {"sample_length_mm": None})
    assert not has_set_option(Sample, {"another_option": 1})


def test_parsed_values_make_the_same_options_as_texts() -> None:
    texts = {"sample_flag": "yes", "sample_count": "7", "sample_length_mm": "", "sample_text": " a "}
    options = build_options(Sample, parse_options(FIELDS, texts))
    assert options == decode(Sample, texts) == Sample(sample_flag=True, sample_count=7, sample_text="a")


def test_a_text_that_is_too_long_is_rejected() -> None:
    assert field("sample_text").parse("a" * 20) == "a" * 20
    with pytest.raises(InvalidOption, match=r"sample_text.* at most 20 characters"):
        field("sample_text").parse("a" * 21)


def test_schema_is_flat_and_bounded() -> None:
    properties = schema(Sample)["properties"]
    assert properties["sample_text"]["maxLength"] == 20
    assert properties["sample_count"] == {"type": "integer", "title": "Count", "minimum": 4, "maximum": 100}
    assert properties["sample_length_mm"]["exclusiveMinimum"] == 0
    assert properties["sample_kind"]["enum"] == ["round", "square"]
    assert properties["sample_flag"]["default"] is False


def test_an_unknown_option_is_rejected_with_the_nearest_name() -> None:
    with pytest.raises(InvalidOption, match="'sample_cuont'; did you mean 'sample_count'"):
        parse_options(FIELDS, {"sample_flag": "no", "sample_cuont": "5"})


@pytest.mark.parametrize("count", [1, 5, 6])
def test_a_message_lists_few_unknown_options(count: int) -> None:
    with pytest.raises(InvalidOption, match="see GET /supported") as caught:
        parse_options(FIELDS, {f"{number}" * 9: "" for number in range(count)})
    assert caught.value.message.count("'") == 2 * min(count, 5)
    assert len(caught.value.message) < 160


class NoTitle(Struct):
    x: int = 0


class NoDefault(Struct):
    x: Annotated[int, Meta(title="X")]


class Nested(Struct):
    x: Annotated[list[int] | None, Meta(title="X")] = None


@pytest.mark.parametrize("struct", [NoTitle, NoDefault, Nested])
def test_option_types_that_forms_cannot_express_are_rejected(struct: type[Struct]) -> None:
    with pytest.raises(TypeError):
        option_fields(struct)


def test_an_error_names_its_options_as_each_interface_spells_them() -> None:
    with pytest.raises(InvalidOption) as caught:
        field("sample_count").parse("3")
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert error.message == str(error) == "option 'sample_count' must be at least 4 and at most 100, got '3'"
        assert error.spelled(flag_of) == "option '--sample-count' must be at least 4 and at most 100, got '3'"


@given(st.text())
def test_an_error_without_options_keeps_its_braces(text: str) -> None:
    error = MeshhubError(f"{{sample}} {text!r}")
    assert error.spelled(flag_of) == error.message
    assert error.message.startswith("{sample}")


@pytest.mark.parametrize(
    ("text", "millimeters"),
    [
        ("40", 40),
        ("4cm", 40),
        ("40 mm", 40),
        ("1.1in", 27.94),
        ('1"', 25.4),
        ("0.1 ft", 30.48),
        ("0.04M", 40),
        ("400µm", 0.4),
    ],
)
def test_lengths_have_units(text: str, millimeters: float) -> None:
    assert Registry(entry_points=False).options["target_height_mm"].parse(text) == millimeters


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [("rotate_x_deg", "45°", 45), ("rotate_x_deg", "45 deg", 45), ("scale_percent", "150 %", 150)],
)
def test_angles_and_percentages_have_units(name: str, text: str, value: float) -> None:
    assert Registry(entry_points=False).options[name].parse(text) == value


@pytest.mark.parametrize("text", ["1.24 g/cm3", "1.24g/cm^3", "1.24 g/cm³"])
def test_densities_have_units(text: str) -> None:
    (density,) = (field for field in option_fields(PrintOptions) if field.name == "print_density_g_cm3")
    assert density.parse(text) == 1.24


@pytest.mark.parametrize(
    ("text", "message"),
    [("40,5", "such as 40.5"), ("4 yd", "in mm, um, cm"), ("1,500", "in mm"), ("45°", "in mm"), ("-4cm", "100000 mm")],
)
def test_a_wrong_length_says_what_it_must_be(text: str, message: str) -> None:
    with pytest.raises(InvalidOption, match=message) as caught:
        Registry(entry_points=False).options["target_height_mm"].parse(text)
    assert len(caught.value.message) <= 160


@pytest.mark.parametrize("text", ["200x200x180mm", "20 x 20 x 18 cm", "200mmx200mmx180mm", "200x200x180"])
def test_boxes_have_units(text: str) -> None:
    assert parse_lengths("print_volume_mm", text, "220x220x250", 1) == (200, 200, 180)


@pytest.mark.parametrize("text", ["200x200", "1e3x2x3", "200,5x200x180", "200x200x180 yd", "mmx2x3"])
def test_a_wrong_box_is_rejected(text: str) -> None:
    with pytest.raises(InvalidOption, match="or 220x220x250mm"):
        parse_lengths("print_volume_mm", text, "220x220x250", 1)


def test_planes_have_units() -> None:
    assert [position.value for position in parse_planes("cut_plane", "z=4cm,x=10 mm,y=50%", 8)] == [40, 10, 50]
    with pytest.raises(InvalidOption):
        parse_planes("cut_plane", "z=4yd", 8)
