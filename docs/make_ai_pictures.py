"""Make the pictures of `how-to/print-an-ai-model.md`: a figure as AI generators write it, and its repair.

python docs/make_ai_pictures.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import manifold3d
import numpy as np

from meshhub import Registry
from meshhub.model.scene import Mesh, Part, Scene

IMAGES = Path(__file__).parent / "images"

BALLS = np.array(
    [
        [0, 0, 24, 22], [0, -4, 54, 17], [-13, 0, 68, 7], [13, 0, 68, 7], [-14, -16, 8, 9], [14, -16, 8, 9],
        [-21, -8, 34, 8], [21, -8, 34, 8],
    ],
    np.float64,
)  # fmt: skip
"""(8, 4) centers and radii of a bear in mm: body, head, ears, feet, arms."""

WALL_MM = 0.8
PIN_HOLE_RADIUS_MM = 0.35


def make_bear(inset: float) -> manifold3d.Manifold:
    """Return the bear, smaller by a distance."""

    def field(x: float, y: float, z: float) -> float:
        depth = BALLS[:, 3] - np.sqrt(((BALLS[:, :3] - (x, y, z)) ** 2).sum(axis=1))
        return float(np.log(np.exp(depth / 2).sum()) * 2 - inset)

    return manifold3d.Manifold.level_set(field, (-40, -40, -12, 40, 40, 90), 1.6)


def make_model() -> manifold3d.Manifold:
    """Return a bear with an inner wall, pin-holes through both walls, and specks beside it."""
    model = make_bear(0) - make_bear(WALL_MM)
    pin = manifold3d.Manifold.cylinder(12, PIN_HOLE_RADIUS_MM, circular_segments=8)
    for turn in range(0, 360, 60):
        model -= pin.translate((0, 0, 16)).rotate((90, 0, turn + 20)).translate((0, 0, 24))
    specks = [
        manifold3d.Manifold.sphere(0.7, 8).translate(place) for place in ((30, 0, 60), (-32, 10, 50), (26, 12, 76))
    ]
    return manifold3d.Manifold.batch_boolean([model, *specks], manifold3d.OpType.Add)


def main() -> None:
    """Write the model, and draw it as the commands of the guide do."""
    native = make_model().to_mesh64()
    mesh = Mesh(np.asarray(native.vert_properties)[:, :3], np.asarray(native.tri_verts).astype(np.int32))
    look = {"size": "300x360", "view": "front"}
    with tempfile.TemporaryDirectory() as name, Registry(entry_points=False) as registry:
        folder = Path(name)
        registry.write(Scene((mesh,), (Part(0),)), folder / "bear.glb")
        registry.convert(folder / "bear.glb", folder / "solid.3mf", options={"repair_solid": True})
        registry.render(folder / "bear.glb", IMAGES / "ai-model.png", options=look)
        for model, picture in (("bear.glb", "ai-before.png"), ("solid.3mf", "ai-after.png")):
            half = folder / f"half-{model}"
            registry.convert(folder / model, half, options={"cut_plane": "y=0", "cut_plane_keep": "high"})
            registry.render(half, IMAGES / picture, options=look)


if __name__ == "__main__":
    main()
