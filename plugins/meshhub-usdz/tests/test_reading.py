"""USD files in the layouts of other programs, and damaged files."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from usda_files import usda

from meshhub import MeshhubError, Registry, Scene, Source, Target
from meshhub.testing import sample_scenes
from meshhub.toolkit.geometry import bounds, signed_volume, soup

BOUND = "rel material:binding = </root/red>"
API = '(prepend apiSchemas = ["MaterialBindingAPI"])'
RED = """def Material "red" {{
    token outputs:surface.connect = </root/red/surface.outputs:surface>
    def Shader "surface" {{
        uniform token info:id = "UsdPreviewSurface"
        {diffuse}
        float inputs:opacity = {opacity}
        token outputs:surface
    }}
    {more}
}}"""
TEXTURE = """def Shader "map" {
        uniform token info:id = "UsdUVTexture"
        asset inputs:file = @textures/paint.png@
        float2 inputs:st.connect = </root/red/reader.outputs:result>
        float3 outputs:rgb
    }
    def Shader "reader" {
        uniform token info:id = "UsdPrimvarReader_float2"
        string inputs:varname = "UVMap"
        float2 outputs:result
    }"""

TRIANGLE = """def Mesh "kit"
    {
        int[] faceVertexCounts = [3]
        int[] faceVertexIndices = [0, 1, 2]
        point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 1, 0)]
    }"""
VARIANT = """def "x" (
    variants = {
        string v = "a"
    }
    prepend variantSets = "v"
)
{
    variantSet "v" = {
        "a" (
            references = @/etc/hosts@
        ) {
        }
    }
}"""
HIDDEN = """def NurbsPatch "ball"
    {
    }
    def Xform "x"
    {
        token visibility = "invisible"
        def Mesh "m"
        {
        }
    }"""
DEEP = "#usda 1.0\n" + 'def Xform "a"\n{\n' * 200 + "}\n" * 200

REGISTRY = Registry()


def package(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def red(diffuse: str = "color3f inputs:diffuseColor = (1, 0, 0)", opacity: float = 1, more: str = "") -> str:
    return RED.format(diffuse=diffuse, opacity=opacity, more=more)


def read(data: bytes, name: str = "a.usdz") -> Scene:
    return REGISTRY.read(Source.from_bytes(data, name), input_format="usdz")


def codes(data: bytes) -> list[str]:
    return [note.code for note in REGISTRY.inspect(Source.from_bytes(data, "a.usda")).notes]


def volume(scene: Scene) -> float:
    return signed_volume(*soup(scene))


@pytest.mark.parametrize(
    ("unit", "up", "expected"),
    [
        ("0.0254", "Z", [[0, 0, 0], [254, 508, 762]]),
        ("0.002", "Z", [[0, 0, 0], [20, 40, 60]]),
        ("0.01", "Y", [[0, -300, 0], [100, 0, 200]]),
    ],
)
def test_units_and_axes(unit: str, up: str, expected: list[list[float]]) -> None:
    scene = read(usda(unit=unit, up=up))
    assert bounds(scene) == pytest.approx(np.array(expected))
    assert volume(scene) > 0


def test_left_handed_faces_and_holes() -> None:
    assert volume(read(usda(inside='uniform token orientation = "leftHanded"'))) == pytest.approx(-6000)
    assert read(usda(inside="int[] holeIndices = [0, 5]")).face_count == 8


def test_every_interpolation_of_colors() -> None:
    red_rgb, blue = "(1, 0, 0)", "(0, 0, 1)"
    for interpolation, values in (
        ("constant", [blue]),
        ("uniform", [red_rgb] * 5 + [blue]),
        ("vertex", [red_rgb] * 7 + [blue]),
        ("faceVarying", [red_rgb] * 23 + [blue]),
    ):
        inside = (
            f'color3f[] primvars:displayColor = [{", ".join(values)}] (interpolation = "{interpolation}")\n'
            'float[] primvars:displayOpacity = [0.2] (interpolation = "constant")'
        )
        mesh = read(usda(inside=inside)).meshes[0]
        assert mesh.colors is not None
        seen = mesh.colors[mesh.faces]
        assert {tuple(color) for color in seen.reshape(-1, 4).tolist()} <= {(255, 0, 0, 51), (0, 0, 255, 51)}
        blue_faces = (seen[..., 2] == 255).all(axis=1).sum()
        assert blue_faces == {"constant": 12, "uniform": 2, "vertex": 0, "faceVarying": 0}[interpolation]
        assert (seen[..., 2] == 255).any()


def test_materials_of_meshes_and_subsets() -> None:
    scene = read(usda(inside=BOUND, after=red(opacity=0.5), api=API))
    (index,) = scene.used_materials()
    assert scene.materials[index].name == "red"
    assert scene.materials[index].base_color == pytest.approx((1, 0, 0, 0.5))
    subset = f"""def GeomSubset "top" {API}
        {{
            uniform token familyName = "materialBind"
            int[] indices = [1]
            {BOUND}
        }}"""
    scene = read(usda(inside=subset, after=red()))
    assert scene.meshes[0].face_material is not None
    assert sorted(scene.meshes[0].face_material.tolist()) == [-1] * 10 + [0, 0]


def test_colors_are_linear_light() -> None:
    after = red("color3f inputs:diffuseColor = (0.2158605, 0.2158605, 0.2158605)")
    scene = read(usda(inside=BOUND, after=after, api=API))
    assert scene.materials[0].base_color[:3] == pytest.approx([128 / 255] * 3, abs=1e-3)


def test_textures_come_from_the_package_or_beside_a_layer(tmp_path: Path) -> None:
    uv = f'texCoord2f[] primvars:UVMap = [{", ".join(["(0.25, 0.75)"] * 24)}] (interpolation = "faceVarying")'
    diffuse = "color3f inputs:diffuseColor.connect = </root/red/map.outputs:rgb>"
    layer = usda(inside=f"{BOUND}\n{uv}", after=red(diffuse, more=TEXTURE), api=API)
    picture = sample_scenes.png()
    packed = read(package({"model.usda": layer, "textures/paint.png": picture}))
    assert [image.data for image in packed.images] == [picture]
    assert packed.meshes[0].uv is not None and np.allclose(packed.meshes[0].uv, [0.25, 0.75])
    (tmp_path / "textures").mkdir()
    (tmp_path / "textures" / "paint.png").write_bytes(picture)
    (tmp_path / "a.usda").write_bytes(layer)
    assert [image.data for image in REGISTRY.read(tmp_path / "a.usda").images] == [picture]
    assert "texture_missing" in codes(layer)


def test_a_texture_outside_of_the_package_is_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret.png"
    secret.write_bytes(sample_scenes.png())
    diffuse = "color3f inputs:diffuseColor.connect = </root/red/map.outputs:rgb>"
    more = TEXTURE.replace("textures/paint.png", str(secret))
    layer = usda(inside=BOUND, after=red(diffuse, more=more), api=API)
    assert read(package({"model.usda": layer})).images == ()


def test_instances_and_point_instancers_share_a_mesh() -> None:
    before = f'class "kit"\n{{\n{TRIANGLE.replace("kit", "m")}\n}}\n'
    one = """def Xform "{}" (
        instanceable = true
        prepend references = </kit>
    )
    {{
        double3 xformOp:translate = ({}, 0, 0)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }}
    """
    scene = read(usda(before=before, after=one.format("first", 100) + one.format("second", 200)))
    assert [(part.name, part.mesh) for part in scene.parts] == [("brick", 0), ("first", 1), ("second", 1)]
    assert bounds(scene)[1].tolist() == [201, 20, 30]
    instancer = f"""def PointInstancer "crowd"
    {{
        int[] protoIndices = [0, 0, 0]
        point3f[] positions = [(100, 0, 0), (200, 0, 0), (300, 0, 0)]
        rel prototypes = </root/crowd/kit>
        {TRIANGLE}
    }}"""
    scene = read(usda(after=instancer))
    assert [part.mesh for part in scene.parts] == [0, 1, 1, 1]
    assert bounds(scene)[1].tolist() == [301, 20, 30]


def test_hidden_prims_and_other_shapes_are_skipped() -> None:
    data = usda(after=HIDDEN)
    assert len(read(data).parts) == 1
    assert {"shape_skipped", "hidden_ignored"} <= set(codes(data))


SHAPES = [
    ("Cube", "double size = 3", 27.0, (3, 3, 3)),
    ("Cube", "", 8.0, (2, 2, 2)),
    ("Sphere", "double radius = 3", 4 / 3 * np.pi * 27, (6, 6, 6)),
    ("Cylinder", 'double radius = 3\ndouble height = 5\nuniform token axis = "X"', np.pi * 45, (5, 6, 6)),
    ("Cylinder_1", "double radiusBottom = 3\ndouble radiusTop = 1\ndouble height = 3", np.pi * 13, (6, 6, 3)),
    ("Cone", 'double radius = 3\ndouble height = 5\nuniform token axis = "Y"', np.pi * 15, (6, 5, 6)),
    ("Capsule", "double radius = 2\ndouble height = 3", np.pi * (12 + 32 / 3), (4, 4, 7)),
    ("Plane", 'double width = 2\ndouble length = 5\nuniform token axis = "X"', None, (0, 5, 2)),
    ("Plane", 'double width = 2\ndouble length = 5\nuniform token axis = "Y"', None, (2, 0, 5)),
    (
        "TetMesh",
        "int4[] tetVertexIndices = [(0, 1, 2, 3)]\npoint3f[] points = [(0, 0, 0), (3, 0, 0), (0, 3, 0), (0, 0, 3)]",
        4.5,
        (3, 3, 3),
    ),
]


@pytest.mark.parametrize(("kind", "attributes", "volume", "size"), SHAPES)
def test_shapes_become_triangles(kind: str, attributes: str, volume: float | None, size: tuple[float, ...]) -> None:
    text = f'#usda 1.0\n(metersPerUnit = 0.001\nupAxis = "Z")\ndef {kind} "ball"\n{{\n{attributes}\n'
    data = (text + "color3f[] primvars:displayColor = [(1, 0, 0)]\n}\n").encode()
    scene = read(data)
    low, high = bounds(scene)
    assert (high - low) == pytest.approx(size, rel=2e-3)
    assert scene.meshes[0].colors is not None
    assert set(map(tuple, scene.meshes[0].colors.tolist())) == {(255, 0, 0, 255)}
    is_round = kind not in ("Cube", "Plane", "TetMesh")
    assert ("shapes_divided" in codes(data)) == is_round
    if volume is not None:
        assert signed_volume(*soup(scene)) == pytest.approx(volume, rel=5e-3 if is_round else 1e-9)
        assert REGISTRY.inspect(Source.from_bytes(data, "a.usda")).model.watertight


def test_hidden_instances_of_a_point_instancer_are_left_out() -> None:
    data = usda(
        after="""def PointInstancer "many"
    {
        int[] protoIndices = [0, 0, 0]
        point3f[] positions = [(0, 0, 0), (100, 0, 0), (200, 0, 0)]
        int64[] ids = [7, 8, 9]
        int64[] invisibleIds = [8]
        rel prototypes = </root/many/ball>
        def Cube "ball"
        {
            double3 xformOp:translate = (0, 0, 5)
            uniform token[] xformOpOrder = ["xformOp:translate"]
        }
    }"""
    )
    cubes = [part.transform[:3, 3].tolist() for part in read(data).parts if part.path[-1:] == ("many",)]
    assert cubes == [[0, 0, 5], [200, 0, 5]]


@pytest.mark.parametrize(
    ("data", "code", "message"),
    [
        (b"#usda 1.0\n(", "unreadable_file", "damaged"),
        (usda()[:400], "unreadable_file", "damaged"),
        (b"PXR-USDC" + b"\xff" * 200, "unreadable_file", "damaged"),
        (package({"a.txt": b""}), "unreadable_file", "no USD layer"),
        (usda().replace(b"[3, 2, 1", b"[8, 2, 1"), "unreadable_file", "outside 0 … 7"),
        (usda().replace(b"[3, 2, 1", b"[-1, 2, 1"), "unreadable_file", "outside 0 … 7"),
        (usda().replace(b"[4, 4,", b"[4, 2000000000,"), "unreadable_file", "add up"),
        (usda(unit="-1"), "unreadable_file", "positive"),
        (usda(after='def "x" (references = @/etc/passwd@) {}'), "external_reference", "/etc/passwd"),
        (usda(after='def "x" (payload = @../up.usda@) {}'), "external_reference", "up.usda"),
        (usda(after='def "x" (references = @http://x/a.usda@) {}'), "external_reference", "http"),
        (usda(after=VARIANT), "external_reference", "/etc/hosts"),
        (
            usda(after='def "x" (clips = {dictionary default = {asset[] assetPaths = [@/etc/x.usd@]}}) {}'),
            "external_reference",
            "clips",
        ),
        (DEEP.encode(), "unreadable_file", "deep"),
        (usda().replace(b"Mesh", b"BasisCurves"), "empty_model", "no visible triangles"),
    ],
)
def test_the_error_of_a_bad_file_says_why(data: bytes, code: str, message: str) -> None:
    with pytest.raises(MeshhubError, match=message) as caught:
        read(data)
    assert caught.value.error_code == code


def test_a_reference_to_an_ancestor_does_not_hang() -> None:
    # OpenUSD ignores a reference that leads back to its prim
    assert read(usda(after='def "x" (references = </root>)\n{\n}')).face_count == 12


def test_a_sublayer_of_the_package_is_read() -> None:
    root = b'#usda 1.0\n(subLayers = [@./parts/brick.usda@]\nmetersPerUnit = 0.001\nupAxis = "Z")\n'
    assert volume(read(package({"root.usda": root, "parts/brick.usda": usda()}))) == pytest.approx(6000)


def test_numbers_that_are_not_finite_are_rejected() -> None:
    with pytest.raises(MeshhubError):
        REGISTRY.inspect(Source.from_bytes(usda().replace(b"(10, 0, 0)", b"(nan, 0, 0)"), "a.usda"))


def test_written_packages_are_aligned_and_valid() -> None:
    target = Target()
    REGISTRY.write(sample_scenes.full(), target, target="usdz")
    with zipfile.ZipFile(io.BytesIO(target.read())) as archive:
        entries = archive.infolist()
        assert archive.testzip() is None
    assert [Path(entry.filename).suffix for entry in entries] == [".usdc", ".png"]
    for entry in entries:
        name_bytes, extra_bytes = (
            int.from_bytes(target.read()[entry.header_offset + at : entry.header_offset + at + 2], "little")
            for at in (26, 28)
        )
        assert entry.compress_type == zipfile.ZIP_STORED
        assert (entry.header_offset + 30 + name_bytes + extra_bytes) % 64 == 0


def test_the_validators_of_openusd_find_nothing(tmp_path: Path) -> None:
    from pxr import Usd, UsdGeom, UsdValidation

    path = tmp_path / "a.usdz"
    REGISTRY.write(sample_scenes.full(), path)
    stage = Usd.Stage.Open(str(path))
    assert (UsdGeom.GetStageMetersPerUnit(stage), UsdGeom.GetStageUpAxis(stage)) == (1.0, "Y")
    validators = UsdValidation.ValidationRegistry().GetOrLoadAllValidators()
    errors = UsdValidation.ValidationContext(validators).Validate(stage)
    assert [error.GetMessage() for error in errors] == []
