"""Draw the pictures of `how-to/print-in-color.md`: `python docs/make_color_pictures.py`.

It needs Pillow. The model is the bear of `make_ai_pictures.py`, with a texture of soft shades and small patterns.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from make_ai_pictures import IMAGES, make_bear
from PIL import Image as Picture
from PIL import ImageDraw, ImageFilter

from meshhub import Registry
from meshhub.model.scene import Image, Material, Mesh, Part, Scene

TEXTURE_PIXELS = 1024

COLOR_COUNT = 128
"""Colors of a picture, which keeps files below 60 kB."""

FILAMENTS = "name,hex\nWhite,#F4F4F0\nBlack,#101010\nFire red,#C8202C\nSky blue,#3A8CC8\nBrown,#7A4A2C\nSand,#D8B88A\n"

LOOK = {"size": "600x360", "view": "front"}

STEPS: Mapping[str, Mapping[str, Any]] = {
    "model": {"size": "300x360"},
    "four": {"reduce_colors": 4},
    "filaments": {"reduce_colors_palette": FILAMENTS},
    "dither": {"reduce_colors_palette": FILAMENTS, "reduce_colors_dither": "blue-noise"},
    "split": {"reduce_colors": 4, "edges": "mesh"},
    "legend": {"reduce_colors": 4, "view": "iso,iso-back", "size": "640x520"},
}
"""Options of each picture. The triangles of "split" are large enough to be seen."""


def make_model() -> Scene:
    """Return the bear, with a texture that is projected from the front."""
    native = make_bear(0).to_mesh64()
    vertices = np.asarray(native.vert_properties)[:, :3]
    low, high = vertices.min(axis=0), vertices.max(axis=0)
    uv = ((vertices - low) / (high - low))[:, [0, 2]]
    data = io.BytesIO()
    draw_texture().save(data, "PNG")
    mesh = Mesh(vertices, np.asarray(native.tri_verts).astype(np.int32), uv=uv.astype(np.float32))
    return Scene(
        (mesh,), (Part(0, material=0),), (Material("bear", base_color_image=0),), (Image(data.getvalue(), "image/png"),)
    )


def draw_texture() -> Picture.Image:
    """Return a fur with soft shades, a belly, a striped scarf and a face."""
    steps = np.linspace(0, 1, TEXTURE_PIXELS)
    shade = 0.75 + 0.25 * np.sin(np.pi * steps)[None, :] * np.sin(np.pi * steps)[:, None]
    fur = Picture.fromarray((np.array([150, 96, 60]) * shade[..., None]).astype(np.uint8))
    soft = Picture.new("L", fur.size)
    ImageDraw.Draw(soft).ellipse((330, 600, 694, 950), fill=255)
    fur.paste((222, 190, 146), mask=soft.filter(ImageFilter.GaussianBlur(24)))
    pen = ImageDraw.Draw(fur)
    pen.rectangle((0, 470, TEXTURE_PIXELS, 545), fill=(200, 32, 44))
    for x in range(0, TEXTURE_PIXELS, 90):
        pen.polygon([(x, 470), (x + 35, 470), (x + 75, 545), (x + 40, 545)], fill=(244, 244, 240))
    pen.ellipse((412, 320, 612, 450), fill=(222, 190, 146))
    pen.ellipse((476, 330, 548, 378), fill=(16, 16, 16))
    for x in (400, 584):
        pen.ellipse((x, 238, x + 44, 292), fill=(16, 16, 16))
        pen.ellipse((x + 22, 246, x + 38, 264), fill=(244, 244, 240))
    for x in (250, 700):
        pen.ellipse((x, 60, x + 80, 140), fill=(58, 140, 200))
    return fur


def main() -> None:
    """Draw the model as the commands of the guide do."""
    with tempfile.TemporaryDirectory() as name, Registry(entry_points=False) as registry:
        fine, coarse = Path(name) / "fine.glb", Path(name) / "coarse.glb"
        registry.convert(make_model(), fine, target_height_mm=80)
        registry.convert(fine, coarse, optimize_target_faces=600)
        for step, options in STEPS.items():
            path = IMAGES / f"color-{step}.png"
            registry.render(coarse if step == "split" else fine, path, options={**LOOK, **options})
            with Picture.open(path) as picture:
                picture.convert("RGB").quantize(COLOR_COUNT).save(path, optimize=True)


if __name__ == "__main__":
    main()
