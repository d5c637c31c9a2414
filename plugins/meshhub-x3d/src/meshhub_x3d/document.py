"""File as a graph of nodes: what every encoding yields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from meshhub import UnreadableFile
from meshhub.errors import quote
from meshhub_x3d.nodes import Node


@dataclass(frozen=True)
class Document:
    """Parsed file.

    Attributes:
        nodes: Nodes of the scene.
        units: Conversion factors by category, such as `{"length": "0.001"}` for millimeters.
        texts: Metadata by name.
    """

    nodes: tuple[Node, ...]
    units: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)

    def factor(self, category: str) -> float:
        """Return the conversion factor of a category; 1 without one. Raises UnreadableFile."""
        text = self.units.get(category, "1")
        try:
            factor = float(text)
        except ValueError:
            factor = np.nan
        if not (np.isfinite(factor) and factor > 0):
            raise UnreadableFile(f"the unit of {category} has the factor {quote(text[:40])}; correct it in the file")
        return factor
