"""Estimate of a print: volumes, weight, support and time."""

from __future__ import annotations

from msgspec import Struct, structs

from meshhub.errors import format_number


class PartEstimate(Struct, frozen=True, kw_only=True):
    """Sizes and weight of one placed part."""

    name: str
    """Name in the file; "" without one."""

    size_mm: tuple[float, float, float]
    """Extents along X, Y and Z."""

    volume_mm3: float
    """Volume that the surface encloses."""

    area_mm2: float
    """Area of the surface."""

    weight_g: float
    """Weight of the printed part without support; hollow with infill for the process fdm."""


class Estimate(Struct, frozen=True, kw_only=True):
    """Estimate of a print. Lengths are in millimeters."""

    method: str
    """Origin of material, support and time: "model", or a slicer with its version."""

    process: str
    """Way of printing."""

    material: str
    """Name of the material."""

    density_g_cm3: float
    """Density of the material."""

    size_mm: tuple[float, float, float]
    """Extents along X, Y and Z."""

    volume_mm3: float
    """Volume that the surfaces of all parts enclose."""

    area_mm2: float
    """Area of all surfaces."""

    material_mm3: float
    """Material of the model, without support."""

    support_mm3: float
    """Space between overhangs and what is below them, which support takes up."""

    support_material_mm3: float
    """Material of the support."""

    weight_g: float
    """Weight of the material, with support."""

    support_weight_g: float
    """Weight of the support."""

    seconds: float | None
    """Time of the print; None if it depends on what else is in the printer."""

    seconds_error: float | None
    """Error of the time, as a share of it, that nine of ten validated parts did not exceed; None without a validation.
    """

    parts: tuple[PartEstimate, ...]
    """The first parts, at most a hundred."""

    def with_material(self, name: str, density_g_cm3: float) -> Estimate:
        """Return the estimate for another material; only the weights differ."""
        ratio = density_g_cm3 / self.density_g_cm3
        return structs.replace(
            self,
            material=name,
            density_g_cm3=density_g_cm3,
            weight_g=self.weight_g * ratio,
            support_weight_g=self.support_weight_g * ratio,
            parts=tuple(structs.replace(part, weight_g=part.weight_g * ratio) for part in self.parts),
        )

    def describe_weight(self) -> str:
        """Return the weight in words, with that of the support."""
        support = f", {format_number(self.support_weight_g, 3)} g of it support" if self.support_weight_g else ""
        return f"{format_number(self.weight_g, 3)} g of {self.material}{support}"

    def describe_time(self) -> str:
        """Return the time in words, with its range."""
        if self.seconds is None:
            return "depends on what else is in the printer"
        minutes = round(self.seconds / 60)
        hours = f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{max(1, minutes)} min"
        error = f" (± {format_number(100 * self.seconds_error, 2)} %)" if self.seconds_error is not None else ""
        return f"about {hours}{error}"
