"""Generate the example models: `python examples/make_examples.py`.

bracket.stl is a wall bracket with the defects of a bad export: three facets are missing, one is flipped, and a stray
fragment of three facets lies beside it. bracket-clean.stl is the same bracket without defects.
"""

from __future__ import annotations

import struct
from pathlib import Path

import manifold3d as m3d
import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).parent


def make_bracket() -> NDArray[np.float32]:
    """Return the (n, 3, 3) corners of an angle bracket, 60 × 40 × 50 mm, with a rib and five screw holes."""
    plate = m3d.Manifold.cube((60, 40, 5))
    wall = m3d.Manifold.cube((5, 40, 50))
    rib = m3d.CrossSection([[(5, 5), (40, 5), (5, 35)]]).extrude(5).rotate((90, 0, 0)).translate((0, 22.5, 0))
    screw = m3d.Manifold.cylinder(20, 2.25, circular_segments=48)
    head = m3d.Manifold.cylinder(2.5, 2.25, 4.5, circular_segments=48)
    body = plate + wall + rib
    for x in (20, 50):
        for y in (8, 32):
            body -= screw.translate((x, y, -5))
            body -= head.translate((x, y, 2.5))
    body -= screw.rotate((0, 90, 0)).translate((-5, 20, 42))
    mesh = body.to_mesh()
    return np.asarray(mesh.vert_properties[:, :3], np.float32)[np.asarray(mesh.tri_verts)]


def damage(corners: NDArray[np.float32]) -> NDArray[np.float32]:
    """Add the defects that repair corrects; the result is deterministic."""
    kept = np.delete(corners, [7, 120, 121], axis=0)
    kept[40] = kept[40, ::-1]
    fragment = np.array([[[0, 0, 0], [0.2, 0, 0], [0, 0.2, 0]]], np.float32) + np.float32([62, 1, 1])
    return np.concatenate([kept, fragment, fragment + np.float32([0.2, 0, 0]), fragment + np.float32([0, 0.2, 0])])


def save(path: Path, corners: NDArray[np.float32]) -> None:
    """Write binary STL without meshhub, so that the examples do not depend on the code that they demonstrate."""
    records = np.zeros(len(corners), [("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
    records["corners"] = corners
    path.write_bytes(b"meshhub example".ljust(80, b"\0") + struct.pack("<I", len(corners)) + records.tobytes())


if __name__ == "__main__":
    bracket = make_bracket()
    save(HERE / "bracket-clean.stl", bracket)
    save(HERE / "bracket.stl", damage(bracket))
