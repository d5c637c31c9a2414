"""Constants of the service that the page computes with, for its source."""

from __future__ import annotations

import json

from meshhub.builtin_plugins.split_for_bed import MAX_CUTS, MIN_SIDE_MM
from meshhub.builtin_plugins.split_for_bed.connectors import MAX_LENGTH_MM, PROTRUDING
from meshhub.pipeline.companion_mentions import COMPANION_EXTENSIONS
from meshhub.toolkit.printers import ROUNDING_RATIO


def page() -> str:
    """Return the file."""
    constants = {
        # files that models mention, without the dot
        "companionExtensions": sorted(extension.removeprefix(".") for extension in COMPANION_EXTENSIONS),
        # excess over a side of a printer, relative to it
        "roundingRatio": ROUNDING_RATIO,
        # cuts for a bed
        "minBedSideMm": MIN_SIDE_MM,
        "maxBedCuts": MAX_CUTS,
        "protrudingConnectors": PROTRUDING,
        "maxConnectorMm": MAX_LENGTH_MM,
    }
    return json.dumps(constants, indent=2) + "\n"
