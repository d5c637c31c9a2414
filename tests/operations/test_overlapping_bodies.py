"""Bodies of one mesh that overlap: operations that need a solid unite them first, and say so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from manifold3d import Manifold, Mesh64, OpType

from meshhub import Registry
from meshhub.model.scene import Mesh, Scene
from meshhub.toolkit.geometry import soup, welded
from models import scene_of, volume

pytestmark = pytest.mark.once

BLOCKS = Manifold.cube((20, 20, 10)), Manifold.cube((20, 20, 10)).translate((15, 5, 0))
BOX_AND_BLOCK = (
    Manifold.cube((24, 24, 24)) - Manifold.cube((16, 16, 16)).translate((4, 4, 4)),
    Manifold.cube((20, 20, 24)).translate((14, 2, 0)),
)
"""A box with a room, of which a block fills a part."""

OPERATIONS: dict[str, tuple[tuple[Manifold, Manifold], dict[str, Any]]] = {
    "hollow": (BLOCKS, {"hollow_wall_mm": 2.0}),
    "drain": (BOX_AND_BLOCK, {"drain_holes_mm": 3.0}),
    "emboss": (BLOCKS, {"emboss_text": "A", "emboss_size_mm": 6.0}),
    "engrave": (BLOCKS, {"emboss_text": "A", "emboss_size_mm": 6.0, "emboss_height_mm": -0.6}),
    "chamfer_base": (BLOCKS, {"chamfer_base_mm": 1.0}),
    "offset": (BLOCKS, {"offset_mm": 0.2}),
    "shrink": (BOX_AND_BLOCK, {"offset_mm": -0.2}),
    "plinth": (BLOCKS, {"plinth_mm": 2.0}),
    "cut_plane": (BOX_AND_BLOCK, {"cut_plane": "z=37%"}),
    "split_for_bed": (BLOCKS, {"split_for_bed": "30x30x30"}),
}


def join(*solids: Manifold) -> Scene:
    """Return solids as bodies of one mesh."""
    corners, faces, count = [], [], 0
    for solid in solids:
        mesh = solid.to_mesh64()
        corners.append(np.asarray(mesh.vert_properties)[:, :3])
        faces.append(np.asarray(mesh.tri_verts).astype(np.int32) + np.int32(count))
        count += len(corners[-1])
    return scene_of(Mesh(np.concatenate(corners), np.concatenate(faces)))


def read_united_volume(scene: Scene) -> float:
    """Return the volume of the union of all bodies, less the cavities, whose parts in other bodies count twice."""
    total = 0.0
    for mesh in scene.meshes:
        points, faces = welded(mesh)
        shells = Manifold(Mesh64(points.copy(), faces.astype(np.uint64))).decompose()
        bodies = [shell for shell in shells if shell.volume() > 0]
        total += Manifold.batch_boolean(bodies, OpType.Add).volume()
        total += sum(shell.volume() for shell in shells if shell.volume() < 0)
    return total


@pytest.mark.parametrize(("solids", "options"), OPERATIONS.values(), ids=OPERATIONS)
def test_the_result_is_that_of_their_union(
    solids: tuple[Manifold, Manifold], options: dict[str, Any], tmp_path: Path
) -> None:
    results: list[tuple[float, int]] = []
    with Registry(entry_points=False) as registry:
        for scene in (join(*solids), join(solids[0] + solids[1])):
            report = registry.convert(scene, tmp_path / "out.3mf", options=options, overwrite=True)
            result = registry.read(tmp_path / "out.3mf")
            # nothing overlaps any more
            assert read_united_volume(result) == pytest.approx(volume(*soup(result)), rel=1e-6)
            results.append((volume(*soup(result)), len(result.parts)))
            codes = [note.code for note in report.notes]
            assert codes.count("bodies_united") == (len(results) == 1)
            assert not {"cut_not_closed", "result_invalid"} & set(codes)
    assert results[0][0] == pytest.approx(results[1][0], rel=2e-3)
    assert results[0][1] == results[1][1]
