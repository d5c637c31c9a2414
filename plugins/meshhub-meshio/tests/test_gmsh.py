"""Files that Gmsh writes, with the volume that it measures: `pip install gmsh`, in no environment by default."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from meshhub import Registry

gmsh = pytest.importorskip("gmsh")


@pytest.fixture(scope="module")
def model() -> Iterator[float]:
    """Mesh two bodies that touch, one inside the other, with a hole; yield their volume."""
    gmsh.initialize()
    gmsh.option.setNumber("General.Terminal", 0)
    kernel = gmsh.model.occ
    box, hole, ball = (
        kernel.addBox(0, 0, 0, 20, 15, 10),
        kernel.addCylinder(6, 7, -1, 0, 0, 12, 3),
        kernel.addSphere(15, 7, 5, 3),
    )
    kernel.cut([(3, box)], [(3, hole)])
    kernel.synchronize()
    kernel.fragment(gmsh.model.getEntities(3), [(3, ball)])
    kernel.synchronize()
    gmsh.option.setNumber("Mesh.MeshSizeMax", 2.5)
    # also the surfaces between and around the bodies
    gmsh.option.setNumber("Mesh.SaveAll", 1)
    gmsh.model.mesh.generate(3)
    kinds = gmsh.model.mesh.getElementTypes(3)
    cells = [gmsh.model.mesh.getElementsByType(kind)[0] for kind in kinds]
    yield float(sum(gmsh.model.mesh.getElementQualities(each, "volume").sum() for each in cells))
    gmsh.finalize()


@pytest.mark.parametrize(
    ("extension", "version", "binary"),
    [
        (".msh", 2.2, 0),
        (".msh", 4.1, 0),
        (".msh", 4.1, 1),
        *((extension, 4.1, 0) for extension in (".vtk", ".inp", ".bdf", ".med", ".su2", ".mesh")),
    ],
)
def test_the_volume_is_that_of_gmsh(model: float, tmp_path: Path, extension: str, version: float, binary: int) -> None:
    gmsh.option.setNumber("Mesh.MshFileVersion", version)
    gmsh.option.setNumber("Mesh.Binary", binary)
    gmsh.write(str(tmp_path / f"a{extension}"))
    inspection = Registry().inspect(tmp_path / f"a{extension}").model
    assert inspection.watertight
    assert inspection.bodies == 1
    assert inspection.volume_mm3 == pytest.approx(model, rel=1e-6)
