"""Let trimesh add up the polygons that the outlines of a drawing enclose."""

import json
from pathlib import Path

import numpy as np
import trimesh


def read(source, target):
    polygons = trimesh.load_path(source).polygons_full
    corners = np.concatenate([np.array(polygon.exterior.coords) for polygon in polygons])
    figures = {"sizes": sorted(np.ptp(corners, axis=0).tolist()), "area": sum(polygon.area for polygon in polygons)}
    Path(target).write_text(json.dumps(figures))
