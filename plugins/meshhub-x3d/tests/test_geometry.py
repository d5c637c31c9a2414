"""Geometry nodes: sizes, volumes, colors of faces, in XML; the other encodings have the same nodes."""

from __future__ import annotations

import numpy as np
import pytest
from x3d_files import POINTS, faces, shape, x3d

from meshhub import Registry, Scene, Source
from meshhub.toolkit.geometry import area, bounds, signed_volume, soup

REGISTRY = Registry()

SQUARE = '<Coordinate point="0 0 0 4 0 0 4 4 0 0 4 0"/>'


def read(geometry: str, appearance: str = "") -> Scene:
    return REGISTRY.read(Source.from_bytes(x3d(shape(geometry, appearance)), "a.x3d"))


def codes(geometry: str) -> list[str]:
    return [note.code for note in REGISTRY.inspect(Source.from_bytes(x3d(shape(geometry)), "a.x3d")).notes]


def volume(scene: Scene) -> float:
    return signed_volume(*soup(scene))


def is_closed(scene: Scene) -> bool:
    vertices, triangles = soup(scene)
    _, points = np.unique(vertices.round(9), axis=0, return_inverse=True)
    corners = points.ravel()[triangles]
    edges = np.sort(np.stack([corners, np.roll(corners, 1, axis=1)], axis=-1).reshape(-1, 2), axis=1)
    return bool((np.unique(edges, axis=0, return_counts=True)[1] == 2).all())


def colors_by_face(scene: Scene) -> list[tuple[int, ...]]:
    """Return the color of each triangle whose corners have the same one."""
    mesh = scene.meshes[0]
    assert mesh.colors is not None
    corners = mesh.colors[mesh.faces]
    assert (corners == corners[:, :1]).all()
    return [tuple(row) for row in corners[:, 0, :3].tolist()]


@pytest.mark.parametrize(
    ("geometry", "expected", "size"),
    [
        ('<Box size="10 20 30"/>', 6000, (10, 30, 20)),
        ("<Box/>", 8, (2, 2, 2)),
        ('<Sphere radius="3"/>', 36 * np.pi, (6, 6, 6)),
        ('<Cylinder radius="3" height="5"/>', 45 * np.pi, (6, 6, 5)),
        ('<Cone bottomRadius="3" height="5"/>', 15 * np.pi, (6, 6, 5)),
        ("<Extrusion/>", 4, (2, 2, 1)),
        ('<Extrusion crossSection="1 1 -1 1 -1 -1 1 -1 1 1" spine="0 0 0 5 0 0"/>', 20, (5, 2, 2)),
        ('<Extrusion scale="1 1 0 0" spine="0 0 0 0 3 0"/>', 4, (2, 2, 3)),
        ('<Extrusion spine="0 0 0 0 3 0 0 6 0" orientation="0 1 0 0.7853981633974483"/>', 24, (8**0.5, 8**0.5, 6)),
        ('<Extrusion spine="0 0 0 0 5 0 5 5 0"/>', 20 + 200**0.5, (6, 2, 6)),
        ('<Extrusion crossSection="0 0 3 0 3 -1 1 -1 1 -3 0 -3 0 0" spine="0 0 0 0 2 0"/>', 10, (3, 3, 2)),
        (
            '<Extrusion crossSection="1 0 0 -1 -1 0 0 1 1 0" spine="10 0 0 0 0 -10 -10 0 0 0 0 10 10 0 0"/>',
            80,
            (22, 22, 2),
        ),
    ],
)
def test_solids_are_closed_and_outward(geometry: str, expected: float, size: tuple[float, ...]) -> None:
    scene = read(geometry)
    low, high = bounds(scene)
    assert high - low == pytest.approx(size, rel=2e-3)
    assert volume(scene) == pytest.approx(expected, rel=2e-3)
    assert is_closed(scene)


