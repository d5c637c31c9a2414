"""True faces of a part, and how many of them a converted part has."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from cad_parts import occ

KINDS = ("Plane", "Cylinder", "Cone", "Sphere", "Torus")
"""Kinds of surfaces that are compared."""

MAX_ERROR_RATIO = 1e-3
"""Share of a radius, or of the size of a face, by which a returned surface may differ."""

MAX_VOLUME_ERROR_RATIO = 1e-3
"""Share of the volume by which a solid may differ from the volume in the report."""


def list_faces(shape: Any) -> list[dict[str, Any]]:
    """Return the faces of a shape: kind, radii, axis, bounds in mm, area in mm²."""
    from OCP.Bnd import Bnd_Box
    from OCP.BRepAdaptor import BRepAdaptor_Surface
    from OCP.BRepBndLib import BRepBndLib
    from OCP.BRepGProp import BRepGProp
    from OCP.GProp import GProp_GProps
    from OCP.TopAbs import TopAbs_FACE
    from OCP.TopoDS import TopoDS

    faces = []
    for part in occ.list_shapes(shape, TopAbs_FACE):
        face = TopoDS.Face(part)
        surface = BRepAdaptor_Surface(face)
        kind = str(surface.GetType()).rsplit("_", 1)[-1]
        box = Bnd_Box()
        BRepBndLib.AddOptimal_s(face, box, False, False)
        properties = GProp_GProps()
        BRepGProp.SurfaceProperties_s(face, properties)
        row: dict[str, Any] = {
            "kind": kind,
            "low": _coordinates(box.CornerMin()),
            "high": _coordinates(box.CornerMax()),
            "area": properties.Mass(),
        }
        if kind in KINDS:
            row |= _describe_surface(kind, getattr(surface, kind)())
        faces.append(row)
    return faces


def _describe_surface(kind: str, surface: Any) -> dict[str, Any]:
    """Return the point, direction, radius and second radius or half angle (radians) of a surface."""
    place = surface.Position()
    row = {"at": _coordinates(place.Location()), "along": _coordinates(place.Direction()), "radius": 0.0, "second": 0.0}
    if kind in ("Cylinder", "Sphere"):
        row["radius"] = surface.Radius()
    elif kind == "Cone":
        row |= {"radius": surface.RefRadius(), "second": surface.SemiAngle(), "at": _coordinates(surface.Apex())}
    elif kind == "Torus":
        row |= {"radius": surface.MajorRadius(), "second": surface.MinorRadius()}
    return row


def _coordinates(point: Any) -> list[float]:
    return [point.X(), point.Y(), point.Z()]


def count_facets(faces: list[dict[str, Any]], triangles: np.ndarray) -> None:
    """Add "triangles" and "facets" to each face: triangles on it, and distinct normals among them.

    A triangle belongs to the face whose surface is nearest to its center, among those with nearly its normal.
    """
    center = triangles.mean(axis=1)
    cross = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    length = np.linalg.norm(cross, axis=1)
    normal = cross / np.maximum(length, 1e-300)[:, None]
    nearest, owner = np.full(len(center), np.inf), np.full(len(center), -1)
    for number, face in enumerate(faces):
        if face["kind"] not in KINDS:
            continue
        low, high = np.array(face["low"]), np.array(face["high"])
        room = 0.05 * float(np.linalg.norm(high - low)) + 1e-3
        near = np.flatnonzero(((center >= low - room) & (center <= high + room)).all(axis=1) & (length > 0))
        away, direction = _distances(face, center[near])
        is_parallel = np.abs(np.einsum("ij,ij->i", direction, normal[near])) > 0.8
        off = np.where(is_parallel, np.abs(away), np.inf)
        closer = off < nearest[near]
        nearest[near[closer]], owner[near[closer]] = off[closer], number
    for number, face in enumerate(faces):
        mine = owner == number
        face["triangles"] = int(mine.sum())
        face["facets"] = len(np.unique(np.round(normal[mine], 3), axis=0)) if mine.any() else 0


def _distances(face: dict[str, Any], points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distances of (n, 3) points from the surface of a face, and the directions of its normals."""
    offset, axis = points - face["at"], np.array(face["along"])
    height = offset @ axis
    across = offset - height[:, None] * axis
    distance = np.linalg.norm(across, axis=1)
    away = across / np.maximum(distance, 1e-300)[:, None]
    if face["kind"] == "Plane":
        return height, np.broadcast_to(axis, offset.shape)
    if face["kind"] == "Cylinder":
        return distance - face["radius"], away
    if face["kind"] == "Sphere":
        reach = np.linalg.norm(offset, axis=1)
        return reach - face["radius"], offset / np.maximum(reach, 1e-300)[:, None]
    if face["kind"] == "Cone":
        sine, cosine = np.sin(face["second"]), np.cos(face["second"])
        return distance * cosine - height * sine, away * cosine - axis * sine
    to_tube = (distance - face["radius"])[:, None] * away + height[:, None] * axis
    reach = np.linalg.norm(to_tube, axis=1)
    return reach - face["second"], to_tube / np.maximum(reach, 1e-300)[:, None]


