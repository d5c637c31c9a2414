"""Products, storeys, openings and styles of building models."""

from __future__ import annotations

import pytest
from houses import BRICK, TWICE, WITH_OPENING, contain, house, product

from meshhub import MeshhubError, Registry, Source
from meshhub.toolkit.geometry import bounds, signed_volume, soup

REGISTRY = Registry()


def test_products_have_storeys_styles_and_names() -> None:
    scene = REGISTRY.read(BRICK)
    assert [(part.name, part.path) for part in scene.parts] == [("brick", ("Project", "Ground floor"))]
    (material,) = scene.materials
    assert (material.name, material.base_color) == ("red", (1, 0, 0, 0.75))
    twice = REGISTRY.read(TWICE)
    assert [(part.mesh, part.name) for part in twice.parts] == [(0, "one"), (0, "Wall")]
    assert bounds(twice)[1] == pytest.approx([110, 20, 30])


def test_openings_are_cut_out_and_spaces_are_left_out() -> None:
    scene = REGISTRY.read(WITH_OPENING)
    assert [part.name for part in scene.parts] == ["wall"]
    assert signed_volume(*soup(scene)) == pytest.approx(1000 * 100 * 500 - 200 * 100 * 200)


def test_colors_of_single_triangles_are_named() -> None:
    corners = "((0.,0.,0.),(10.,0.,0.),(0.,20.,0.),(0.,0.,30.))"
    triangles = "((1,3,2),(1,2,4),(2,3,4),(3,1,4))"
    wedge = f"""#20=IFCCARTESIANPOINTLIST3D({corners});
#21=IFCTRIANGULATEDFACESET(#20,$,.T.,{triangles},$);
#22=IFCCOLOURRGBLIST(((1.,0.,0.),(0.,1.,0.)));
#23=IFCINDEXEDCOLOURMAP(#21,$,#22,(1,1,2,2));
#24=IFCSHAPEREPRESENTATION(#3,'Body','Tessellation',(#21));
#25=IFCPRODUCTDEFINITIONSHAPE($,$,(#24));
"""
    proxy = product(30, "IFCBUILDINGELEMENTPROXY", "'wedge'", 25, ",$,.NOTDEFINED.")
    inspection = REGISTRY.inspect(house(wedge, proxy, contain(31, 30)))
    assert inspection.model.volume_mm3 == pytest.approx(1000)
    assert "colors_dropped" in [note.code for note in inspection.notes]
    assert "colors_dropped" not in [note.code for note in REGISTRY.inspect(BRICK).notes]


@pytest.mark.parametrize(
    ("source", "code", "message"),
    [
        (house(), "empty_model", "no products"),
        (Source.from_bytes(BRICK.read()[:300], "a.ifc"), "empty_model", "no products"),
        (Source.from_bytes(BRICK.read().replace(b"IFC4'", b"IFC9'"), "a.ifc"), "unreadable_file", "cannot read"),
        (Source.from_bytes(BRICK.read(), "a.stp"), "unreadable_file", "meshhub-ifc"),
    ],
)
def test_the_error_of_a_bad_file_says_why(source: Source, code: str, message: str) -> None:
    with pytest.raises(MeshhubError, match=message) as caught:
        REGISTRY.read(source)
    assert caught.value.error_code == code
