"""Make the example models of the page and their pictures: `python docs/make_page_examples.py`. It needs Pillow."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from manifold3d import CrossSection
from manifold3d import Manifold as Solid
from PIL import Image as Pillow
from PIL import ImageDraw

from meshhub import Registry, Scene
from meshhub.model.scene import Image, Material, Mesh, Part
from meshhub.toolkit.geometry import moved

HERE = Path(__file__).parent
FOLDER = HERE.parent / "web" / "src" / "examples"

SIDES = 40
"""Sides of round bodies."""

TEXTURE_PIXELS = 512
"""Pixels of a side of the texture."""

THUMBNAIL_SIZE = (192, 144)
"""Pixels of the picture of an example, for screens with two pixels per point."""

QUALITY = 60
"""Quality of the pictures, which a phone loads with the page."""

WORDS_PIXELS = 22
"""Height of a line of words in a picture."""

RABBIT_BALLS = (
    ((0.0, 0.0, 16.0), (15.0, 19.0, 16.0)),
    ((0.0, -11.0, 12.0), (9.0, 7.0, 12.0)),
    ((0.0, -13.0, 36.0), (10.5, 12.0, 10.5)),
    ((0.0, -23.0, 33.5), (5.0, 4.5, 4.5)),
    ((-6.0, -8.5, 51.0), (4.0, 4.2, 13.5)),
    ((6.0, -8.5, 51.0), (4.0, 4.2, 13.5)),
    ((0.0, 20.0, 12.0), (6.0, 5.5, 6.0)),
    ((-11.0, 4.0, 9.0), (7.0, 12.0, 9.0)),
    ((11.0, 4.0, 9.0), (7.0, 12.0, 9.0)),
    ((-7.0, -18.0, 5.0), (5.5, 9.0, 5.0)),
    ((7.0, -18.0, 5.0), (5.5, 9.0, 5.0)),
)
"""Center and half axes in millimeters of the ellipsoids of a rabbit, which looks along -Y."""

RABBIT_BLEND_MM = 2.0
"""Radius by which the ellipsoids flow into each other."""

RABBIT_EDGE_MM = 2.0
"""Length of the edges of the rabbit before its triangles are reduced."""

RABBIT_TOLERANCE_MM = 0.3
"""Millimeters by which fewer triangles may change the rabbit; leaves about 2,500."""

RABBIT_STEPS_PER_MM = 32
"""Positions per millimeter to which its vertices are rounded; a power of two."""

RABBIT_GAPS = (
    ((14.5, -3.0, 22.0), 6.5),
    ((9.0, -17.0, 40.5), 4.5),
    ((8.0, -12.0, 56.0), 4.5),
    ((9.0, 16.0, 22.0), 5.5),
    ((-15.0, 2.0, 20.0), 6.0),
    ((0.0, -22.0, 18.0), 4.5),
)
"""Center and radius in millimeters of the balls whose surface the scan lacks."""

STEEL, BRASS, BLUE = (
    Material(base_color=(*rgb, 1.0)) for rgb in ((0.55, 0.58, 0.62), (0.85, 0.65, 0.25), (0.2, 0.45, 0.8))
)


def make_figure() -> Scene:
    """Return a penguin of 60 mm: one surface turned about Z, with a texture."""
    profile = [(0.0, 0.0), (17.0, 0.0), (20.0, 8.0), (21.0, 20.0), (18.0, 31.0), (13.5, 37.0), (14.5, 44.0),
               (13.0, 52.0), (8.0, 58.0), (0.0, 60.0)]  # fmt: skip
    heights = np.linspace(0, len(profile) - 1, 61)
    radius, z = (np.interp(heights, np.arange(len(profile)), column) for column in np.transpose(profile))
    kernel = np.array([0.25, 0.5, 0.25])
    for _ in range(6):
        radius[1:-1] = np.convolve(radius, kernel, "valid")
    u = np.linspace(0, 1, SIDES + 1)
    angles = 2 * np.pi * u
    points = np.stack(
        [
            (radius[:, None] * np.cos(angles)).ravel(),
            (0.85 * radius[:, None] * np.sin(angles)).ravel(),
            np.repeat(z, SIDES + 1),
        ],
        axis=1,
    )
    # the seam is closed exactly
    grid = points.reshape(len(z), SIDES + 1, 3)
    grid[:, -1] = grid[:, 0]
    uv = np.stack([np.tile(u, len(z)), np.repeat(z / 60, SIDES + 1)], axis=1).astype(np.float32)
    row, column = (index.ravel() for index in np.meshgrid(np.arange(len(z) - 1), np.arange(SIDES), indexing="ij"))
    a = row * (SIDES + 1) + column
    b, c, d = a + 1, a + SIDES + 2, a + SIDES + 1
    faces = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)]).astype(np.int32)
    corners = points[faces]
    has_area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1) > 1e-9
    mesh = Mesh(points, faces[has_area], uv=uv, face_material=np.zeros(int(has_area.sum()), np.int32))
    material = Material(name="feathers", base_color_image=0, roughness=0.7)
    return Scene((mesh,), (Part(0, name="penguin"),), (material,), (Image(draw_feathers(), "image/png"),))


def draw_feathers() -> bytes:
    """Return the texture: a dark back, a white belly and face, eyes, a beak and feet. The front is at u = 0.75."""
    size = TEXTURE_PIXELS
    picture = Pillow.new("RGB", (size, size), (38, 44, 60))
    pen = ImageDraw.Draw(picture)

    def oval(u: float, height_mm: float, width: float, length_mm: float, color: tuple[int, int, int]) -> None:
        x, y = u * size, (1 - height_mm / 60) * size
        pen.ellipse((x - width * size, y - length_mm / 60 * size, x + width * size, y + length_mm / 60 * size), color)

    oval(0.75, 18, 0.16, 17, (247, 245, 238))
    for u in (0.69, 0.81):
        oval(u, 47, 0.075, 6.5, (247, 245, 238))
        oval(u + (0.75 - u) / 3, 48, 0.022, 2, (20, 22, 30))
    oval(0.75, 42.5, 0.05, 2.6, (240, 150, 40))
    for u in (0.65, 0.85):
        oval(u, 1, 0.07, 3.5, (240, 150, 40))
    content = io.BytesIO()
    picture.quantize(32).save(content, "PNG", optimize=True)
    return content.getvalue()


def measure_rabbit(x: float, y: float, z: float) -> float:
    """Return about how many millimeters a point lies inside the rabbit."""
    depths = []
    for center, axes in RABBIT_BALLS:
        scaled = [(value - middle) / axis for value, middle, axis in zip((x, y, z), center, axes, strict=True)]
        depths.append((1 - float(np.hypot(np.hypot(*scaled[:2]), scaled[2]))) * min(axes))
    return RABBIT_BLEND_MM * float(np.logaddexp.reduce(np.array(depths) / RABBIT_BLEND_MM))


def make_rabbit() -> Scene:
    """Return a rabbit of 65 mm as a scanner sees it: without the surface that it did not reach."""
    solid = Solid.level_set(measure_rabbit, (-22, -34, 0.3, 22, 32, 70), RABBIT_EDGE_MM)
    mesh = mesh_of(solid.simplify(RABBIT_TOLERANCE_MM), 0)
    centers = mesh.vertices[mesh.faces].mean(axis=1)
    is_missing = np.zeros(len(mesh.faces), bool)
    for center, radius in RABBIT_GAPS:
        is_missing |= np.linalg.norm(centers - center, axis=1) < radius
    # round numbers are half as long after compression
    vertices = np.round(mesh.vertices * RABBIT_STEPS_PER_MM) / RABBIT_STEPS_PER_MM
    return Scene((Mesh(vertices, mesh.faces[~is_missing]),), (Part(0, name="rabbit"),))


def mesh_of(solid: Solid, material: int) -> Mesh:
    """Return a solid of one material as a mesh."""
    native = solid.to_mesh64()
    faces = np.asarray(native.tri_verts).astype(np.int32)
    return Mesh(np.asarray(native.vert_properties)[:, :3], faces, face_material=np.full(len(faces), material, np.int32))


def make_assembly() -> Scene:
    """Return a plate with four bolts, which share one mesh, and a bearing."""
    plate = Solid.extrude(CrossSection.square((80, 60), center=True), 8) - Solid.cylinder(
        30, 14, center=True, circular_segments=48
    )
    places = [(x, y) for x in (-30, 30) for y in (-20, 20)]
    for x, y in places:
        plate -= Solid.cylinder(30, 3.2, center=True, circular_segments=24).translate((x, y, 0))
    bolt = Solid.cylinder(12, 3, circular_segments=24).translate((0, 0, -4)) + Solid.cylinder(
        5, 5.5, circular_segments=6
    ).translate((0, 0, 8))
    ring = (
        Solid.cylinder(10, 13.8, circular_segments=48) - Solid.cylinder(30, 8, center=True, circular_segments=48)
    ).translate((0, 0, 2))
    shifts = []
    for x, y in places:
        shift = np.eye(4)
        shift[:3, 3] = x, y, 0
        shifts.append(shift)
    parts = (
        Part(0, name="Plate"),
        *(Part(1, shift, name=f"Bolt {number}") for number, shift in enumerate(shifts, start=1)),
        Part(2, name="Bearing"),
    )
    meshes = (mesh_of(plate, 0), mesh_of(bolt, 1), mesh_of(ring, 2))
    lift = np.eye(4)
    lift[2, 3] = 4
    return moved(Scene(meshes, parts, (BLUE, STEEL, BRASS)), lift)


def save_picture(registry: Registry, model: Path, name: str, size: tuple[int, int], **options: object) -> None:
    """Draw a model on a transparent background, twice as large, and save it reduced."""
    path = FOLDER / f"{name}.png"
    double = f"{2 * size[0]}x{2 * size[1]}"
    registry.render(model, path, options={"size": double, "background": "transparent", **options})
    with Pillow.open(path) as picture:
        # without the words of a comparison and the legend, which are English
        words = 2 * WORDS_PIXELS if "repair" in options else 0
        cut = picture.crop((0, words, picture.width, picture.height - 2 * words))
        reduced = cut.resize((cut.width // 2, cut.height // 2), Pillow.Resampling.LANCZOS)
    reduced.save(path.with_suffix(".webp"), quality=QUALITY, method=6)
    path.unlink()


def main() -> None:
    """Write the models and the pictures."""
    FOLDER.mkdir(exist_ok=True)
    with Registry(entry_points=False) as registry:
        registry.write(make_rabbit(), FOLDER / "rabbit.ply")
        registry.write(make_figure(), FOLDER / "penguin.glb")
        registry.write(make_assembly(), FOLDER / "assembly.3mf")
        save_picture(registry, FOLDER / "rabbit.ply", "welcome", (420, 340), color_by="defects", repair=True)
        for name in ("rabbit.ply", "penguin.glb", "assembly.3mf"):
            view = "front" if name == "penguin.glb" else "iso"
            save_picture(registry, FOLDER / name, Path(name).stem, THUMBNAIL_SIZE, view=view)


if __name__ == "__main__":
    main()