@pytest.mark.parametrize(
    ("geometry", "expected"),
    [
        ('<Cylinder top="false"/>', 5 * np.pi),
        ('<Cylinder top="false" bottom="FALSE"/>', 4 * np.pi),
        ('<Cylinder side="false"/>', 2 * np.pi),
        ('<Cone bottom="false"/>', 5**0.5 * np.pi),
        ('<Cone side="false"/>', np.pi),
        ('<Extrusion beginCap="false"/>', 12),
        ('<Extrusion crossSection="0 0 1 0" spine="0 0 0 0 2 0"/>', 2),
        ('<Rectangle2D size="3 2"/>', 6),
        ("<Disk2D/>", np.pi),
        ('<Disk2D innerRadius="0.5"/>', 0.75 * np.pi),
        ('<TriangleSet2D vertices="0 0 2 0 0 2"/>', 2),
        (f'<IndexedFaceSet coordIndex="0 1 2 3">{SQUARE}</IndexedFaceSet>', 16),
        (f"<TriangleSet>{SQUARE.replace('4 4 0 0 4 0', '4 4 0')}</TriangleSet>", 8),
        (f'<IndexedTriangleSet index="0 1 2 0 2 3">{SQUARE}</IndexedTriangleSet>', 16),
        (f"<QuadSet>{SQUARE}</QuadSet>", 16),
        (f'<IndexedQuadSet index="0 1 2 3">{SQUARE}</IndexedQuadSet>', 16),
        (f'<TriangleFanSet fanCount="4">{SQUARE}</TriangleFanSet>', 16),
        (f'<IndexedTriangleFanSet index="0 1 2 3 -1">{SQUARE}</IndexedTriangleFanSet>', 16),
        (f'<IndexedTriangleStripSet index="0 1 3 2 -1">{SQUARE}</IndexedTriangleStripSet>', 16),
        (f'<IndexedTriangleStripSet index="0 1 3 3 -1 1 2 3 -1 0 1">{SQUARE}</IndexedTriangleStripSet>', 16),
        (f'<TriangleStripSet stripCount="3">{SQUARE}</TriangleStripSet>', 8),
        ('<ElevationGrid xDimension="3" zDimension="2" xSpacing="2" zSpacing="3" height="1 1 1 1 1 1"/>', 12),
    ],
)
def test_surfaces_have_their_area(geometry: str, expected: float) -> None:
    assert area(*soup(read(geometry))) == pytest.approx(expected, rel=2e-3)


def test_triangles_of_strips_and_fans_face_the_same_way() -> None:
    for kind in ("IndexedTriangleStripSet", "IndexedTriangleFanSet"):
        order = "0 1 3 2" if "Strip" in kind else "0 1 2 3"
        vertices, triangles = soup(read(f'<{kind} index="{order} -1">{SQUARE}</{kind}>'))
        normals = np.cross(*(vertices[triangles[:, corner]] - vertices[triangles[:, 0]] for corner in (1, 2)))
        # Z of the file is -Y of the scene
        assert (normals[:, 1] < 0).all()


def test_a_height_field_faces_up_and_has_a_color_for_each_cell() -> None:
    colors = '<Color color="1 0 0 0 1 0 0 0 1 1 1 1"/>'
    grid = f'<ElevationGrid xDimension="3" zDimension="3" height="{"0 " * 9}" colorPerVertex="false">{colors}'
    scene = read(grid + "</ElevationGrid>")
    vertices, triangles = soup(scene)
    normals = np.cross(*(vertices[triangles[:, corner]] - vertices[triangles[:, 0]] for corner in (1, 2)))
    assert (normals[:, 2] > 0).all()
    centers = vertices[triangles].mean(axis=1)
    expected = {(0, 0): (255, 0, 0), (1, 0): (0, 255, 0), (0, 1): (0, 0, 255), (1, 1): (255, 255, 255)}
    cells = np.floor(centers[:, :2] * [1, -1]).astype(int).tolist()
    assert [expected[column, row] for column, row in cells] == colors_by_face(scene)


