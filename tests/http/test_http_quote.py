"""POST /quote."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from http_serving import Running, check_error
from meshhub import Mesh, Part, Registry, Scene
from meshhub.errors import InvalidSettings
from meshhub.http.server.app import create_app
from meshhub.service.settings import Settings
from models import brick

RATES = """\
currency = "EUR"
machine_hour = 3.5
setup = 5
tax_percent = 19

steps = [{ name = "pack", minutes_per_order = 5, wage_hour = 24 }]

[materials.pla]
density_g_cm3 = 1.24
price_per_kg = 30

[materials.pa12]
density_g_cm3 = 1.01
price_per_cm3 = 0.4
options = { print_process = "sls" }
"""


@pytest.fixture
def stl() -> bytes:
    """A box of 10 x 20 x 30 mm."""
    with Registry(entry_points=False) as registry:
        return registry.convert_bytes(Scene((brick(),), (Part(0),)), "stl")


@pytest.fixture
def rates(tmp_path: Path) -> Path:
    """The rate card of an operator."""
    (tmp_path / "rates.toml").write_text(RATES)
    return tmp_path / "rates.toml"


def test_a_quote_has_every_summand(serve: Callable[..., Running], rates: Path, stl: bytes) -> None:
    running = serve(rates_file=str(rates))
    answer = running.post("/quote", {"file": ("part.stl", stl)}, {"quantity": "10", "print_infill_percent": "30"})
    assert answer.status_code == 200, answer.text
    price = answer.json()["price"]
    names = (
        "material",
        "machine_time",
        "setup",
        "energy",
        "packaging",
        "quantity_discount",
        "margin",
        "minimum_surcharge",
        "tax",
    )
    assert sum(Decimal(price[name]) for name in names) + 2 == Decimal(price["total"])
    assert price["wages"] == [{"step": "pack", "amount": "2.00"}]
    assert price["quantity"] == 10
    assert answer.json()["estimate"]["method"] == "model"
    sls = running.post("/quote", {"file": ("part.stl", stl)}, {"material": "pa12"}).json()
    assert sls["estimate"]["process"] == "sls"
    assert [note["code"] for note in sls["notes"]] == ["no_machine_time"]
    unknown = running.post("/quote", {"file": ("part.stl", stl)}, {"material": "wood"})
    assert "known are pla, pa12" in check_error(unknown, 400, "invalid_option")["error"]


def test_a_service_without_a_rate_card_estimates(isolated: Running, stl: bytes) -> None:
    answer = isolated.post("/quote", {"file": ("part.stl", stl)}, {"print_material": "petg"})
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["price"] is None
    assert [note["code"] for note in body["notes"]] == ["no_rates"]
    assert body["estimate"]["weight_g"] > 0
    assert body["estimate"]["density_g_cm3"] == 1.27


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"slicer": "true"}, 403, "premium_format_required"),
        ({"material": "pla"}, 400, "invalid_option"),
        ({"quantity": "0"}, 400, "invalid_option"),
        ({"rates": "x"}, 400, "invalid_option"),
        ({"print_infill_percent": "inf"}, 400, "invalid_option"),
    ],
)
def test_requests_that_are_rejected(
    service: Running, stl: bytes, fields: dict[str, str], status: int, code: str
) -> None:
    check_error(service.post("/quote", {"file": ("part.stl", stl)}, fields), status, code)


def test_a_surface_without_a_volume_has_no_quote(service: Running) -> None:
    mesh = brick()
    sheet = Scene((Mesh(mesh.vertices, mesh.faces[:2]),), (Part(0),))
    content = service.registry.convert_bytes(sheet, "stl")
    body = check_error(service.post("/quote", {"file": ("part.stl", content)}, {}), 422, "conversion_failed")
    assert "repair" in body["error"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("setup = -1\n" + RATES.replace("setup = 5\n", ""), "rates_file: .*rates.toml:1.*setup"),
        (RATES.replace("print_process", "print_prozess"), "rates_file: .*print_prozess"),
    ],
)
def test_a_service_with_an_invalid_rate_card_does_not_start(rates: Path, text: str, message: str) -> None:
    rates.write_text(text)
    with pytest.raises(InvalidSettings, match=message):
        create_app(Settings(rates_file=str(rates)))
