"""Beam lattices of objects (3MF Beam Lattice 1.2), which become triangles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from meshhub.builtin_plugins.threemf.reading.attribute_parser import AttributeParser
from meshhub.builtin_plugins.threemf.reading.model_document import BALLS, BeamLattice, TriangleMesh
from meshhub.model.notes import did, note
from meshhub.model.scene import Float64, Mesh
from meshhub.toolkit.safe_xml import Attributes

if TYPE_CHECKING:
    from meshhub.toolkit.lattices import Lattice

MAX_BEAMS_COUNT = 50_000
"""Beams and balls of an object; each becomes 60 to 130 triangles."""

_ROUND_CAPS = ("sphere", "hemisphere")
"""Caps that become balls; a half ball differs from a whole one only inside a cone."""


def start_lattice(attributes: Attributes, values: AttributeParser) -> BeamLattice:
    """Return the lattice of an element <beamlattice>, without its beams. Raises UnreadableFile."""

    def number(name: str, default: float) -> float:
        return values.number(attributes, name, "beamlattice") if name in attributes else default

    # version 1.1 of the extension has them in a namespace of their own
    of_balls = f"{BALLS} " if f"{BALLS} ballmode" in attributes else ""
    has_clip = "clippingmesh" in attributes
    return BeamLattice(
        radius=number("radius", 1.0),
        ball_radius=number(f"{of_balls}ballradius", 0.0),
        ball_mode=attributes.get(f"{of_balls}ballmode", "none").strip(),
        is_round=attributes.get("cap", "sphere").strip() in _ROUND_CAPS,
        min_length=number("minlength", 0.0),
        clipping=attributes.get("clippingmode", "none").strip(),
        clip_object=values.integer(attributes, "clippingmesh", "beamlattice") if has_clip else None,
        has_properties="pid" in attributes,
    )


def add_beam(lattice: BeamLattice, attributes: Attributes, values: AttributeParser) -> None:
    """Add the beam of an element. Raises UnreadableFile."""
    r1 = values.number(attributes, "r1", "beam") if "r1" in attributes else lattice.radius
    r2 = values.number(attributes, "r2", "beam") if "r2" in attributes else r1
    caps = [attributes.get(name) for name in ("cap1", "cap2")]
    ends = [values.integer(attributes, name, "beam") for name in ("v1", "v2")]
    round_ends = [lattice.is_round if cap is None else cap.strip() in _ROUND_CAPS for cap in caps]
    lattice.beams.extend((*ends, r1, r2, *round_ends))
    lattice.has_properties |= "p1" in attributes or "pid" in attributes


def add_ball(lattice: BeamLattice, attributes: Attributes, values: AttributeParser) -> None:
    """Add the ball of an element. Raises UnreadableFile."""
    radius = values.number(attributes, "r", "ball") if "r" in attributes else lattice.ball_radius
    lattice.balls.extend((values.integer(attributes, "vindex", "ball"), radius))
    lattice.has_properties |= "p" in attributes or "pid" in attributes


def add_lattice(mesh: TriangleMesh, lattice: BeamLattice, clip: TriangleMesh | None, part: str) -> TriangleMesh:
    """Return the triangles of an object with those of its lattice.

    Args:
        mesh: Vertices, and triangles if there are any.
        lattice: Lattice over the vertices.
        clip: Mesh of the object that cuts it, if there is one.
        part: Name of the model part, for messages.
    Raises:
        UnreadableFile: The lattice is invalid.
    """
    # imported here, because few files have lattices, and Manifold would delay the start of the others
    from meshhub.toolkit.lattices import MAX_UNITED_COUNT, triangulate_lattice

    values = AttributeParser(part)
    beams = _choose_members(lattice, mesh.vertices, values)
    if beams.count == 0:
        return mesh
    did(beams_triangulated=len(beams.beams))
    if lattice.has_properties:
        note("lattice_colors_ignored", "beams have the color of their object; colors of single beams were not read")
    if beams.count <= MAX_UNITED_COUNT:
        surface = _unite(beams, lattice, clip, values)
    else:
        surface = triangulate_lattice(beams)
        note(
            "lattice_overlaps",
            f"{beams.count:,} beams and balls overlap, because uniting so many takes long; slicers unite them, or use "
            "{repair_self_intersections}",
            options=("repair_self_intersections",),
            count=int(beams.count),
        )
        if _is_clipped(lattice):
            note("lattice_not_clipped", "a beam lattice was not clipped, because it has too many beams")
    return mesh.joined(surface.vertices, surface.faces)


def _is_clipped(lattice: BeamLattice) -> bool:
    return lattice.clipping in ("inside", "outside")


def _unite(beams: Lattice, lattice: BeamLattice, clip: TriangleMesh | None, values: AttributeParser) -> Mesh:
    """Return the united lattice, inside or outside of its clipping mesh if that is closed. Raises UnreadableFile."""
    from meshhub.toolkit.lattices import is_solid, unite_lattice

    cutter = None
    if _is_clipped(lattice):
        cutter = None if clip is None else Mesh(clip.vertices, clip.triangles.astype(np.int32))
        if cutter is None or not is_solid(cutter):
            cutter = None
            note(
                "lattice_not_clipped",
                "a beam lattice was not clipped, because its clipping mesh is missing or not closed",
            )
    surface = unite_lattice(beams, cutter, keeps_inside=lattice.clipping == "inside")
    if len(surface.faces) == 0:
        raise values.error("a clipping mesh leaves nothing of its beam lattice")
    return surface


def _choose_members(lattice: BeamLattice, points: Float64, values: AttributeParser) -> Lattice:
    """Return the beams that count, and the balls at their ends.

    Args:
        points: (n, 3) vertices of the object.
        values: Names the model part in errors.
    Raises:
        UnreadableFile: A vertex does not exist, or a radius is not positive.
    """
    from meshhub.toolkit.lattices import Lattice

    beams = np.array(lattice.beams).reshape(-1, 6)
    balls = np.array(lattice.balls).reshape(-1, 2)
    indices = np.concatenate([beams[:, :2].ravel(), balls[:, 0]])
    if len(indices) and indices.max() >= len(points):
        raise values.error(f"a beam lattice refers to vertex {indices.max():.0f} of {len(points)}")
    if not (beams[:, 2:4] > 0).all() or not (balls[:, 1] >= 0).all():
        raise values.error("a beam lattice has a radius that is not positive")
    ends = beams[:, :2].astype(np.intp)
    length = np.linalg.norm(points[ends[:, 1]] - points[ends[:, 0]], axis=1)
    beams = beams[(length > 0) & (length >= lattice.min_length)]
    at_ends = np.column_stack([beams[:, :2].ravel(), beams[:, 2:4].ravel()])
    round_ends = at_ends[beams[:, 4:].ravel() > 0]
    if lattice.ball_mode == "all":
        # balls that are listed have radii of their own
        listed = np.isin(at_ends[:, 0], balls[:, 0])
        others = np.unique(at_ends[~listed, 0])
        balls = np.concatenate([balls, np.column_stack([others, np.full(len(others), lattice.ball_radius)])])
    elif lattice.ball_mode != "mixed":
        balls = balls[:0]
    rows = np.unique(np.concatenate([round_ends, balls[balls[:, 1] > 0]]), axis=0)
    return Lattice(points, beams[:, :2].astype(np.intp), beams[:, 2:4], rows[:, 0].astype(np.intp), rows[:, 1])
