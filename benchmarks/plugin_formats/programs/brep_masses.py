"""Let FreeCAD integrate the area and volume of a CAD file; it runs in the program freecadcmd, without arguments."""

import json
import os
from pathlib import Path

import Part

shape = Part.read(os.environ["JUDGED_FILE"])
box = shape.optimalBoundingBox(False)
figures = {
    "sizes": sorted((box.XLength, box.YLength, box.ZLength)),
    "area": shape.Area,
    "volume": sum(solid.Volume for solid in shape.Solids) or None,
}
Path(os.environ["JUDGED_RESULT"]).write_text(json.dumps(figures))
