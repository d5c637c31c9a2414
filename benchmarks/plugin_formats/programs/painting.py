"""Let resvg paint a drawing, and measure what is painted."""

import io
import json
from pathlib import Path

import numpy as np
import resvg_py
from PIL import Image

SIDE_PX = 3000
MM_PER_PX = 25.4 / 96


def paint(source, zoom):
    picture = resvg_py.svg_to_bytes(svg_path=source, zoom=zoom, dpi=96, skip_system_fonts=True)
    return np.asarray(Image.open(io.BytesIO(bytes(picture))).convert("RGBA"))[:, :, 3] / 255


def read(source, target):
    zoom = SIDE_PX / max(paint(source, 1.0).shape)
    alpha = paint(source, zoom)
    mm = MM_PER_PX / zoom
    sides = sorted(float(np.ptp(np.flatnonzero(alpha.max(axis=axis) > 0.5)) + 1) * mm for axis in (0, 1))
    Path(target).write_text(json.dumps({"sizes": sides, "area": float(alpha.sum()) * mm**2}))
