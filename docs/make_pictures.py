"""Draw the pictures of operations, before and after: `python docs/make_pictures.py [ID…]`.

It needs Pillow, and for the text on a model the extra `text`.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from manifold3d import CrossSection
from manifold3d import Manifold as Solid
from PIL import Image, ImageDraw

from meshhub import Registry, Scene
from meshhub.model.scene import Material, Mesh, Part
from meshhub.toolkit.geometry import bounds, moved

HERE = Path(__file__).parent
FOLDER = HERE / "images" / "operations"
EXAMPLES = HERE.parent / "examples"

PANE = (320, 240)
"""Pixels of each of the two pictures, drawn twice as large and reduced."""

COLOR_COUNT = 48
"""Colors of a picture, which keeps files below 30 kB."""

COLORS = tuple(
    Material(base_color=(*rgb, 1.0))
    for rgb in ((0.33, 0.55, 0.78), (0.93, 0.6, 0.3), (0.45, 0.7, 0.5), (0.8, 0.5, 0.6))
)
"""Colors of parts."""


def mesh_of(solid: Solid) -> Mesh:
    """Return a solid as a mesh."""
    native = solid.to_mesh64()
    return Mesh(np.asarray(native.vert_properties)[:, :3], np.asarray(native.tri_verts).astype(np.int32))


def scene_of(*solids: Solid) -> Scene:
    """Return a scene with a part of each solid."""
    return Scene(tuple(map(mesh_of, solids)), tuple(map(Part, range(len(solids)))))


def joined(scene: Scene, other: Scene) -> Scene:
    """Return a scene with the parts of both."""
    parts = (replace(part, mesh=part.mesh + len(scene.meshes)) for part in other.parts)
    return replace(scene, meshes=(*scene.meshes, *other.meshes), parts=(*scene.parts, *parts))


def bracket() -> Scene:
    """Return the bracket of the examples."""
    return Registry().read(EXAMPLES / "bracket-clean.stl")


def leaning_bracket() -> Scene:
    """Return a bracket in a pose that needs support."""
    return Registry().read(bracket(), rotate_x_deg=150, rotate_y_deg=25)


def damaged_box() -> Scene:
    """Return a box with holes."""
    mesh = mesh_of(Solid.cube((40, 30, 25)).refine(5))
    centers = mesh.vertices[mesh.faces].mean(axis=1)
    gone = (np.abs(centers - [20, 12, 25]) < [7, 6, 1]).all(axis=1)
    gone |= (np.abs(centers - [20, 0, 12]) < [9, 1, 5]).all(axis=1)
    return Scene((replace(mesh, faces=mesh.faces[~gone]),), (Part(0),))


def figure() -> Scene:
    """Return a chess pawn."""
    outline = [(0, 0), (11, 0), (11, 4), (8, 7), (4.5, 20), (7, 22), (7, 23.5), (4, 24.5), (0, 24.5)]
    return scene_of(Solid.revolve(CrossSection([outline]), 48) + Solid.sphere(7, 48).translate((0, 0, 29)))


def colored_ball() -> Scene:
    """Return a ball with a smooth gradient."""
    mesh = mesh_of(Solid.sphere(20, 128))
    share = (mesh.vertices[:, [2]] + 20) / 40
    colors = np.clip(
        np.hstack([255 * share, 60 + 150 * np.abs(share - 0.5), 255 * (1 - share), 255 * share**0]), 0, 255
    )
    return Scene((replace(mesh, colors=colors.astype(np.uint8)),), (Part(0),))


def cup() -> Scene:
    """Return a box with thin walls, open at the top."""
    return scene_of(Solid.cube((40, 30, 20)) - Solid.cube((39.2, 29.2, 20)).translate((0.4, 0.4, 0.4)))


def block_with_holes() -> Scene:
    """Return a plate with a large and two small holes."""
    plate = Solid.cube((50, 30, 8))
    for x, radius in ((8, 2), (25, 8), (42, 2)):
        plate -= Solid.cylinder(30, radius, radius, 48, True).translate((x, 15, 0))
    return scene_of(plate)


def with_cube(scene: Scene) -> Scene:
    """Return a scene beside a cube of 20 mm, which shows the scale."""
    low, high = bounds(scene)
    return joined(
        scene, scene_of(Solid.cube((20, 20, 20)).translate((float(high[0]) + 15, float(low[1]), float(low[2]))))
    )


def with_bed(scene: Scene) -> Scene:
    """Return a scene above a bed."""
    return joined(scene, scene_of(Solid.cube((120, 120, 2)).translate((-60, -60, -2.01))))


def open_front(scene: Scene) -> Scene:
    """Return the half of a scene behind a cut."""
    return Registry().read(scene, cut_plane="y=50%", cut_plane_keep="high")


def from_below(scene: Scene) -> Scene:
    """Return a scene upside down."""
    return Registry().read(scene, rotate_x_deg=180)


def painted(scene: Scene) -> Scene:
    """Return a scene with a color for each part."""
    meshes = (replace(mesh, face_material=None) for mesh in scene.meshes)
    parts = (replace(part, material=at % len(COLORS)) for at, part in enumerate(scene.parts))
    return replace(scene, meshes=tuple(meshes), parts=tuple(parts), materials=COLORS)


def pulled_apart(scene: Scene) -> Scene:
    """Return a scene whose parts have gaps between them."""
    middle = bounds(scene).mean(axis=0)
    parts = []
    for part in scene.parts:
        one = replace(scene, parts=(part,))
        move = np.eye(4)
        move[:3, 3] = 0.35 * (bounds(one).mean(axis=0) - middle)
        parts.append(replace(part, transform=move @ part.transform))
    return replace(scene, parts=tuple(parts))


@dataclass
class Case:
    """Picture of an operation.

    scene:   before the operation
    options: of the operation
    edit:    change of both scenes for the picture
    picture: options of the picture
    after:   change of the result alone
    """

    scene: Callable[[], Scene]
    options: Mapping[str, object]
    edit: Callable[[Scene], Scene] = field(default=lambda scene: scene)
    picture: Mapping[str, object] = field(default_factory=dict)
    after: Callable[[Scene], Scene] = field(default=lambda scene: scene)


CASES: Mapping[str, Case] = {
    "repair": Case(damaged_box, {"repair": True}),
    "optimize": Case(figure, {"optimize_target_faces": 400}, picture={"edges": "mesh"}),
    "lay-flat": Case(lambda: Registry().read(block_with_holes(), rotate_x_deg=40, rotate_y_deg=25), {"lay_flat": True}),
    "mirror": Case(bracket, {"mirror": "x"}),
    "orient": Case(leaning_bracket, {"orient": True}),
    "rotate": Case(bracket, {"rotate_z_deg": 90}),
    "fit": Case(bracket, {"fit_mm": "30x30x30"}, with_cube),
    "scale": Case(bracket, {"scale_percent": 50}, with_cube),
    "target-height": Case(bracket, {"target_height_mm": 20}, with_cube),
    "boolean": Case(
        lambda: painted(scene_of(Solid.cube((40, 30, 20)), Solid.cylinder(50, 9, 9, 64, True).translate((20, 15, 10)))),
        {"boolean": "difference"},
    ),
    "fill-holes": Case(block_with_holes, {"fill_holes_mm": 5}),
    "offset": Case(bracket, {"offset_mm": 2}),
    "thicken": Case(cup, {"thicken_mm": 2}),
    "hollow": Case(figure, {"hollow_wall_mm": 1.5}, open_front),
    "flatten-base": Case(lambda: scene_of(Solid.sphere(20, 64)), {"flatten_base_mm": 8}, picture={"view": "front"}),
    "merge-parts": Case(
        lambda: scene_of(Solid.cube((30, 20, 20)), Solid.cube((20, 10, 30)).translate((20, 5, 5))),
        {"merge_parts": "union"},
        painted,
    ),
    "plinth": Case(figure, {"plinth_mm": 3, "plinth_margin_mm": 5}),
    "chamfer-base": Case(block_with_holes, {"chamfer_base_mm": 1.5}, from_below),
    "drain": Case(
        lambda: Registry().read(scene_of(Solid.cube((30, 30, 30))), hollow_wall_mm=2), {"drain_holes_mm": 6}, from_below
    ),
    "emboss": Case(lambda: scene_of(Solid.cube((50, 30, 8))), {"emboss_text": "A-12", "emboss_size_mm": 10}),
    "cut-plane": Case(figure, {"cut_plane": "z=50%"}, painted, after=pulled_apart),
    "copies": Case(bracket, {"copies": 6}),
    "split-for-bed": Case(
        lambda: scene_of(Solid.cube((60, 40, 20))),
        {"split_for_bed": "40x40x40", "split_for_bed_connectors": "pegs"},
        painted,
        after=pulled_apart,
    ),
    "split-parts": Case(
        lambda: scene_of(Solid.compose([Solid.cube((15, 15, 15)).translate((20 * at, 0, 0)) for at in range(3)])),
        {"split_parts": True},
        painted,
    ),
    "arrange": Case(
        lambda: painted(Registry().read([bracket(), figure()], copies=6)),
        {"arrange_bed": "220x220"},
        picture={"view": "top"},
    ),
    "reduce-colors": Case(colored_ball, {"reduce_colors": 4}),
    "place-on-bed": Case(
        lambda: moved(bracket(), np.array([[1, 0, 0, -70], [0, 1, 0, -80], [0, 0, 1, 25], [0, 0, 0, 1.0]])),
        {"place_on_bed": True},
        with_bed,
    ),
}
"""Pictures by id of the operation."""


def draw(registry: Registry, scene: Scene, picture: Mapping[str, object]) -> Image.Image:
    """Draw one scene."""
    content = io.BytesIO()
    size = f"{2 * PANE[0]}x{2 * PANE[1]}"
    registry.render(scene, content, options={"size": size, "background": "light", **picture})
    return Image.open(content).convert("RGB").resize(PANE, Image.Resampling.LANCZOS)


def main() -> None:
    """Draw the pictures with the ids of the arguments, or all."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with Registry(entry_points=False) as registry:
        for name in sys.argv[1:] or CASES:
            case = CASES[name]
            before = case.scene()
            result = registry.read(before, options=case.options)
            after = case.after(case.edit(result))
            panes = [draw(registry, scene, case.picture) for scene in (case.edit(before), after)]
            sheet = Image.new("RGB", (2 * PANE[0] + 24, PANE[1]), panes[0].getpixel((0, 0)))
            sheet.paste(panes[0], (0, 0))
            sheet.paste(panes[1], (PANE[0] + 24, 0))
            arrow = ImageDraw.Draw(sheet)
            middle = PANE[1] // 2
            arrow.polygon([(PANE[0] + 6, middle - 9), (PANE[0] + 6, middle + 9), (PANE[0] + 18, middle)], "#5b6672")
            target = FOLDER / f"{name}.png"
            sheet.quantize(COLOR_COUNT, dither=Image.Dither.NONE).save(target, optimize=True)
            print(f"{name}: {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