def find_returned(original: list[dict[str, Any]], returned: list[dict[str, Any]]) -> list[bool]:
    """Return for each original face whether a returned face has its kind, surface and bounds."""
    is_found = []
    for face in original:
        candidates = [other for other in returned if other["kind"] == face["kind"]]
        is_found.append(face["kind"] in KINDS and any(_is_same(face, other) for other in candidates))
    return is_found


def _is_same(face: dict[str, Any], other: dict[str, Any]) -> bool:
    low, high = np.array(face["low"]), np.array(face["high"])
    size = float(np.linalg.norm(high - low))
    # facets are chords: the returned outline may lie inside by their sagitta
    room = 0.02 * size + 1e-3
    if not ((np.array(other["low"]) <= low + room).all() and (np.array(other["high"]) >= high - room).all()):
        return False
    kind, axis = face["kind"], np.array(face["along"])
    offset = np.subtract(other["at"], face["at"])
    limit = MAX_ERROR_RATIO * max(size, face["radius"])
    if abs(other["radius"] - face["radius"]) > MAX_ERROR_RATIO * face["radius"] and kind != "Cone":
        return False
    if kind == "Sphere":
        return float(np.linalg.norm(offset)) <= limit
    if abs(float(np.dot(axis, other["along"]))) < 1 - 1e-5:
        return False
    if kind == "Plane":
        return abs(float(offset @ axis)) <= limit
    if kind == "Cylinder":
        return float(np.linalg.norm(np.cross(offset, axis))) <= limit
    if kind == "Torus":
        is_tube = abs(other["second"] - face["second"]) <= MAX_ERROR_RATIO * face["second"]
        return is_tube and float(np.linalg.norm(offset)) <= limit
    # a shallow cone has a distant apex, which moves by much if its angle changes by little
    reach = max(limit, MAX_ERROR_RATIO * max(np.linalg.norm(low - face["at"]), np.linalg.norm(high - face["at"])))
    return abs(abs(other["second"]) - abs(face["second"])) <= MAX_ERROR_RATIO and float(np.linalg.norm(offset)) <= reach


def find_fault(back: Path, figures: dict[str, Any]) -> tuple[str, Any]:
    """Return what is wrong with a STEP file, or "", and its shape, None if it cannot be read."""
    from OCP.BRepCheck import BRepCheck_Analyzer
    from OCP.BRepGProp import BRepGProp
    from OCP.GProp import GProp_GProps
    from OCP.IFSelect import IFSelect_RetDone
    from OCP.STEPControl import STEPControl_Reader
    from OCP.TopAbs import TopAbs_SOLID

    reader = STEPControl_Reader()
    if reader.ReadFile(str(back)) != IFSelect_RetDone:
        return "not read", None
    reader.TransferRoots()
    shape = reader.OneShape()
    solids = occ.list_shapes(shape, TopAbs_SOLID)
    properties = GProp_GProps()
    BRepGProp.VolumeProperties_s(shape, properties)
    expected = figures["mesh_volume_mm3"] + figures["volume_gained_mm3"]
    limit, volume = MAX_VOLUME_ERROR_RATIO * abs(expected), properties.Mass()
    if abs(volume - expected) > limit:
        volume = occ.measure_volume(shape)
    fault = ""
    if len(solids) != figures["solids"]:
        fault = f"{len(solids)} solids of {figures['solids']}"
    elif not BRepCheck_Analyzer(shape).IsValid():
        fault = "invalid"
    elif abs(volume - expected) > limit:
        fault = f"volume {volume:.6g} instead of {expected:.6g}"
    return fault, shape


def judge_part(back: Path, figures: dict[str, Any], faces: list[dict[str, Any]]) -> dict[str, Any]:
    """Return whether a STEP file is valid, and which of the true faces it has."""
    fault, shape = find_fault(back, figures)
    if shape is None:
        return {"fault": fault}
    returned = list_faces(shape)
    matches = find_returned(faces, returned)
    rows = [
        {"kind": face["kind"], "facets": face["facets"], "found": is_found}
        for face, is_found in zip(faces, matches, strict=True)
        if "facets" in face
    ]
    kinds = Counter(face["kind"] for face in faces), Counter(face["kind"] for face in returned)
    return {"fault": fault, "true_faces": rows, "kinds": kinds}
