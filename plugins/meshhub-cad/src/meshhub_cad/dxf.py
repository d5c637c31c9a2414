"""DXF reader: closed outlines of the model space, extruded to a solid. Nested outlines are holes and islands in turn.

ezdxf parses the file, expands blocks and flattens curves.
"""

from __future__ import annotations

import io
import logging
from collections import Counter
from collections.abc import Iterator
from typing import Any

import manifold3d
import numpy as np

from meshhub import ModelTooComplex, Scene, Source, UnreadableFile, note
from meshhub.model.capabilities import MILLIMETERS_PER
from meshhub.toolkit.visibility import report_hidden
from meshhub_cad import DxfOptions
from meshhub_cad.profiles import (
    Outlines,
    Points,
    arc_segments,
    check_outlines,
    cross_section,
    drop_duplicates,
    extrude,
    join_curves,
)
from meshhub_cad.sniff import BINARY_DXF

# the parser logs every value that it repairs, and without a handler, Python prints warnings
logging.getLogger("ezdxf").addHandler(logging.NullHandler())

MAX_ENTITIES = 100_000
"""Maximum entities after the expansion of blocks, which may nest and repeat; ezdxf expands about 2000 in a second."""

MAX_DEPTH = 64
"""Maximum levels of nested blocks."""

_MM_PER_UNIT = {
    1: 25.4, 2: 304.8, 3: 1_609_344.0, 4: 1.0, 5: 10.0, 6: 1000.0, 7: 1e6, 8: 25.4e-6, 9: 0.0254, 10: 914.4,
    11: 1e-7, 12: 1e-6, 13: 1e-3, 14: 100.0, 15: 1e4, 16: 1e5, 21: 1200 / 3937 * 1000,
}  # fmt: skip
"""Millimeters per unit by value of $INSUNITS (DXF Reference, "HEADER Section"). The value 0 means "unitless"."""

_CURVES = frozenset({"ARC", "CIRCLE", "ELLIPSE", "SPLINE"})
_MAX_LEFT_OUT = 8
"""Kinds of entities in a message."""


def read(source: Source, options: DxfOptions) -> Scene:
    """Read a DXF drawing and extrude its closed outlines.

    Returns:
        Scene in millimeters with the profile at Z = 0.
    Raises:
        UnreadableFile: The file is truncated, damaged or not DXF.
        EmptyModel: The drawing has no closed outline.
        ModelTooComplex: The drawing has too many entities or points.
    """
    document = _load(source.read())
    scale = _mm_per_unit(document, options)
    tolerance = options.dxf_tolerance_mm / scale
    left_out: Counter[str] = Counter()
    shown: list[Points] = []
    hidden: list[Points] = []
    try:
        for entity, is_hidden in _list_entities(document, left_out):
            curve = _flatten(entity, tolerance)
            if curve is None:
                left_out[entity.dxftype()] += 1
            elif len(curve) > 1:
                (hidden if is_hidden else shown).append(curve * scale)
    except (ModelTooComplex, MemoryError):
        raise
    except Exception as error:
        raise UnreadableFile(
            f"an entity of the DXF drawing is damaged ({type(error).__name__}); export it again"
        ) from error
    outlines: Outlines = join_curves(drop_duplicates(shown), options.dxf_tolerance_mm)
    is_all_hidden = not outlines.closed and bool(hidden)
    if is_all_hidden:
        outlines = join_curves(drop_duplicates(shown + hidden), options.dxf_tolerance_mm)
    report_hidden(len(hidden), is_read=is_all_hidden)
    ignored = ", ".join(f"{count} {kind}" for kind, count in left_out.most_common(_MAX_LEFT_OUT))
    check_outlines(outlines, ignored, "DXF")
    section = cross_section(outlines.closed, manifold3d.FillRule.EvenOdd)
    return extrude(section, len(outlines.closed), options.dxf_height_mm, "DXF")


def _load(data: bytes) -> Any:
    from ezdxf import recover
    from ezdxf.document import Drawing
    from ezdxf.lldxf.tagger import binary_tags_loader

    try:
        if data.startswith(BINARY_DXF):
            document = Drawing.load(binary_tags_loader(data))
            auditor = document.audit()
        else:
            document, auditor = recover.read(io.BytesIO(data))
    except MemoryError:
        raise
    except Exception as error:  # the parser raises errors of any kind for damaged files
        raise UnreadableFile(
            f"the file is not a readable DXF drawing ({type(error).__name__}); save it as DXF 2000 or later"
        ) from error
    if auditor.has_errors:
        note(
            "damaged_file", f"the DXF drawing has {len(auditor.errors)} errors: shapes may be missing; export it again"
        )
    return document


def _mm_per_unit(document: Any, options: DxfOptions) -> float:
    if options.dxf_unit is not None:
        return MILLIMETERS_PER[options.dxf_unit]
    unit = document.header.get("$INSUNITS", 0)
    if unit not in _MM_PER_UNIT:
        note("unit_assumed", "the DXF drawing names no unit; millimeters were assumed, 'dxf_unit' sets another one")
    return _MM_PER_UNIT.get(unit, 1.0)


