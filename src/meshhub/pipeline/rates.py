"""Rate card of a print shop, and the price of an estimate by it."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_HALF_UP, Decimal, localcontext
from typing import cast

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

MIN_COIN = Decimal("0.0001")
"""Least coin; no currency has a smaller one."""

_PRECISION = 40
"""Digits of amounts: those of a rate, of a million pieces and of a weight."""


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
        price = self._price(volume, estimate.seconds or 0, rate, quantity)
        return estimate.with_material(name, float(rate.density_g_cm3)), price

    def price_print(self, material_mm3: float, seconds: float, material: str | None) -> Price:
        """Return the price of one piece that takes this material and time. Raises InvalidSettings as `price`."""
        return self._price(_decimal(material_mm3), seconds, self.material_of(material)[1], 1)

    def _price(self, volume: Decimal, seconds: float, rate: MaterialRate, quantity: int) -> Price:
        with localcontext(prec=_PRECISION):
            pieces = Decimal(quantity)
            kg = volume / 1000 * rate.density_g_cm3 / 1000
            hour = self.machine_hour if rate.machine_hour is None else rate.machine_hour
            matter = self._round(pieces * (kg * rate.price_per_kg + volume / 1000 * rate.price_per_cm3))
            hours = pieces * _decimal(seconds) / 3600
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
            return Price(
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


def _decimal(number: float) -> Decimal:
    """Return a measured number with the digits that it has."""
    return Decimal(repr(float(number)))
