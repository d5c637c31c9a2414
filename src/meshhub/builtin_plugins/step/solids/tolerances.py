"""Lengths that CAD programs tell apart."""

from __future__ import annotations

MIN_EDGE_MM = 1e-5
"""Millimeters; CAD programs treat shorter edges as corners, and their faces as torn. Points within it are equal."""

MAX_GAP_MM = 1e-6
"""Distance of an edge, or its points, from its surfaces, up to which it counts as lying on them."""
