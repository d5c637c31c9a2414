"""Abaqus input as programs write it: parts and instances, several lists of nodes, local systems, included files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cell_bricks import CORNERS, SIZE

from meshhub import MeshhubError, Registry, Source

NODES = "".join(f"{number + 1}, {x * 10}, {y * 20}, {z * 30}\n" for number, (x, y, z) in enumerate(CORNERS.tolist()))
CELLS = "*Element, type=C3D8R\n1, 1, 2, 3, 4, 5, 6, 7, 8\n"
PART = f"*Part, name=Brick\n*Node\n{NODES}{CELLS}*End Part\n"


def inspect(text: str, **companions: str) -> Any:
    files = {f"{name}.inp": content.encode() for name, content in companions.items()}
    return Registry().inspect(Source.from_bytes(text.encode(), "a.inp", files)).model


def instance(name: str, *lines: str) -> str:
    return f"*Instance, name={name}, part=BRICK\n" + "".join(f"{line}\n" for line in lines) + "*End Instance\n**\n"


def test_instances_are_moved_then_turned() -> None:
    """The rotation is about an axis through two points, which the translation does not move."""
    turned = instance("b", "100., 0., 0.", "100., 0., 0., 100., 0., 1., 90.")
    text = f"*Heading\n** made by hand\n{PART}*Assembly, name=Assembly\n{instance('a')}{turned}*End Assembly\n"
    model = inspect(text)
    assert model.volume_mm3 == pytest.approx(12000)
    assert model.bodies == 2
    assert model.size_mm == pytest.approx((100, 20, 30))
    moved = inspect(f"{PART}*Assembly, name=A\n{instance('a', '5., , 7.')}*End Assembly\n")
    assert np.array(moved.bounds_mm) == pytest.approx(np.array([[5, 0, 7], [15, 20, 37]]))


def test_parts_without_an_assembly_are_placed_once() -> None:
    other = PART.replace("Brick", "Other").replace("*Node\n", "*System\n50., 0., 0.\n*Node\n")
    model = inspect(PART + other)
    assert model.bodies == 2
    assert model.size_mm == pytest.approx((60, 20, 30))


def test_nodes_may_be_in_several_lists() -> None:
    lines = NODES.splitlines(keepends=True)
    text = f"*NODE,NSET=all\n{''.join(lines[:5])}** comment\n*node\n{''.join(lines[5:])}{CELLS}"
    assert inspect(text).volume_mm3 == pytest.approx(6000)


def test_an_element_may_take_several_lines_and_numbers_may_be_missing() -> None:
    nodes = NODES.replace("1, 0.0, 0.0, 0.0", "1,,,").replace("2, 10.0, 0.0, 0.0", "2, 1.0D+01")
    cells = "*ELEMENT, ELSET=all,\n TYPE=C3D8\n1, 1, 2, 3, 4,\n5, 6, 7, 8\n"
    assert inspect(f"*NODE\n{nodes}{cells}").volume_mm3 == pytest.approx(6000)


def test_nodes_may_have_cylindrical_coordinates() -> None:
    """Abaqus states angles in degrees."""
    nodes = "".join(f"{k}, 10., {90 * (k - 1)}., {z}.\n" for k, z in ((1, 0), (2, 0), (3, 0), (4, 0)))
    text = f"*NODE, SYSTEM=C\n{nodes}5, 0., 0., 30.\n*ELEMENT, TYPE=C3D5\n1, 1, 2, 3, 4, 5\n"
    assert inspect(text).volume_mm3 == pytest.approx(200 * 30 / 3)


@pytest.mark.parametrize("kind", ["S4R", "S4R5", "M3D4", "R3D4", "CPS4", "CPE4I", "CAX4P", "DS4", "SFM3D4R"])
def test_shells_and_plane_elements(kind: str) -> None:
    assert inspect(f"*NODE\n{NODES}*ELEMENT, TYPE={kind}\n1, 1, 2, 3, 4\n").faces == 2


def test_files_are_included() -> None:
    text = f"*INCLUDE, INPUT=nodes.inp\n{CELLS}"
    assert inspect(text, nodes=f"*NODE\n{NODES}").volume_mm3 == pytest.approx(6000)
    assert inspect(f"*NODE, INPUT=nodes.inp\n{CELLS}", nodes=NODES).size_mm == pytest.approx(tuple(SIZE))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"*INCLUDE, INPUT=nodes.inp\n{CELLS}", "includes 'nodes.inp', which is missing"),
        (f"*NODE\n{NODES}*NGEN\n1, 8\n{CELLS}", r"generates its mesh with \*NGEN"),
        (f"*NODE\n{NODES[:20]}\n{CELLS}", "refers to a node that its part does not have"),
        (f"*NODE\n{NODES}*ELEMENT, TYPE=C3D8\n1, 1, 2, 3\n", "elements of type C3D8 have 8 nodes"),
        (f"*NODE\n{NODES}*ELEMENT, TYPE=C3D8\n1, 1, two\n", "not a number"),
        (f"{PART}*Assembly\n*Instance, name=a, part=None\n*End Instance\n", "refers to the part 'NONE'"),
        (f"{PART}*Assembly\n*Instance, instance=a\n*End Instance\n", "names no part"),
    ],
)
def test_the_error_of_an_unreadable_file_says_why(text: str, message: str) -> None:
    with pytest.raises(MeshhubError, match=message):
        inspect(text)


def test_a_file_that_includes_itself_is_rejected() -> None:
    with pytest.raises(MeshhubError, match="includes more than"):
        inspect("*INCLUDE, INPUT=b.inp\n", b="*INCLUDE, INPUT=b.inp\n")
