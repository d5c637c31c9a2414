"""Rate cards, prices by them, and the command `meshhub quote`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from meshhub import Estimate, InvalidOption, Mesh, Part, Price, RateCard, Registry, Scene
from meshhub.cli import root
from meshhub.errors import InvalidSettings
from meshhub.pipeline.rate_files import parse_rates, read_rates

pytestmark = pytest.mark.once

RATES = """\
currency = "EUR"
machine_hour = 3.50
setup = 5
minimum = 15.00
margin_percent = 10
tax_percent = 19

[materials.pla]
density_g_cm3 = 1.24
price_per_kg = 30

[materials.PA12]
density_g_cm3 = 1.01
price_per_cm3 = 0.4
machine_hour = 0
options = { print_process = "sls" }

[[quantity_breaks]]
pieces = 10
discount_percent = 10

[[quantity_breaks]]
pieces = 100
discount_percent = 25
"""

ESTIMATE = Estimate(
    method="model",
    process="fdm",
    material="pla",
    density_g_cm3=1.24,
    size_mm=(20, 20, 20),
    volume_mm3=8000,
    area_mm2=2400,
    material_mm3=4500,
    support_mm3=4000,
    support_material_mm3=500,
    weight_g=6.2,
    support_weight_g=0.62,
    seconds=3600,
    seconds_error=0.25,
    parts=(),
)
CARD = parse_rates(RATES)


def sum_of(price: Price) -> Decimal:
    return (
        price.material
        + price.machine_time
        + price.energy
        + price.failures
        + price.setup
        + sum((wage.amount for wage in price.wages), Decimal(0))
        + price.packaging
        + price.quantity_discount
        + price.margin
        + price.minimum_surcharge
        + price.rounding
        + price.tax
    )


def test_every_summand_of_a_price() -> None:
    _, price = CARD.price(ESTIMATE, None, 10)
    # 5 cm³ of 1.24 g/cm³ are 6.2 g, 0.186 EUR each
    assert (price.material, price.machine_time, price.setup) == (Decimal("1.86"), Decimal("35.00"), Decimal("5.00"))
    assert price.quantity_discount == Decimal("-3.69")
    assert price.margin == Decimal("3.82")
    assert price.minimum_surcharge == 0
    assert price.net == Decimal("41.99")
    assert (price.tax, price.total, price.per_piece) == (Decimal("7.98"), Decimal("49.97"), Decimal("5.00"))


def test_the_minimum_and_materials_with_their_own_prices() -> None:
    estimate, price = CARD.price(ESTIMATE, "pa12", 1)
    assert (price.material, price.machine_time) == (Decimal("2.00"), 0)
    assert price.net == 15
    assert price.minimum_surcharge == Decimal("15.00") - Decimal("7.70")
    assert (estimate.material, estimate.weight_g) == ("pa12", pytest.approx(6.2 / 1.24 * 1.01))


WORKSHOP = """
power_watt = 120
price_per_kwh = 0.40
failure_percent = 5
wage_hour = 24
packaging_order = 3
packaging_piece = 0.25
round_to = 0.50

[[steps]]
name = "prepare"
minutes_per_order = 15

