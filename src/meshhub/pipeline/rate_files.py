"""Read rate cards, which are TOML files; errors name the key and the line."""

from __future__ import annotations

import os
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

from meshhub.errors import InvalidSettings, quote
from meshhub.pipeline.rates import MIN_COIN, MaterialRate, QuantityBreak, RateCard, Step
from meshhub.toolkit.toml_lines import find_line

MAX_RATES_BYTES = 1 << 20
"""Maximum bytes of a rate card; one has a few thousand."""

MAX_AMOUNT = Decimal(1_000_000_000)
"""Maximum of a number in a rate card; more is certainly a typing error."""

MAX_DISCOUNT_PERCENT = Decimal(99)
"""Maximum discount; more would give pieces away."""

MAX_FAILURE_PERCENT = Decimal(90)
"""Maximum share of failing pieces; ten tries per piece."""

MAX_STEPS = 50
"""Maximum steps of an order."""

MAX_NAME_LENGTH = 60
"""Maximum characters of the name of a step."""

_AMOUNTS = (
    "machine_hour",
    "power_watt",
    "price_per_kwh",
    "failure_percent",
    "setup",
    "wage_hour",
    "packaging_order",
    "packaging_piece",
    "minimum",
    "margin_percent",
    "round_to",
    "tax_percent",
    "coin",
)
"""Numbers of a rate card."""


