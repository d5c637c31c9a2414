"""Let Gmsh integrate areas and volumes over the surfaces of a CAD file."""

import json
from pathlib import Path

import gmsh


def read(source, target):
    if not gmsh.isInitialized():
        gmsh.initialize(interruptible=False)
    gmsh.clear()
    gmsh.option.setNumber("General.Terminal", 0)
    # boxes of control points would be too large
    gmsh.option.setNumber("Geometry.OCCBoundsUseStl", 1)
    occ = gmsh.model.occ
    occ.importShapes(source, highestDimOnly=False)
    occ.synchronize()
    boxes = [occ.getBoundingBox(*entity) for entity in occ.getEntities(2)]
    figures = {
        "sizes": sorted(max(box[k + 3] for box in boxes) - min(box[k] for box in boxes) for k in range(3)),
        "area": sum(occ.getMass(*entity) for entity in occ.getEntities(2)),
        # a file of surfaces without solids has an area alone
        "volume": sum(occ.getMass(*entity) for entity in occ.getEntities(3)) or None,
    }
    Path(target).write_text(json.dumps(figures))
