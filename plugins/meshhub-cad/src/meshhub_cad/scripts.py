"""Writers of editable source: parts of profiles as scripts for build123d and OpenSCAD, run and compared before."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from meshhub import ConversionFailed, Scene, Target, did
from meshhub.model.scene import Float64, Int32
from meshhub.toolkit.distances import SurfaceDistance
from meshhub.toolkit.geometry import soup
from meshhub.toolkit.opencascade import explore
from meshhub_cad import Build123dOptions, ScadOptions
from meshhub_cad.features import Design, describe
from meshhub_cad.kernel_files import find_surfaces, list_bodies, use_kernel_to_write
from meshhub_cad.prisms import find_prism
from meshhub_cad.rebuilding import rebuild
from meshhub_cad.script_text import print_build123d, print_scad
from meshhub_cad.tessellation import tessellate

_MAX_BODIES_COUNT = 50
"""Bodies of a script; more are an assembly, which nobody edits as one."""

_MAX_VOLUME_RATIO = 2e-3
"""Share of the volume by which the rebuilt part may differ from the surfaces that were found."""

_MAX_DISTANCE_RATIO = 1e-3
"""Distance between the rebuilt part and the mesh, as a share of the diagonal; facets may be farther from their arcs."""

_NEAREST_SAMPLES = (3, 16, 128)
"""Samples whose faces are measured, more for the points that may be the farthest; at the rim of a hole, a fan of narrow
faces has many samples at one place."""

_EXACT_COUNT = 1000
"""Farthest points, which are compared with every face."""

_SAMPLE_RATIO = 0.01
"""Spacing of the samples of a surface, as a share of the diagonal."""


def write_build123d(scene: Scene, target: Target, options: Build123dOptions) -> None:
    """Write a Python script for build123d. Where build123d is installed, its result is compared with the mesh.

    Raises:
        ConversionFailed: A body is not a stack of profiles, or the rebuilt part differs from the mesh.
    """
    bodies, design = _find_design(scene, options.build123d_surfaces, options.build123d_tolerance_mm, "build123d")
    text = print_build123d(design)
    with use_kernel_to_write("build123d"):
        is_run = importlib.util.find_spec("build123d") is not None
        shape = _run_build123d(text) if is_run else rebuild(design)
        _verify(scene, bodies, shape, "build123d")
    did(script_run=is_run)
    with target.open() as file:
        file.write(text.encode())


def write_scad(scene: Scene, target: Target, options: ScadOptions) -> None:
    """Write a script for OpenSCAD; the same profiles, rebuilt by OpenCASCADE, are compared with the mesh.

    Raises:
        ConversionFailed: As `write_build123d`.
    """
    bodies, design = _find_design(scene, options.scad_surfaces, options.scad_tolerance_mm, "scad")
    with use_kernel_to_write("OpenSCAD"):
        _verify(scene, bodies, rebuild(design), "scad")
    with target.open() as file:
        file.write(print_scad(design).encode())


def _find_design(scene: Scene, surfaces: Any, tolerance_mm: float | None, prefix: str) -> tuple[list[Any], Design]:
    """Return the solids of a scene, and their features."""
    step = find_surfaces(scene, surfaces, tolerance_mm, "the script", prefix)
    with use_kernel_to_write("a script"):
        from OCP.TopAbs import TopAbs_SOLID

        placed = list_bodies(step)
        solids = [(solid, name) for shape, name in placed for solid in explore(shape, TopAbs_SOLID)]
        if not solids:
            raise ConversionFailed(
                "the model has no closed body, and a script describes solids; use '{repair}', or choose STEP",
                error_code="not_prismatic",
                options=("repair",),
            )
        if len(solids) > _MAX_BODIES_COUNT:
            raise ConversionFailed(
                f"the model has {len(solids)} bodies, and a script describes at most {_MAX_BODIES_COUNT}; choose STEP",
                error_code="not_prismatic",
            )
        design = describe([find_prism(solid, name) for solid, name in solids])
    features = [feature for body in design.bodies for feature in body.features]
    did(
        bodies=len(design.bodies),
        extrusions=sum(feature.places_count for feature in features if feature.sign == "+"),
        holes=sum(
            feature.places_count
            for feature in features
            if feature.title.startswith("hole") or "_hole_" in feature.title
        ),
        parameters=len(design.parameters),
    )
    return [solid for solid, _ in solids], design


def _run_build123d(text: str) -> Any:
    """Run a script of build123d, and return its part."""
    names: dict[str, Any] = {"__name__": "part"}
    # the text has only numbers of this module
    exec(compile(text, "part.py", "exec"), names)  # noqa: S102
    return names["part"].wrapped


def _verify(scene: Scene, solids: Sequence[Any], rebuilt: Any, prefix: str) -> None:
    """Compare a rebuilt part with the surfaces and the mesh; report the figures.

    Raises:
        ConversionFailed: The volume or the surface differs.
    """
    expected = sum(_measure_volume(solid) for solid in solids)
    volume = _measure_volume(rebuilt)
    vertices, faces = soup(scene)
    diagonal = float(np.linalg.norm(np.ptp(vertices, axis=0)))
    result = tessellate(rebuilt, 1e-3, math.radians(5), "script")
    if result is None:
        raise _describe_difference("it has no faces", prefix)
    there = _measure_distance(vertices, faces, result.vertices, result.faces, diagonal)
    back = _measure_distance(result.vertices, result.faces, vertices, faces, diagonal)
    distance = max(there, back)
    did(rebuilt_volume_mm3=round(volume, 3), distance_mm=round(distance, 4))
    if abs(volume - expected) > _MAX_VOLUME_RATIO * abs(expected):
        raise _describe_difference(f"its volume is {volume:.6g} instead of {expected:.6g} mm³", prefix)
    is_close = distance <= _MAX_DISTANCE_RATIO * diagonal
    if not is_close and distance > 2 * _find_chord_error(solids, vertices, faces, diagonal):
        raise _describe_difference(f"it is up to {distance:.3g} mm from the mesh", prefix)


def _describe_difference(what: str, prefix: str) -> ConversionFailed:
    return ConversionFailed(
        f"the part cannot be rebuilt as a stack of profiles: {what}; choose STEP, "
        f"or set '{{{prefix}_surfaces=planar}}'",
        error_code="not_prismatic",
        options=(f"{prefix}_surfaces",),
    )


def _find_chord_error(solids: Sequence[Any], vertices: Float64, faces: Int32, diagonal: float) -> float:
    """Return how far the mesh is from the surfaces that were found for it, because its facets are chords of them."""
    errors = [0.0]
    for solid in solids:
        exact = tessellate(solid, 1e-3, math.radians(5), "script")
        if exact is not None:
            errors.append(_measure_distance(exact.vertices, exact.faces, vertices, faces, diagonal))
    return max(errors)


def _measure_distance(
    vertices: Float64, faces: Int32, other_vertices: Float64, other_faces: Int32, diagonal: float
) -> float:
    """Return the largest distance of samples of a surface from another one."""
    spacing = _SAMPLE_RATIO * diagonal
    samples = SurfaceDistance(vertices, faces, spacing)
    points = np.concatenate([vertices[np.unique(faces)], samples.corners.mean(axis=1)])
    other = SurfaceDistance(other_vertices, other_faces, spacing)
    gap, rest = np.empty(len(points)), np.arange(len(points))
    for count in _NEAREST_SAMPLES:
        gap[rest] = other.measure(points[rest], count)
        # all samples near a point may be on slivers, while it is on a large face
        farthest = rest[np.argsort(gap[rest])[-_EXACT_COUNT:]]
        gap[farthest] = other.find_nearer(points[farthest], gap[farthest])[0]
        # only what is farther than these may be the farthest with more samples
        rest = np.flatnonzero(gap > gap[farthest].max(initial=0.0))
    return float(gap.max())


def _measure_volume(shape: Any) -> float:
    from OCP.BRepGProp import BRepGProp
    from OCP.GProp import GProp_GProps

    properties = GProp_GProps()
    BRepGProp.VolumeProperties_s(shape, properties)
    return float(properties.Mass())