[[steps]]
name = "remove support"
minutes_per_piece = 2
wage_hour = 30
"""


def test_energy_failures_wages_packaging_and_rounding_are_summands() -> None:
    first, tables = RATES.split("[materials.pla]", 1)
    workshop, steps = WORKSHOP.split("[[steps]]", 1)
    card = parse_rates(f"{first}{workshop}[materials.pla]{tables}[[steps]]{steps}")
    _, price = card.price(ESTIMATE, None, 10)
    # ten hours of 120 W are 1.2 kWh
    assert (price.material, price.machine_time, price.energy) == (Decimal("1.86"), Decimal("35.00"), Decimal("0.48"))
    # of 100 pieces 95 are good, so each of them pays 5/95 more
    assert price.failures == Decimal("1.97")
    assert [(wage.step, wage.amount) for wage in price.wages] == [("prepare", 6), ("remove support", 10)]
    assert price.packaging == Decimal("5.50")
    assert price.quantity_discount == Decimal("-3.69")
    # 10 % of 62.12
    assert price.margin == Decimal("6.21")
    assert price.rounding == Decimal("0.17")
    assert price.net == Decimal("68.50")
    assert price.total == sum_of(price)


def test_rounding_raises_the_minimum_to_a_round_amount_of_coins() -> None:
    card = structs.replace(CARD, minimum=Decimal("15.03"), round_to=Decimal("0.25"), coin=Decimal("0.05"))
    _, price = card.price(structs.replace(ESTIMATE, material_mm3=1, support_material_mm3=0, seconds=0), None, 1)
    assert (price.minimum_surcharge, price.rounding, price.net) == (Decimal("9.55"), Decimal("0.20"), Decimal("15.25"))


amounts = st.decimals(0, 1000, places=4)


@given(
    rates=st.fixed_dictionaries(
        {
            "machine_hour": amounts,
            "setup": amounts,
            "minimum": amounts,
            "margin_percent": st.decimals(0, 300, places=2),
            "tax_percent": st.decimals(0, 40, places=2),
            "coin": st.sampled_from([Decimal("0.01"), Decimal("0.05"), Decimal(1)]),
        }
    ),
    kg=amounts,
    seconds=st.floats(0, 1e6),
    volume=st.floats(1, 1e7),
    quantity=st.integers(1, 1_000_000),
)
def test_totals_are_the_sum_of_their_summands_and_pieces_get_no_dearer(
    rates: dict[str, Decimal], kg: Decimal, seconds: float, volume: float, quantity: int
) -> None:
    material = structs.replace(CARD.materials["pla"], price_per_kg=kg)
    breaks = CARD.quantity_breaks
    card = RateCard(currency="CHF", materials={"pla": material}, quantity_breaks=breaks, **rates)
    coin = rates["coin"]
    estimate = structs.replace(ESTIMATE, seconds=seconds, material_mm3=volume)
    _, price = card.price(estimate, None, quantity)
    assert price.total == sum_of(price)
    assert price.net + price.tax == price.total
    assert price.total % coin == 0
    assert price.net >= rates["minimum"]
    _, more = card.price(estimate, None, quantity + 1)
    # seven summands, each rounded to a coin
    assert more.total / (quantity + 1) <= price.total / quantity + 7 * coin
    assert more.total >= price.total - 7 * coin or any(item.pieces == quantity + 1 for item in breaks)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("setup = 5", "setup = -5", r"rates.toml:3': setup must be a number from 0 .*, got '-5'"),
        ("setup = 5", "setup = inf", r"rates.toml:3': setup must be a number from 0"),
        ("setup = 5", "setup = nan", r"rates.toml:3': setup"),
        ("setup = 5", "setup = 1e30", r"rates.toml:3': setup"),
        ("setup = 5", "setup = true", r"rates.toml:3': setup"),
        ("setup = 5", 'setup = "5"', r"rates.toml:3': setup"),
        ("setup = 5", "failure_percent = 95", r"rates.toml:3': failure_percent must be at most 90"),
        ("setup = 5", "steps = 5", r"rates.toml:3': steps must be tables \[\[steps\]\]"),
        ("setup = 5", "steps = [{ minutes_per_order = 5 }]", r"steps.0.name is missing"),
        ("setup = 5", 'steps = [{ name = "" }]', r"steps.0.name must be a text"),
        ("setup = 5", 'steps = [{ name = "pack" }]', r"steps.0 needs minutes_per_order or minutes_per_piece"),
        ("setup = 5", 'steps = [{ name = "pack", minutes_per_piece = -1 }]', r"steps.0.minutes_per_piece must be"),
        ("setup = 5", "coin = 0", r"rates.toml:3': coin must be a number of at least 0.0001"),
        ("setup = 5", "set_up = 5", r"rates.toml:3': set_up is unknown; known are currency, .*setup"),
        ('currency = "EUR"', "", "currency is missing"),
        ('currency = "EUR"', "currency = 978", "rates.toml:1': currency must be a text"),
        ("price_per_kg = 30", "price_per_kg = -1", r"rates.toml:10': materials.pla.price_per_kg must be"),
        ("price_per_kg = 30", "", r"rates.toml:8': materials.pla needs price_per_kg or price_per_cm3"),
        ("density_g_cm3 = 1.24", "", r"rates.toml:8': materials.pla.density_g_cm3 is missing"),
        ("density_g_cm3 = 1.24", "density_g_cm3 = 0", r"rates.toml:9': materials.pla.density_g_cm3 must be grams"),
        ("discount_percent = 25", "discount_percent = 100", r"rates.toml:24': quantity_breaks.1.discount_percent"),
        ("discount_percent = 25", "discount_percent = 5", r"rates.toml:22': quantity_breaks.1 needs more pieces"),
        ("pieces = 100", "pieces = 1.5", r"rates.toml:23': quantity_breaks.1.pieces must be a whole number"),
        ("[materials.PA12]", "[materials.PLA]", r"rates.toml:12': materials.PLA is there twice"),
        ("[materials.pla]", "[materials.pla", "not TOML"),
        ("setup = 5", "materials = 5", "not TOML"),
        ('options = { print_process = "sls" }', "options = 5", "materials.PA12.options must be a table"),
    ],
)
def test_invalid_rate_cards_name_the_key_and_the_line(old: str, new: str, message: str) -> None:
    assert old in RATES
    with pytest.raises(InvalidSettings, match=message):
        parse_rates(RATES.replace(old, new, 1))


@pytest.mark.parametrize("text", ['currency = "EUR"', 'currency = "EUR"\nmaterials = []', "[materials]"])
def test_a_card_without_materials_is_rejected(text: str) -> None:
    with pytest.raises(InvalidSettings):
        parse_rates(text)


def test_the_largest_numbers_have_a_price() -> None:
    rates = RATES.replace("setup = 5", "setup = 1000000000\ncoin = 0.0001").replace("= 30", "= 1e9")
    estimate = structs.replace(ESTIMATE, material_mm3=1e12, seconds=1e9)
    _, price = parse_rates(rates).price(estimate, None, 1_000_000)
    assert price.total == sum_of(price) > Decimal("1e20")


def test_files_that_are_no_rate_cards(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="cannot be read"):
        read_rates(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidSettings, match="UTF-8"):
        read_rates(tmp_path / "binary.toml")
    (tmp_path / "long.toml").write_text("#" * (1 << 20) + "\n")
    with pytest.raises(InvalidSettings, match="longer"):
        read_rates(tmp_path / "long.toml")


@pytest.fixture
def cube(tmp_path: Path) -> Iterator[Path]:
    """A cube of 20 mm."""
    corners = np.array([[x, y, z] for x in (0.0, 20.0) for y in (0.0, 20.0) for z in (0.0, 20.0)])
    faces = [[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1], [2, 3, 7], [2, 7, 6], [0, 2, 6],
             [0, 6, 4], [1, 5, 7], [1, 7, 3]]  # fmt: skip
    with Registry(entry_points=False) as registry:
        scene = Scene(meshes=(Mesh(corners, np.array(faces, np.int32)),), parts=(Part(0),))
        registry.write(scene, tmp_path / "cube.stl")
    (tmp_path / "rates.toml").write_text(RATES)
    yield tmp_path / "cube.stl"


def test_options_of_a_material_apply_unless_the_request_has_its_own(cube: Path) -> None:
    rates = cube.parent / "rates.toml"
    with Registry(entry_points=False) as registry:
        quote = registry.quote(cube, rates=rates, material="PA12", quantity=3)
        assert (quote.estimate.process, quote.estimate.material) == ("sls", "pa12")
        assert quote.price is not None
        assert quote.price.material == Decimal("9.60")
        assert [note.code for note in quote.notes] == ["no_machine_time"]
        assert registry.quote(cube, rates=CARD, material="pa12", print_layer_mm=0.3).estimate.process == "sls"
        # without a name, it is the first material that agrees with the request
        assert registry.quote(cube, rates=CARD, print_process="sls").estimate.material == "pa12"
        assert registry.quote(cube, rates=CARD, print_material="pla").estimate.material == "pla"
        with pytest.raises(InvalidOption, match="not the material 'pa12' is for that"):
            registry.quote(cube, rates=CARD, material="pa12", print_process="resin")
        with pytest.raises(InvalidOption, match=r"'abs': no material of the rate card is for that; known .* pla, pa12"):
            registry.quote(cube, rates=CARD, print_material="abs")
        own = parse_rates(RATES.replace('print_process = "sls"', 'print_process = "sls", print_volume_mm = "50x50x50"'))
        named = registry.quote(cube, rates=own, material="pa12", print_printer="prusa-xl")
        assert named.estimate.process == "sls"
        bad = parse_rates(RATES.replace('"sls"', '"nope"'))
        with pytest.raises(InvalidSettings, match=r"card 'rates.toml:\d+': materials\.pa12\.options\.print_process: "):
            registry.quote(cube, rates=bad, material="pa12")
        with pytest.raises(InvalidOption, match="'wood', which the rate card does not have; known are pla, pa12"):
            registry.quote(cube, rates=rates, material="wood")
        broken = parse_rates(RATES.replace("print_process", "print_prozess"))
        with pytest.raises(InvalidOption, match=r"'rates.toml:\d+': materials\.pa12\.options\.print_prozess: unknown"):
            registry.quote(cube, rates=broken, material="pa12")
        small = parse_rates(RATES.replace('print_process = "sls"', 'print_process = "sls", print_volume_mm = "9x9"'))
        with pytest.raises(InvalidOption, match=r"'rates.toml:\d+': materials\.pa12\.options\.print_volume_mm: "):
            registry.quote(cube, rates=small, material="pa12")


def test_the_command_prints_the_summands(cube: Path) -> None:
    rates = str(cube.parent / "rates.toml")
    run = CliRunner().invoke(root, ["quote", str(cube), "--rates", rates, "--quantity", "12"])
    assert run.exit_code == 0, run.output
    for words in ("8 cm³", "20 × 20 × 20 mm", "g of pla", "± 13 %", "machine time", "12 pieces", "each"):
        assert words in run.output
    run = CliRunner().invoke(root, ["quote", str(cube)])
    assert run.exit_code == 0
    assert "no_rates" in run.output
    run = CliRunner().invoke(root, ["quote", str(cube), "--rates", rates, "--json", "--material", "pa12"])
    body = json.loads(run.stdout)
    assert body["price"]["total"] == "17.85"
    assert body["estimate"]["weight_g"] == pytest.approx(8.08)


def test_a_check_prints_the_estimate(cube: Path) -> None:
    run = CliRunner().invoke(root, ["check", str(cube), "--checks", "estimate"])
    assert run.exit_code == 0
    assert "g of pla; about" in run.output


def test_the_command_rejects_bad_input(cube: Path) -> None:
    (cube.parent / "bad.toml").write_text(RATES.replace("= 30", "= -30"))
    run = CliRunner().invoke(root, ["quote", str(cube), "--rates", str(cube.parent / "bad.toml")])
    assert isinstance(run.exception, InvalidSettings)
    assert "bad.toml:10" in str(run.exception)
    run = CliRunner().invoke(root, ["quote", str(cube), "--material", "pla"])
    assert run.exit_code == 2
    assert "--material" in run.stderr
    (cube.parent / "broken.stl").write_bytes(b"solid")
    run = CliRunner().invoke(root, ["quote", str(cube), str(cube.parent / "broken.stl"), "--json"])
    assert run.exit_code == 1
    assert ["error" in item for item in json.loads(run.stdout)] == [False, True]


def test_the_example_is_the_card_of_the_page() -> None:
    folder = Path(__file__).parent.parent
    text = (folder / "examples" / "rates.toml").read_text(encoding="utf-8")
    assert f"```toml\n{text}```" in (folder / "docs" / "how-to" / "quote.md").read_text(encoding="utf-8")
    assert list(parse_rates(text).materials) == ["pla", "petg", "resin", "pa12"]
