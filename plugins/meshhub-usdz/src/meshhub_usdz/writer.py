"""USDZ writer: one binary layer and its textures, laid out for previews in augmented reality."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pxr import Gf, Sdf, Usd, UsdGeom, UsdShade, Vt

from meshhub import Mesh, NoOptions, Part, Scene, Target, note
from meshhub.toolkit.colors import decode_srgb, multiply_colors
from meshhub.toolkit.names import single_line
from meshhub_usdz.appearance import DEFAULT_UV, WrittenAppearance
from meshhub_usdz.package import pack

_ROOT = "/root"
_LAYER_NAME = "model.usdc"


def write(scene: Scene, target: Target, options: NoOptions) -> None:  # noqa: ARG001
    """Write a scene in meters, Y up, as USDZ; a mesh with several parts is a prototype of instances."""
    stage = Usd.Stage.CreateInMemory()
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    root = UsdGeom.Xform.Define(stage, _ROOT).GetPrim()
    Usd.ModelAPI(root).SetKind("component")
    _set_name(root, scene.name)
    stage.SetDefaultPrim(root)
    files = _StageWriter(scene, stage).write()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / _LAYER_NAME
        stage.GetRootLayer().Export(str(path))
        files = {_LAYER_NAME: path.read_bytes(), **files}
    with target.open() as file:
        file.write(pack(files))


def _set_name(prim: Any, name: str) -> None:
    """Set the name for people; the names of prims are identifiers."""
    if single_line(name):
        prim.SetDisplayName(single_line(name))


class _StageWriter:
    """Prims of a scene."""

    def __init__(self, scene: Scene, stage: Any) -> None:
        self._scene = scene
        self._stage = stage
        self._appearance = WrittenAppearance(stage, _ROOT + "/materials", scene.images)
        self._materials: dict[int, Any] = {}
        self._prototypes: dict[tuple[int, int | None], str] = {}
        self._groups: dict[tuple[str, ...], str] = {(): _ROOT}

    def write(self) -> dict[str, bytes]:
        """Define all prims, and return the textures by their path in the package."""
        parts = [part for part in self._scene.parts if len(self._scene.meshes[part.mesh].faces)]
        uses = Counter((part.mesh, part.material) for part in parts)
        if self._scene.used_materials():
            UsdGeom.Scope.Define(self._stage, _ROOT + "/materials")
        for number, part in enumerate(parts):
            path = f"{self._group(part.path)}/part_{number}"
            if uses[part.mesh, part.material] > 1:
                prim = UsdGeom.Xform.Define(self._stage, path).GetPrim()
                prim.GetReferences().AddInternalReference(self._prototype(part))
                prim.SetInstanceable(True)
                name = part.name
            else:
                prim = self._define_mesh(path, self._scene.meshes[part.mesh], part)
                name = part.name or self._scene.meshes[part.mesh].name
            _set_name(prim, name)
            if not np.array_equal(part.transform, np.eye(4)):
                UsdGeom.Xformable(prim).AddTransformOp().Set(Gf.Matrix4d(part.transform.T.tolist()))
        return self._appearance.files

    def _group(self, names: tuple[str, ...]) -> str:
        """Return the path of the group of a part; equal groups share one path."""
        if names not in self._groups:
            path = f"{self._group(names[:-1])}/group_{len(self._groups)}"
            _set_name(UsdGeom.Xform.Define(self._stage, path).GetPrim(), names[-1])
            self._groups[names] = path
        return self._groups[names]

    def _prototype(self, part: Part) -> str:
        """Return the path of the prototype of instances: a class, which is not shown itself."""
        key = (part.mesh, part.material)
        if key not in self._prototypes:
            path = f"{_ROOT}/prototypes/prototype_{len(self._prototypes)}"
            if not self._prototypes:
                self._stage.CreateClassPrim(_ROOT + "/prototypes")
            UsdGeom.Xform.Define(self._stage, path)
            mesh = self._scene.meshes[part.mesh]
            _set_name(self._define_mesh(path + "/mesh", mesh, part), mesh.name)
            self._prototypes[key] = path
        return self._prototypes[key]

    def _define_mesh(self, path: str, mesh: Mesh, part: Part) -> Any:
        """Define a mesh with its attributes and materials, and return its prim."""
        geometry = UsdGeom.Mesh.Define(self._stage, path)
        geometry.CreateSubdivisionSchemeAttr("none")
        points = mesh.vertices.astype(np.float32)
        geometry.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(points))
        extent = np.stack([points.min(axis=0), points.max(axis=0)])
        geometry.CreateExtentAttr(Vt.Vec3fArray.FromNumpy(extent))
        geometry.CreateFaceVertexCountsAttr(Vt.IntArray.FromNumpy(np.full(len(mesh.faces), 3, np.int32)))
        geometry.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(np.ascontiguousarray(mesh.faces.ravel())))
        if mesh.normals is not None:
            geometry.CreateNormalsAttr(Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(mesh.normals)))
            geometry.SetNormalsInterpolation(UsdGeom.Tokens.vertex)
        if mesh.uv is not None:
            primvars = UsdGeom.PrimvarsAPI(geometry)
            uv = primvars.CreatePrimvar(DEFAULT_UV, Sdf.ValueTypeNames.TexCoord2fArray, UsdGeom.Tokens.vertex)
            uv.Set(Vt.Vec2fArray.FromNumpy(np.ascontiguousarray(mesh.uv)))
        index = _material_of_faces(mesh, part)
        if mesh.colors is not None and self._write_colors(geometry, mesh, index):
            return geometry.GetPrim()
        self._bind(geometry, index)
        return geometry.GetPrim()

    def _write_colors(self, geometry: Any, mesh: Mesh, index: NDArray[np.int32]) -> bool:
        """Write vertex colors, multiplied by the colors of materials; False if a texture hides them."""
        assert mesh.colors is not None
        used = [self._scene.materials[each] for each in np.unique(index).tolist() if each >= 0]
        if any(material.base_color_image is not None for material in used):
            note("vertex_colors_dropped", "dropped the vertex colors of a mesh with a texture: USD shows one of them")
            return False
        colors, interpolation = mesh.colors, UsdGeom.Tokens.vertex
        if used:
            palette = np.array([*(material.base_color for material in self._scene.materials), (1.0, 1.0, 1.0, 1.0)])
            factors = np.rint(palette[index] * 255).astype(np.uint8)
            colors = multiply_colors(mesh.colors[mesh.faces], factors[:, None]).reshape(-1, 4)
            interpolation = UsdGeom.Tokens.faceVarying
        linear = decode_srgb(colors[:, :3] / 255).astype(np.float32)
        geometry.CreateDisplayColorPrimvar(interpolation).Set(Vt.Vec3fArray.FromNumpy(linear))
        if (colors[:, 3] < 255).any():
            alpha = (colors[:, 3] / 255).astype(np.float32)
            geometry.CreateDisplayOpacityPrimvar(interpolation).Set(Vt.FloatArray.FromNumpy(alpha))
        return True

    def _bind(self, geometry: Any, index: NDArray[np.int32]) -> None:
        """Bind one material to the mesh, or several to subsets of its faces."""
        used = [each for each in np.unique(index).tolist() if each >= 0]
        if any(self._scene.materials[each].double_sided for each in used):
            geometry.CreateDoubleSidedAttr(True)
        if len(used) == 1 and (index >= 0).all():
            UsdShade.MaterialBindingAPI.Apply(geometry.GetPrim()).Bind(self._material(used[0]))
            return
        for each in used:
            faces = np.flatnonzero(index == each).astype(np.int32)
            binding = UsdShade.MaterialBindingAPI.Apply(geometry.GetPrim())
            subset = binding.CreateMaterialBindSubset(f"faces_{each}", Vt.IntArray.FromNumpy(faces))
            UsdShade.MaterialBindingAPI.Apply(subset.GetPrim()).Bind(self._material(each))
        if used:
            family = UsdGeom.Tokens.partition if (index >= 0).all() else UsdGeom.Tokens.nonOverlapping
            UsdShade.MaterialBindingAPI(geometry.GetPrim()).SetMaterialBindSubsetsFamilyType(family)

    def _material(self, index: int) -> Any:
        if index not in self._materials:
            self._materials[index] = self._appearance.define(index, self._scene.materials[index])
        return self._materials[index]


def _material_of_faces(mesh: Mesh, part: Part) -> NDArray[np.int32]:
    """Return the material of each face, -1 for none."""
    default = -1 if part.material is None else part.material
    if mesh.face_material is None:
        return np.full(len(mesh.faces), default, np.int32)
    return np.where(mesh.face_material < 0, default, mesh.face_material).astype(np.int32)
