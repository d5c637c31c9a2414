"""Round holes of a kernel shape: coaxial cylinders and cones that face inward, joined where they touch."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from meshhub.model.features import HoleStep
from meshhub.model.scene import Float64
from meshhub.toolkit.opencascade import explore

JOIN_MM = 1e-3
"""Millimeters; sections of one hole touch within it, and their axes and radii agree within it."""

MIN_TURN_RAD = 2 * math.pi - 1e-3
"""Radians; faces around an axis that turn less are fillets and ends of slots, not holes."""


class RoundFace(NamedTuple):
    """Cylinder, cone or sphere whose material is around it, in the frame of the shape.

    kind:        of the surface
    direction:   (3,) of the axis; of two opposite directions the one whose first coordinate that is not 0 is positive
    foot:        (3,) point of the axis that is nearest to the origin
    turn_rad:    angle that the face covers
    low, high:   range along the axis, measured from the foot
    low_radius:  radius at `low`
    high_radius: radius at `high`
    face:        kernel face
    """

    kind: Literal["cylinder", "cone", "sphere"]
    direction: Float64
    foot: Float64
    turn_rad: float
    low: float
    high: float
    low_radius: float
    high_radius: float
    face: Any


@dataclass
class _Section:
    """Faces that together turn around the axis: one section of a hole."""

    kind: str
    low: float
    high: float
    low_radius: float
    high_radius: float
    turn_rad: float
    faces: list[Any] = field(default_factory=list)

    def radius(self) -> float:
        return max(self.low_radius, self.high_radius)


class FoundHole(NamedTuple):
    """Hole in the frame of its shape.

    diameter_mm, depth_mm, end, steps: as in `features.Hole`
    entry:     (3,) middle of the entry
    direction: (3,) unit vector into the hole
    """

    diameter_mm: float
    depth_mm: float
    end: Literal["through", "blind"]
    steps: tuple[HoleStep, ...]
    entry: Float64
    direction: Float64


def find_holes(faces: list[RoundFace], openness: Openness) -> list[FoundHole]:
    """Return the holes that faces form.

    Args:
        faces: Cylinders, cones and spheres that face inward.
        openness: Test for open ends.
    """
    holes: list[FoundHole] = []
    for group in _coaxial(faces):
        sections = [section for section in _sections(group) if section.turn_rad >= MIN_TURN_RAD]
        stacks = [stack for stack in _stacks(sections) if any(section.kind == "cylinder" for section in stack)]
        holes += [_describe(group[0], stack, openness) for stack in stacks]
    return holes


class Openness:
    """Test whether a hole goes on at an end: the face beyond its rim looks away from the hole, not into it."""

    def __init__(self, shape: Any) -> None:
        from OCP.collections import IndexedDataMap_TopoDS_Shape_List_TopoDS_Shape_TopTools_ShapeMapHasher as FacesByEdge
        from OCP.TopAbs import TopAbs_EDGE, TopAbs_FACE
        from OCP.TopExp import TopExp

        self._faces_by_edge = FacesByEdge()
        TopExp.MapShapesAndAncestors_s(shape, TopAbs_EDGE, TopAbs_FACE, self._faces_by_edge)

    def is_open(self, faces: list[Any], foot: Float64, outward: Float64, middle: float, radius: float) -> bool:
        """Return whether a section of a hole is open.

        Args:
            faces: Faces of the section.
            foot: (3,) point of the axis.
            outward: (3,) unit vector along the axis out of the section.
            middle: Distance from the foot to the middle of the section, along `outward`.
            radius: Radius at the end.
        """
        from OCP.BRepAdaptor import BRepAdaptor_Curve
        from OCP.TopAbs import TopAbs_EDGE
        from OCP.TopoDS import TopoDS

        for face in faces:
            for edge in explore(face, TopAbs_EDGE):
                curve = BRepAdaptor_Curve(TopoDS.Edge(edge))
                point = curve.Value((curve.FirstParameter() + curve.LastParameter()) / 2)
                position = np.array([point.X(), point.Y(), point.Z()])
                height = float((position - foot) @ outward)
                # seams are in the middle; on a curved surface, the rim is not in one plane
                if height < middle + JOIN_MM or not self._faces_by_edge.Contains(edge):
                    continue
                for neighbor in self._faces_by_edge.FindFromKey(edge):
                    if neighbor.IsSame(face) or any(neighbor.IsSame(other) for other in faces):
                        continue
                    if self._closes(neighbor, position, outward, radius):
                        return False
        return True

    @staticmethod
    def _closes(face: Any, position: Float64, outward: Float64, radius: float) -> bool:
        """Return whether a face beyond a rim looks back into the hole."""
        from OCP.BRep import BRep_Tool
        from OCP.BRepAdaptor import BRepAdaptor_Surface
        from OCP.GeomAbs import GeomAbs_Torus
        from OCP.GeomAPI import GeomAPI_ProjectPointOnSurf
        from OCP.GeomLProp import GeomLProp_SLProps
        from OCP.gp import gp_Pnt
        from OCP.TopAbs import TopAbs_REVERSED
        from OCP.TopoDS import TopoDS

        face = TopoDS.Face(face)
        surface = BRep_Tool.Surface_s(face)
        projection = GeomAPI_ProjectPointOnSurf(gp_Pnt(*position.tolist()), surface)
        if projection.NbPoints() == 0:
            return False
        properties = GeomLProp_SLProps(surface, *projection.LowerDistanceParameters(), 1, 1e-9)
        if not properties.IsNormalDefined():
            return False
        normal = properties.Normal()
        slope = float(np.array([normal.X(), normal.Y(), normal.Z()]) @ outward)
        if face.Orientation() == TopAbs_REVERSED:
            slope = -slope
        if abs(slope) < 0.05:
            adaptor = BRepAdaptor_Surface(face, False)
            # a fillet: it turns outward at a rounded entry, inward at a rounded bottom
            return bool(adaptor.GetType() == GeomAbs_Torus and adaptor.Torus().MajorRadius() < radius)
        return slope < 0


def _coaxial(faces: list[RoundFace]) -> list[list[RoundFace]]:
    """Group faces by their axis."""
    rows = np.array([[*face.direction * 1000, *face.foot] for face in faces]).reshape(-1, 6)
    left = np.ones(len(faces), np.bool_)
    groups = []
    for number in range(len(faces)):
        if left[number]:
            same = left & (np.abs(rows - rows[number]).max(axis=1) < JOIN_MM)
            left &= ~same
            groups.append([faces[index] for index in np.flatnonzero(same)])
    return groups


def _sections(faces: list[RoundFace]) -> list[_Section]:
    """Join faces of one surface that overlap along the axis."""
    sections: list[_Section] = []
    for face in sorted(faces, key=lambda face: (face.low, face.high)):
        for section in sections:
            is_same = section.kind == face.kind and _same_wall(section, face)
            if is_same and face.low <= section.high + JOIN_MM:
                section.low, section.high = min(section.low, face.low), max(section.high, face.high)
                section.turn_rad += face.turn_rad
                section.faces.append(face.face)
                break
        else:
            sections.append(
                _Section(face.kind, face.low, face.high, face.low_radius, face.high_radius, face.turn_rad, [face.face])
            )
    return sections


def _same_wall(section: _Section, face: RoundFace) -> bool:
    """Return whether a face continues a section: equal radii, for a cone also equal ends."""
    radii = (
        abs(section.low_radius - face.low_radius) < JOIN_MM and abs(section.high_radius - face.high_radius) < JOIN_MM
    )
    if face.kind == "cylinder":
        return radii
    return radii and abs(section.low - face.low) < JOIN_MM and abs(section.high - face.high) < JOIN_MM


def _stacks(sections: list[_Section]) -> list[list[_Section]]:
    """Join sections that touch along the axis."""
    stacks: list[list[_Section]] = []
    for section in sorted(sections, key=lambda section: section.low):
        if stacks and section.low <= max(other.high for other in stacks[-1]) + JOIN_MM:
            stacks[-1].append(section)
        else:
            stacks.append([section])
    return stacks


def _describe(axis: RoundFace, stack: list[_Section], openness: Openness) -> FoundHole:
    """Return the hole that touching sections form."""
    drill = min((section for section in stack if section.kind == "cylinder"), key=_Section.radius)
    first, last = stack[0], max(stack, key=lambda section: section.high)
    is_open = [
        _is_end_open(first, openness, axis, -1),
        _is_end_open(last, openness, axis, 1),
    ]
    # the entry is the open end; of two open ends the wider one
    widths = first.low_radius, last.high_radius
    from_low = is_open[0] and (not is_open[1] or widths[0] >= widths[1])
    if not any(is_open):
        from_low = widths[0] >= widths[1]
    ordered = sorted(stack, key=lambda section: section.low, reverse=not from_low)
    end: Literal["through", "blind"] = "through" if all(is_open) else "blind"
    if end == "blind":
        while ordered[-1].kind != "cylinder":
            # the point of the drill, or a round bottom
            ordered.pop()
    low, high = min(section.low for section in ordered), max(section.high for section in ordered)
    steps = tuple(_step(section) for section in ordered if section is not drill and section.radius() > drill.radius())
    direction = axis.direction if from_low else -axis.direction
    entry = axis.foot + axis.direction * (low if from_low else high)
    return FoundHole(2 * drill.radius(), high - low, end, steps, entry, direction)


def _is_end_open(section: _Section, openness: Openness, axis: RoundFace, sign: int) -> bool:
    radius = section.high_radius if sign > 0 else section.low_radius
    if section.kind == "sphere" or radius < JOIN_MM:
        return False
    middle = sign * (section.low + section.high) / 2
    return openness.is_open(section.faces, axis.foot, sign * axis.direction, middle, radius)


def _step(section: _Section) -> HoleStep:
    depth = section.high - section.low
    if section.kind == "cylinder":
        return HoleStep(kind="counterbore", diameter_mm=2 * section.radius(), depth_mm=depth)
    angle = 2 * math.degrees(math.atan2(abs(section.high_radius - section.low_radius), depth))
    return HoleStep(kind="countersink", diameter_mm=2 * section.radius(), depth_mm=depth, angle_deg=angle)
