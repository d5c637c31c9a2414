"""USDZ reader: OpenUSD composes the stage; its meshes become arrays."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from pxr import Tf, Usd, UsdGeom, UsdUtils

from meshhub import EmptyModel, Frame, Mesh, ModelTooComplex, NoOptions, Part, Scene, Source, UnreadableFile
from meshhub.model.capabilities import MILLIMETERS_PER, Up
from meshhub.model.scene import Float64
from meshhub.toolkit.names import single_line
from meshhub.toolkit.visibility import report_hidden
from meshhub_usdz.appearance import ReadAppearance
from meshhub_usdz.meshes import earliest, read_mesh, read_shape
from meshhub_usdz.package import unpack

_MAX_PRIMS_COUNT = 200_000
"""Maximum visited prims, because nested instances multiply, so that a small file can describe billions."""

_MAX_PARTS_COUNT = 100_000
"""Maximum placed meshes; point instancers multiply as well."""

_MAX_DEPTH_COUNT = 128
"""Maximum nested prims; real hierarchies have ten to twenty."""

_UNIT_TOLERANCE_RATIO = 1e-6
"""Relative difference up to which a unit counts as a known one; 0.0254000001 is an inch."""

_SHOWN_PURPOSES = ("default", "render")
"""Purposes of prims that belong to the model; proxies and guides would duplicate it."""


def read(source: Source, options: NoOptions) -> Scene:  # noqa: ARG001
    """Read a USDZ package or a USD layer.

    Returns:
        Scene in the unit and with the up axis of the file, at the first frame of an animation.
    Raises:
        UnreadableFile: The file is damaged, or not USD.
        UnsafeArchive: The archive exceeds a limit.
        ExternalReference: The file needs layers that are not in it.
        EmptyModel: The stage has no visible triangles.
        ModelTooComplex: The stage has too many prims or instances.
    """
    # collects the messages of OpenUSD, which it would print
    delegate = UsdUtils.CoalescingDiagnosticDelegate()
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name).resolve()
            stage = Usd.Stage.Open(str(unpack(source, folder)))
            return _read_stage(stage, source, folder)
    except Tf.ErrorException:
        raise UnreadableFile("the layers of the file are damaged or do not fit together; export it again") from None
    finally:
        delegate.TakeUncoalescedDiagnostics()


def _read_stage(stage: Any, source: Source, folder: Path) -> Scene:
    def read_file(asset: Any) -> tuple[bytes, str] | None:
        """Return a texture of the package, or a companion of a single layer."""
        resolved = Path(asset.resolvedPath or "")
        if asset.resolvedPath and resolved.is_file() and resolved.resolve().is_relative_to(folder):
            return resolved.read_bytes(), resolved.name
        sibling = source.sibling(asset.path)
        return None if sibling is None else (sibling.read(), Path(sibling.name).name)

    frame, matrix = _read_frame(stage)
    builder = _Builder(stage, ReadAppearance(read_file))
    builder.visit(stage.GetPseudoRoot(), matrix, ())
    hidden_count = builder.hidden_count
    is_all_hidden = hidden_count > 0 and not builder.parts
    if is_all_hidden:
        builder = _Builder(stage, ReadAppearance(read_file), reads_hidden=True)
        builder.visit(stage.GetPseudoRoot(), matrix, ())
    report_hidden(hidden_count, is_read=is_all_hidden)
    if not builder.parts:
        raise EmptyModel("the stage has no visible triangles; export the model again")
    appearance = builder.appearance
    return Scene(
        tuple(builder.meshes),
        tuple(builder.parts),
        materials=tuple(appearance.materials),
        images=tuple(appearance.images),
        frame=frame,
    )


def _read_frame(stage: Any) -> tuple[Frame, Float64]:
    """Return the frame of the scene, and the matrix from the unit of the stage to it. Raises UnreadableFile."""
    up: Up = "z" if UsdGeom.GetStageUpAxis(stage) == "Z" else "y"
    mm = UsdGeom.GetStageMetersPerUnit(stage) * MILLIMETERS_PER["m"]
    if not (np.isfinite(mm) and mm > 0):
        raise UnreadableFile(f"metersPerUnit is {mm / 1000:g}, not a positive number; correct it in the file")
    for name, millimeters in MILLIMETERS_PER.items():
        if abs(mm / millimeters - 1) < _UNIT_TOLERANCE_RATIO:
            return Frame(name, up), np.eye(4)
    return Frame("mm", up), np.diag([mm, mm, mm, 1.0])


class _Builder:
    """Meshes and parts of a stage.

    Attributes:
        meshes: Meshes; instances of a prototype share one.
        parts: Placed meshes.
        hidden_count: Prims that were left out with those below them, because they are invisible.
    """

    def __init__(self, stage: Any, appearance: ReadAppearance, *, reads_hidden: bool = False) -> None:
        self.hidden_count = 0
        self._reads_hidden = reads_hidden
        self.meshes: list[Mesh] = []
        self.parts: list[Part] = []
        self.appearance = appearance
        self._root = stage.GetDefaultPrim()
        self._time = earliest(stage)
        self._prims_count = 0
        self._read: dict[str, tuple[int, int | None] | None] = {}

    def visit(self, prim: Any, parent: Float64, path: tuple[str, ...]) -> None:
        """Add the parts of a prim and its descendants; `parent` is the matrix of its parent."""
        self._prims_count += 1
        if self._prims_count > _MAX_PRIMS_COUNT:
            raise ModelTooComplex(f"the stage has more than {_MAX_PRIMS_COUNT} prims; merge or split the model")
        if prim.GetPath().pathElementCount > _MAX_DEPTH_COUNT:
            raise UnreadableFile(f"prims are nested more than {_MAX_DEPTH_COUNT} deep; simplify the hierarchy")
        matrix = self._place(prim, parent)
        if matrix is None:
            return
        if prim.IsA(UsdGeom.Gprim):
            self._add_mesh(prim, matrix, path)
        elif prim.IsA(UsdGeom.PointInstancer):
            self._add_instances(prim, matrix, path)
            return
        name = _name(prim)
        is_group = prim.IsA(UsdGeom.Imageable) and prim != self._root and not prim.IsA(UsdGeom.Gprim)
        inner = (*path, name) if is_group else path
        for child in prim.GetFilteredChildren(Usd.TraverseInstanceProxies()):
            self.visit(child, matrix, inner)

    def _place(self, prim: Any, parent: Float64) -> Float64 | None:
        """Return the matrix of a prim; None if it is not shown. Raises UnreadableFile."""
        imageable = UsdGeom.Imageable(prim)
        if not imageable:
            return parent
        if imageable.GetVisibilityAttr().Get(self._time) == "invisible" and not self._reads_hidden:
            self.hidden_count += 1
            return None
        if imageable.ComputePurpose() not in _SHOWN_PURPOSES:
            return None
        xform = UsdGeom.Xformable(prim)
        if not xform:
            return parent
        own = np.array(xform.GetLocalTransformation(self._time)).T
        if not np.isfinite(own).all():
            raise UnreadableFile(f"prim {prim.GetName()[:40]!r} has a transform that is not finite")
        matrix: Float64 = own if xform.GetResetXformStack() else parent @ own
        return matrix

    def _add_mesh(self, prim: Any, matrix: Float64, path: tuple[str, ...]) -> None:
        shared = prim.GetPrimInPrototype() if prim.IsInstanceProxy() else prim
        key = str(shared.GetPath())
        if key not in self._read:
            read_prim = read_mesh if prim.IsA(UsdGeom.Mesh) else read_shape
            mesh, material = read_prim(prim, self._time, self.appearance)
            self._read[key] = None if mesh is None else (len(self.meshes), material)
            if mesh is not None:
                self.meshes.append(mesh)
        read = self._read[key]
        if read is None:
            return
        if len(self.parts) >= _MAX_PARTS_COUNT:
            raise ModelTooComplex(f"the stage places more than {_MAX_PARTS_COUNT} meshes; split the model")
        name = _name(prim)
        if prim.GetParent().IsInstance():
            # an instance has the name of the object, its prototype that of the mesh
            name, path = path[-1] if path else name, path[:-1]
        self.parts.append(Part(read[0], matrix, name, path, read[1]))

    def _add_instances(self, prim: Any, matrix: Float64, path: tuple[str, ...]) -> None:
        """Add the instances of a point instancer."""
        instancer = UsdGeom.PointInstancer(prim)
        transforms = instancer.ComputeInstanceTransformsAtTime(
            self._time,
            self._time,
            UsdGeom.PointInstancer.ExcludeProtoXform,
            UsdGeom.PointInstancer.IgnoreMask,
        )
        # empty if all instances are shown
        mask = instancer.ComputeMaskAtTime(self._time) or [True] * len(transforms)
        indices = instancer.GetProtoIndicesAttr().Get(self._time) or ()
        targets = [prim.GetStage().GetPrimAtPath(each) for each in instancer.GetPrototypesRel().GetTargets()]
        if len(transforms) > _MAX_PARTS_COUNT:
            raise ModelTooComplex(f"a point instancer has {len(transforms)} instances, more than {_MAX_PARTS_COUNT}")
        for index, transform, is_shown in zip(indices, transforms, mask, strict=False):
            if is_shown and 0 <= index < len(targets) and targets[index]:
                self.visit(targets[index], matrix @ np.array(transform).T, (*path, _name(prim)))


def _name(prim: Any) -> str:
    return single_line(prim.GetDisplayName() or prim.GetName())