def _list_entities(document: Any, left_out: Counter[str]) -> Iterator[tuple[Any, bool]]:
    """Yield the entities of the model space, with blocks expanded, and whether they are hidden.

    Raises:
        ModelTooComplex: The drawing has too many entities.
    """
    from ezdxf.disassemble import recursive_decompose

    hidden = {layer.dxf.name.lower() for layer in document.layers if layer.is_off() or layer.is_frozen()}
    kept = []
    for entity in document.modelspace():
        # dimensions and hatches would expand to lines that are not outlines
        if entity.dxftype() in ("DIMENSION", "LEADER", "MULTILEADER", "MLINE", "ACAD_TABLE", "HATCH", "MPOLYGON"):
            left_out[entity.dxftype()] += 1
        else:
            kept.append(entity)
    if _count_expanded(document, kept) > MAX_ENTITIES:
        raise ModelTooComplex(f"the DXF drawing has over {MAX_ENTITIES} entities; export a part of it")
    for entity in recursive_decompose(kept):
        layer = entity.dxf.layer.lower()
        # points that dimensions refer to, which no program prints
        if layer == "defpoints" or entity.dxftype() == "HATCH":
            left_out[entity.dxftype()] += 1
        else:
            yield entity, layer in hidden or bool(entity.dxf.invisible)


def _count_expanded(document: Any, entities: list[Any]) -> int:
    """Return the number of entities after the expansion of blocks, without expanding them.

    Raises:
        ModelTooComplex: The blocks have more than MAX_DEPTH levels, or one contains itself.
    """
    sizes: dict[str, int] = {}

    def count(entities: Any, depth: int) -> int:
        if depth > MAX_DEPTH:
            raise ModelTooComplex("a block of the DXF drawing contains itself, or is nested too deeply; explode it")
        return sum(count_one(entity, depth) for entity in entities)

    def count_one(entity: Any, depth: int) -> int:
        if entity.dxftype() != "INSERT":
            return 1
        name = entity.dxf.name.lower()
        if name not in sizes:
            block = document.blocks.get(entity.dxf.name)
            sizes[name] = 0 if block is None else count(block, depth + 1)
        return sizes[name] * max(1, int(entity.mcount))

    return count(entities, 0)


def _flatten(entity: Any, tolerance: float) -> Points | None:
    """Return the points (n, 2) of an entity in the XY plane; None for an entity that is not a curve."""
    kind = entity.dxftype()
    if kind == "LINE":
        return np.array([entity.dxf.start.vec2, entity.dxf.end.vec2], np.float64)
    if kind == "LWPOLYLINE":
        rows = np.array(entity.lwpoints.values, np.float64).reshape(-1, 5)
        return _to_world(entity, _flatten_bulges(rows[:, :2], rows[:, 4], entity.closed, tolerance))
    if kind == "POLYLINE" and entity.is_2d_polyline:
        rows = np.array([(*vertex.dxf.location.vec2, vertex.dxf.bulge) for vertex in entity.vertices], np.float64)
        rows = rows.reshape(-1, 3)
        return _to_world(entity, _flatten_bulges(rows[:, :2], rows[:, 2], entity.is_closed, tolerance))
    if kind == "POLYLINE" and entity.is_3d_polyline:
        points = np.array([vertex.dxf.location.vec2 for vertex in entity.vertices], np.float64).reshape(-1, 2)
        return np.concatenate([points, points[:1]]) if entity.is_closed else points
    if kind in _CURVES:
        return np.array([point.vec2 for point in entity.flattening(tolerance)], np.float64).reshape(-1, 2)
    return None


def _to_world(entity: Any, points: Points) -> Points:
    """Return points of the entity's plane in the XY plane of the drawing, as mirrored blocks have another plane."""
    if not entity.ocs().transform:
        return points
    axes = np.array([entity.ocs().ux, entity.ocs().uy], np.float64)
    world: Points = points @ axes[:, :2]
    return world


def _flatten_bulges(points: Points, bulges: Points, is_closed: bool, tolerance: float) -> Points:
    """Return a polyline whose segments with a bulge are cut into straight edges.

    Args:
        points: (n, 2) vertices.
        bulges: (n,) tangent of a quarter of the angle of the arc that follows each vertex; 0 for a straight edge.
        is_closed: Whether an edge leads from the last vertex to the first.
        tolerance: Maximum distance of an edge from its arc.
    """
    if is_closed and len(points):
        points, bulges = np.concatenate([points, points[:1]]), np.append(bulges, 0.0)
    bulge = bulges[:-1]
    if len(points) < 2 or not bulge.any():
        return points
    chord = np.diff(points, axis=0)
    length = np.hypot(chord[:, 0], chord[:, 1])
    angle = 4 * np.arctan(bulge)
    with np.errstate(all="ignore"):
        radius = np.abs(length * (1 + bulge**2) / (4 * bulge))
        # from the middle of the chord to the center, as a multiple of the chord's normal
        offset = np.where(bulge == 0, 0.0, (1 - bulge**2) / (4 * bulge))
    count = np.where(bulge == 0, 1, arc_segments(radius, angle, tolerance))
    center = points[:-1] + chord / 2 + np.stack([-chord[:, 1], chord[:, 0]], axis=1) * offset[:, None]
    segment = np.repeat(np.arange(len(chord)), count)
    step = np.arange(len(segment)) - np.repeat(np.cumsum(count) - count, count)
    turn = angle[segment] * step / count[segment]
    spoke = points[:-1][segment] - center[segment]
    cos, sin = np.cos(turn), np.sin(turn)
    on_arc = center[segment] + np.stack(
        [cos * spoke[:, 0] - sin * spoke[:, 1], sin * spoke[:, 0] + cos * spoke[:, 1]], axis=1
    )
    exact = np.where((step == 0)[:, None], points[:-1][segment], on_arc)
    return np.concatenate([exact, points[-1:]])
