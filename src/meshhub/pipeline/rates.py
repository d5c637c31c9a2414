"""Rate card of a print shop, a TOML file, and the price of an estimate by it."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_HALF_UP, Decimal, localcontext
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from meshhub.errors import InvalidSettings, quote
from meshhub.model import options as opt
from meshhub.model.estimate import Estimate
from meshhub.model.notes import Note
from meshhub.model.options import OptionField, Value
from meshhub.model.quote import Price, Quote, Wage
from meshhub.model.verdict import Verdict
from meshhub.pipeline.declarations import Declarations
from meshhub.pipeline.purposes.quote import QuoteOptions
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

MIN_COIN = Decimal("0.0001")
"""Least coin; no currency has a smaller one."""

_PRECISION = 40
"""Digits of amounts: those of a rate, of a million pieces and of a weight."""


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


class MaterialRate(Struct, frozen=True, kw_only=True):
    """Prices of a material."""

    density_g_cm3: Decimal
    """Density, for the weight."""

    price_per_kg: Decimal = Decimal(0)
    """Price by weight."""

    price_per_cm3: Decimal = Decimal(0)
    """Price by volume of material, with support."""

    machine_hour: Decimal | None = None
    """Price of a machine hour; None: that of the card."""

    options: dict[str, Value] = {}
    """Options of its prints, by name, such as those of the process; options of a request take precedence."""

    places: dict[str, str] = {}
    """File and line of each option, for messages."""


class Step(Struct, frozen=True, kw_only=True):
    """Step of an order that somebody works on."""

    name: str
    """Name, such as "remove support"."""

    minutes_per_order: Decimal = Decimal(0)
    """Minutes of an order."""

    minutes_per_piece: Decimal = Decimal(0)
    """Minutes of each piece."""

    wage_hour: Decimal | None = None
    """Wage of an hour; None: that of the card."""


class QuantityBreak(Struct, frozen=True, kw_only=True):
    """Discount from a number of pieces on."""

    pieces: int
    """Number of pieces from which it applies."""

    discount_percent: Decimal
    """Discount on material and machine time."""


class RateCard(Struct, frozen=True, kw_only=True):
    """Rates of a print shop. Amounts are without tax."""

    currency: str
    """Currency, such as "EUR"."""

    materials: dict[str, MaterialRate]
    """Materials by name; the first is the default."""

    machine_hour: Decimal = Decimal(0)
    """Price of a machine hour."""

    power_watt: Decimal = Decimal(0)
    """Power of the printer; its energy is this times the machine hours."""

    price_per_kwh: Decimal = Decimal(0)
    """Price of a kilowatt hour."""

    failure_percent: Decimal = Decimal(0)
    """Share of printed pieces that fail, whose material, machine time and energy are added."""

    setup: Decimal = Decimal(0)
    """Fixed amount of an order."""

    wage_hour: Decimal = Decimal(0)
    """Wage of an hour."""

    steps: tuple[Step, ...] = ()
    """Steps of an order, in the order of its lines."""

    packaging_order: Decimal = Decimal(0)
    """Packaging of an order."""

    packaging_piece: Decimal = Decimal(0)
    """Packaging of each piece."""

    minimum: Decimal = Decimal(0)
    """Least price of an order."""

    margin_percent: Decimal = Decimal(0)
    """Margin on all costs."""

    tax_percent: Decimal = Decimal(0)
    """Tax on the price."""

    round_to: Decimal = Decimal(0)
    """Amount to whose multiples the price before tax is raised; 0: the coin."""

    coin: Decimal = Decimal("0.01")
    """Smallest coin, to which amounts are rounded."""

    quantity_breaks: tuple[QuantityBreak, ...] = ()
    """Discounts, with rising pieces and percents."""

    def material_of(self, name: str | None) -> tuple[str, MaterialRate]:
        """Return the name and the prices of a material; default: the first. Raises InvalidSettings."""
        chosen = next(iter(self.materials)) if name is None else name.strip().lower()
        if chosen not in self.materials:
            raise InvalidSettings(
                f"option '{{material}}' names {quote(chosen)}, which the rate card does not have; "
                f"known are {', '.join(self.materials)}",
                options=("material",),
            )
        return chosen, self.materials[chosen]

    def complete(self, options: Mapping[str, object], declarations: Declarations) -> dict[str, object]:
        """Return the options of a request with its material and the options of that.

        Without a material, it is the first one that agrees with what the request says about it, such as the process.

        Args:
            options: Options of the request.
            declarations: The options that there are.
        Raises:
            InvalidOption: The card does not have the material, an option of it is wrong, or it contradicts the request.
        """
        fields = declarations.check_fields()
        naming = [field for field in fields.values() if field.names_material and options.get(field.name) is not None]
        named = options.get("material") or None
        candidates = list(self.materials) if named is None else [self.material_of(str(named))[0]]
        chosen = next(
            (name for name in candidates if all(self._agrees(name, field, options) for field in naming)), None
        )
        if chosen is None:
            wishes = " and ".join(f"'{{{field.name}}}' = {quote(str(options[field.name]))}" for field in naming)
            subject = "no material of the rate card" if named is None else f"not the material {quote(str(named))}"
            raise InvalidSettings(
                f"{wishes}: {subject} is for that; known materials are {', '.join(self.materials)}",
                options=tuple(field.name for field in naming),
            )
        own = self.materials[chosen].options
        wrong = declarations.find_wrong_option(own, {**declarations.fields(), **fields})
        if wrong is not None:
            name, error = wrong
            raise InvalidSettings(
                f"rate card {quote(self.materials[chosen].places[name])}: materials.{chosen}.options.{name}: "
                f"{error.message}"
            )
        requested = [name for name, value in options.items() if value is not None]
        return {**opt.drop_conflicts(own, requested, fields), **options, "material": chosen}

    def _agrees(self, name: str, field: OptionField, options: Mapping[str, object]) -> bool:
        """Return whether a material has the value that a request names, by its options, by default, or by its name."""
        own = self.materials[name].options.get(field.name, field.default)
        return str(options[field.name]).strip().lower() in (str(own).lower(), name)

    def price(self, estimate: Estimate, material: str | None, quantity: int) -> tuple[Estimate, Price]:
        """Return an estimate with the weight of a material, and the price of a number of pieces.

        Args:
            estimate: Estimate of one piece.
            material: Name of the material; None: the first.
            quantity: Number of pieces.
        Raises:
            InvalidSettings: The card does not have the material.
        """
        name, rate = self.material_of(material)
        volume = _decimal(estimate.material_mm3) + _decimal(estimate.support_material_mm3)
        with localcontext(prec=_PRECISION):
            pieces = Decimal(quantity)
            kg = volume / 1000 * rate.density_g_cm3 / 1000
            hour = self.machine_hour if rate.machine_hour is None else rate.machine_hour
            matter = self._round(pieces * (kg * rate.price_per_kg + volume / 1000 * rate.price_per_cm3))
            hours = pieces * _decimal(estimate.seconds or 0) / 3600
            time = self._round(hours * hour)
            energy = self._round(hours * self.power_watt / 1000 * self.price_per_kwh)
            failures = self._round((matter + time + energy) * self.failure_percent / (100 - self.failure_percent))
            percent = max(
                (item.discount_percent for item in self.quantity_breaks if item.pieces <= quantity), default=0
            )
            discount = -self._round((matter + time) * percent / 100)
            setup = self._round(self.setup)
            wages = tuple(Wage(step=step.name, amount=self._pay(step, pieces)) for step in self.steps)
            packaging = self._round(self.packaging_order + pieces * self.packaging_piece)
            costs = matter + time + energy + failures + setup + packaging + discount
            costs += sum((wage.amount for wage in wages), Decimal(0))
            margin = self._round(costs * self.margin_percent / 100)
            surcharge = max(self._round(self.minimum - costs - margin, ROUND_CEILING), self._round(Decimal(0)))
            net = costs + margin + surcharge
            step = max(self.round_to, self.coin)
            rounding = self._round((net / step).to_integral_value(ROUND_CEILING) * step - net, ROUND_CEILING)
            net += rounding
            tax = self._round(net * self.tax_percent / 100)
            return estimate.with_material(name, float(rate.density_g_cm3)), Price(
                currency=self.currency,
                quantity=quantity,
                material=matter,
                machine_time=time,
                energy=energy,
                failures=failures,
                setup=setup,
                wages=wages,
                packaging=packaging,
                quantity_discount=discount,
                margin=margin,
                minimum_surcharge=surcharge,
                rounding=rounding,
                tax=tax,
                total=net + tax,
                per_piece=self._round((net + tax) / pieces),
            )

    def _pay(self, step: Step, pieces: Decimal) -> Decimal:
        """Return the wages of a step."""
        wage = self.wage_hour if step.wage_hour is None else step.wage_hour
        return self._round((step.minutes_per_order + pieces * step.minutes_per_piece) / 60 * wage)

    def _round(self, amount: Decimal, rounding: str = ROUND_HALF_UP) -> Decimal:
        """Return a whole number of coins."""
        return (amount / self.coin).quantize(Decimal(1), rounding) * self.coin


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


def make_quote(verdict: Verdict, card: RateCard | None, options: Mapping[str, object]) -> Quote:
    """Return the quote of a verdict with an estimate, by the options of the request.

    Raises:
        InvalidOption: The named material is not in the rate card, or no rate card is set.
    """
    chosen = parse_quote_options(options)
    estimate, price = verdict.estimate, None
    assert estimate is not None
    notes = list(verdict.notes)
    if card is None:
        notes.append(Note("no_rates", "no rate card is set, so the quote has no price"))
    else:
        estimate, price = card.price(estimate, chosen.material, chosen.quantity)
        if estimate.seconds is None:
            notes.append(
                Note("no_machine_time", "the time depends on what else is in the printer, so the price has none of it")
            )
    return Quote(source=verdict.source, estimate=estimate, price=price, notes=tuple(notes))


def complete_options(
    card: RateCard | None, options: Mapping[str, object], declarations: Declarations
) -> dict[str, object]:
    """Return the options of a request for a quote with those of its material; see `RateCard.complete`.

    Raises InvalidOption.
    """
    material = parse_quote_options(options).material
    if card is not None:
        return card.complete(options, declarations)
    if material is not None:
        raise InvalidSettings(
            "option '{material}' names a material of a rate card, and there is none", options=("material",)
        )
    return dict(options)


def parse_quote_options(options: Mapping[str, object]) -> QuoteOptions:
    """Return the options of a quote among those of a request. Raises InvalidOption."""
    fields = {field.name: field for field in opt.option_fields(QuoteOptions)}
    own = {name: value for name, value in options.items() if name in fields and value is not None}
    return cast(QuoteOptions, opt.build_options(QuoteOptions, opt.parse_options(fields, own)))


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


def _decimal(number: float) -> Decimal:
    """Return a measured number with the digits that it has."""
    return Decimal(repr(float(number)))
