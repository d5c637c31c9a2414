"""Quote: the estimate of a print, and its price with every summand."""

from __future__ import annotations

from decimal import Decimal

from msgspec import Struct

from meshhub.model.estimate import Estimate
from meshhub.model.html import format_table, list_rows
from meshhub.model.notes import Note
from meshhub.model.report import FileReport


class Wage(Struct, frozen=True, kw_only=True):
    """Wages of a step of an order."""

    step: str
    """Name of the step in the rate card."""

    amount: Decimal
    """Wages of the step for all pieces."""


class Price(Struct, frozen=True, kw_only=True):
    """Price of a number of equal pieces. The summands, rounded to coins, add up to `total` exactly."""

    currency: str
    """Currency of the rate card, such as "EUR"."""

    quantity: int
    """Number of pieces."""

    material: Decimal
    """Material of all pieces, with support."""

    machine_time: Decimal
    """Machine hours of all pieces."""

    energy: Decimal
    """Energy of all machine hours."""

    failures: Decimal
    """Material, machine hours and energy of the pieces that fail."""

    setup: Decimal
    """Fixed amount of the order."""

    wages: tuple[Wage, ...]
    """Wages of each step."""

    packaging: Decimal
    """Packaging of the order and of all pieces."""

    quantity_discount: Decimal
    """Discount on material and machine time; 0 or negative."""

    margin: Decimal
    """Margin on the summands above."""

    minimum_surcharge: Decimal
    """Amount that lifts the sum above to the minimum."""

    rounding: Decimal
    """Amount that lifts the sum above to the next round one."""

    tax: Decimal
    """Tax on the sum above."""

    total: Decimal
    """Price of all pieces."""

    per_piece: Decimal
    """The total per piece, rounded to a coin."""

    @property
    def net(self) -> Decimal:
        """The total without tax."""
        return self.total - self.tax


class Quote(Struct, frozen=True, kw_only=True):
    """Result of `Registry.quote`, `meshhub quote` and `/quote`."""

    source: FileReport
    """Input file, or the model after the operations that were requested."""

    estimate: Estimate
    """Estimate of one piece."""

    price: Price | None = None
    """Price; None without a rate card."""

    notes: tuple[Note, ...] = ()
    """Notes from the reader and the operations, and notes about the price."""

    def _repr_html_(self) -> str:
        """Describe the quote for notebooks."""
        price = self.price
        return format_table(
            f"Quote of {self.source.format}",
            [
                ("weight", self.estimate.describe_weight()),
                ("time", self.estimate.describe_time()),
                ("price", price and f"{price.total} {price.currency} for {price.quantity:,}"),
                *list_rows("note", [f"{note.message} [{note.code}]" for note in self.notes]),
            ],
        )