RED, GREEN, BLUE = (255, 0, 0), (0, 255, 0), (0, 0, 255)


@pytest.mark.parametrize(
    ("attributes", "colors", "expected"),
    [
        ('colorPerVertex="false"', "1 0 0 0 1 0 0 0 1 1 0 0 0 1 0 0 0 1", [RED, GREEN, BLUE, RED, GREEN, BLUE]),
        ('colorPerVertex="false" colorIndex="1 1 0 0 2 2"', "1 0 0 0 1 0 0 0 1", [GREEN, GREEN, RED, RED, BLUE, BLUE]),
        (
            f'colorIndex="{"0 0 0 0 -1 " * 5} 2 2 2 2"',
            "1 0 0 0 1 0 0 0 1",
            [RED] * 5 + [BLUE],
        ),
        ("", "0 0 1 " * 8, [BLUE] * 6),
    ],
)
def test_colors_of_faces(attributes: str, colors: str, expected: list[tuple[int, ...]]) -> None:
    appearance = '<Appearance><Material diffuseColor="0.5 0.5 0.5"/></Appearance>'
    scene = read(faces(attributes, f'<Color color="{colors}"/>'), appearance)
    assert colors_by_face(scene) == [color for color in expected for _ in range(2)]
    # they replace the color of the material
    assert scene.materials[0].base_color == (1, 1, 1, 1)
    assert volume(scene) == pytest.approx(6000)


def test_colors_that_do_not_fit_are_left_out_with_a_note() -> None:
    few = faces("", '<Color color="1 0 0"/>')
    assert read(few).meshes[0].colors is None
    assert "bad_attribute" in codes(few)


def test_concave_and_clockwise_polygons() -> None:
    horseshoe = "0 0 0 4 0 0 4 4 0 3 4 0 3 1 0 1 1 0 1 4 0 0 4 0"
    concave = read(
        f'<IndexedFaceSet convex="false" coordIndex="0 1 2 3 4 5 6 7 -1"><Coordinate point="{horseshoe}"/>'
        "</IndexedFaceSet>"
    )
    assert area(*soup(concave)) == pytest.approx(10)
    flipped = " ".join(" ".join(reversed(side.split())) + " -1" for side in FLIPPED)
    assert volume(read(faces('ccw="false"', sides=flipped))) == pytest.approx(6000)


FLIPPED = ("3 2 1 0", "4 5 6 7", "0 1 5 4", "1 2 6 5", "2 3 7 6", "3 0 4 7")


def test_texture_coordinates_of_a_textured_surface_follow_from_its_box() -> None:
    pixels = "<PixelTexture image='1 2 3 0xFF0000 0x0000FF'/>"
    scene = read(
        f'<IndexedFaceSet coordIndex="0 1 2 3">{SQUARE}</IndexedFaceSet>', f"<Appearance>{pixels}</Appearance>"
    )
    assert scene.meshes[0].uv is not None
    assert np.ptp(scene.meshes[0].uv, axis=0).tolist() == [1, 1]
    moved = f'<Appearance>{pixels}<TextureTransform scale="2 3" translation="1 0"/></Appearance>'
    uv = read(f'<IndexedFaceSet coordIndex="0 1 2 3">{SQUARE}</IndexedFaceSet>', moved).meshes[0].uv
    assert uv is not None and np.ptp(uv, axis=0).tolist() == [2, 3]
    assert read(faces()).meshes[0].uv is None


def test_shapes_without_a_size_are_skipped_with_a_note() -> None:
    assert "shape_without_size" in codes('<Sphere radius="-1"/></Shape><Shape>' + faces())
    assert "geometry_skipped" in codes('<Text string="a"/></Shape><Shape>' + faces())


def test_points_are_those_of_the_file() -> None:
    low, high = bounds(read(faces()))
    assert high - low == pytest.approx([10, 20, 30])
    assert len(POINTS.split(",")) == 8