def read_rates(path: str | os.PathLike[str]) -> RateCard:
    """Read a rate card.

    Raises:
        InvalidSettings: The file cannot be read, is not TOML, or a key is unknown, missing or invalid.
    """
    file = Path(path)
    try:
        with file.open("rb") as stream:
            data = stream.read(MAX_RATES_BYTES + 1)
        if len(data) > MAX_RATES_BYTES:
            raise InvalidSettings(f"rate card {quote(file.name)} is longer than {MAX_RATES_BYTES} bytes")
        return parse_rates(data.decode("utf-8"), file.name)
    except OSError as error:
        raise InvalidSettings(f"rate card {quote(file.name)} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidSettings(f"rate card {quote(file.name)} is not UTF-8 text") from None


def parse_rates(text: str, name: str = "rates.toml") -> RateCard:
    """Return the rate card of a text; `name` is that of its file. Raises InvalidSettings."""
    try:
        document = tomllib.loads(text, parse_float=Decimal)
    # tomllib raises a plain ValueError for very long numbers, and RecursionError for deep nesting
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise InvalidSettings(f"rate card {quote(name)} is not TOML: {str(error)[:100]}") from None
    return _Reader(text, name).read(document)


class _Reader:
    """Reader of the tables of a rate card, whose errors name the key and the line."""

    def __init__(self, text: str, name: str) -> None:
        self._text, self._name = text, name

    def read(self, document: dict[str, Any]) -> RateCard:
        self._check_keys(document, (), ("currency", "materials", "quantity_breaks", "steps", *_AMOUNTS))
        currency = self._require(document, (), "currency")
        if not isinstance(currency, str) or not 1 <= len(currency.strip()) <= 10 or not currency.isprintable():
            raise self._error(("currency",), f"must be a text such as 'EUR', got {_show(currency)}")
        tables = self._require(document, (), "materials")
        if not isinstance(tables, dict) or not tables:
            raise self._error(("materials",), "must be tables such as [materials.pla]")
        numbers = {key: self._number((key,), document[key]) for key in _AMOUNTS if key in document}
        if numbers.get("failure_percent", Decimal(0)) > MAX_FAILURE_PERCENT:
            raise self._error(
                ("failure_percent",), f"must be at most {MAX_FAILURE_PERCENT}, got {numbers['failure_percent']}"
            )
        if numbers.get("coin", MIN_COIN) < MIN_COIN:
            raise self._error(("coin",), f"must be a number of at least {MIN_COIN}, got {numbers['coin']}")
        materials: dict[str, MaterialRate] = {}
        for key, table in tables.items():
            name = key.strip().lower()
            if name in materials:
                raise self._error(("materials", key), f"is there twice; names of materials, such as {name}, differ in "
                                  "more than capitals and blanks")  # fmt: skip
            materials[name] = self._read_material(key, table)
        breaks = self._read_breaks(document.get("quantity_breaks", []))
        steps = self._read_steps(document.get("steps", []))
        return RateCard(
            currency=currency.strip(), materials=materials, quantity_breaks=breaks, steps=steps, **cast(Any, numbers)
        )

    def _read_material(self, name: str, table: object) -> MaterialRate:
        path = ("materials", name)
        if not isinstance(table, dict):
            raise self._error(path, f"must be a table [materials.{name}]")
        amounts = ("density_g_cm3", "price_per_kg", "price_per_cm3", "machine_hour")
        self._check_keys(table, path, (*amounts, "options"))
        self._require(table, path, "density_g_cm3")
        if not {"price_per_kg", "price_per_cm3"} & table.keys():
            raise self._error(path, "needs price_per_kg or price_per_cm3")
        numbers = {key: self._number((*path, key), table[key]) for key in amounts if key in table}
        if not Decimal("0.01") <= numbers["density_g_cm3"] <= 100:
            raise self._error(
                (*path, "density_g_cm3"), f"must be grams per cm³, from 0.01 to 100, got {numbers['density_g_cm3']}"
            )
        options = table.get("options", {})
        if not isinstance(options, dict):
            raise self._error((*path, "options"), "must be a table of options")
        values = {name: float(value) if isinstance(value, Decimal) else value for name, value in options.items()}
        places = {name: self._locate((*path, "options", name)) for name in options}
        return MaterialRate(**cast(Any, numbers), options=values, places=places)

    def _read_steps(self, tables: object) -> tuple[Step, ...]:
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise self._error(("steps",), "must be tables [[steps]]")
        if len(tables) > MAX_STEPS:
            raise self._error(("steps",), f"must be at most {MAX_STEPS} tables, got {len(tables)}")
        amounts = ("minutes_per_order", "minutes_per_piece", "wage_hour")
        steps: list[Step] = []
        for number, table in enumerate(tables):
            path = ("steps", str(number))
            self._check_keys(table, path, ("name", *amounts))
            name = self._require(table, path, "name")
            if not isinstance(name, str) or not 1 <= len(name.strip()) <= MAX_NAME_LENGTH or not name.isprintable():
                raise self._error((*path, "name"), f"must be a text such as 'remove support', got {_show(name)}")
            if not {"minutes_per_order", "minutes_per_piece"} & table.keys():
                raise self._error(path, "needs minutes_per_order or minutes_per_piece")
            numbers = {key: self._number((*path, key), table[key]) for key in amounts if key in table}
            steps.append(Step(name=name.strip(), **cast(Any, numbers)))
        return tuple(steps)

    def _read_breaks(self, tables: object) -> tuple[QuantityBreak, ...]:
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise self._error(("quantity_breaks",), "must be tables [[quantity_breaks]]")
        breaks: list[QuantityBreak] = []
        for number, table in enumerate(tables):
            path = ("quantity_breaks", str(number))
            self._check_keys(table, path, ("pieces", "discount_percent"))
            pieces = self._require(table, path, "pieces")
            if isinstance(pieces, bool) or not isinstance(pieces, int) or not 1 <= pieces <= MAX_AMOUNT:
                raise self._error((*path, "pieces"), f"must be a whole number of at least 1, got {_show(pieces)}")
            discount = self._number(
                (*path, "discount_percent"), self._require(table, path, "discount_percent"), MAX_DISCOUNT_PERCENT
            )
            if breaks and (pieces <= breaks[-1].pieces or discount < breaks[-1].discount_percent):
                raise self._error(path, "needs more pieces than the one before it, and no smaller discount")
            breaks.append(QuantityBreak(pieces=pieces, discount_percent=discount))
        return tuple(breaks)

    def _check_keys(self, table: dict[str, Any], path: tuple[str, ...], known: tuple[str, ...]) -> None:
        unknown = next((key for key in table if key not in known), None)
        if unknown is not None:
            raise self._error((*path, unknown), f"is unknown; known are {', '.join(known)}")

    def _require(self, table: dict[str, Any], path: tuple[str, ...], key: str) -> object:
        if key not in table:
            raise self._error((*path, key), "is missing")
        return table[key]

    def _number(self, path: tuple[str, ...], value: object, maximum: Decimal = MAX_AMOUNT) -> Decimal:
        is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
        number = Decimal(value) if is_number else Decimal("NaN")  # type: ignore[arg-type]
        if not (number.is_finite() and 0 <= number <= maximum):
            raise self._error(path, f"must be a number from 0 to {maximum:,}, got {_show(value)}")
        return number

    def _error(self, path: tuple[str, ...], message: str) -> InvalidSettings:
        return InvalidSettings(f"rate card {quote(self._locate(path))}: {'.'.join(path)} {message}")

    def _locate(self, path: tuple[str, ...]) -> str:
        line = find_line(self._text, path)
        return f"{self._name}:{line}" if line else self._name


def _show(value: object) -> str:
    return quote(str(value)[:60])
