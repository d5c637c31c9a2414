"""Let Printrun add up the filament that G-code pushes."""

import json
import math
import re
from pathlib import Path

from printrun.gcoder import GCode


def read(source, target):
    text = Path(source).read_text("utf-8", "replace")
    diameter = re.search(r"^; filament_diameter = ([\d.]+)", text, re.MULTILINE)
    area = math.pi / 4 * float(diameter[1] if diameter else 1.75) ** 2
    Path(target).write_text(json.dumps({"volume": GCode(text.splitlines()).filament_length * area}))
