"""A process of its own that asks OpenCASCADE about STEP files: `python step_judge.py shapes|all file …`.

A line of JSON each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any


def judged(paths: list[Path], seconds: float = 120, *, shapes_only: bool = False) -> list[dict[str, Any]]:
    """What OpenCASCADE says of each file; asked in another process, because it may crash or hang.

    shapes_only: leave out the assembly, names and colours
    """
    asked = subprocess.run(
        [sys.executable, __file__, "shapes" if shapes_only else "all", *map(str, paths)],
        capture_output=True,
        text=True,
        timeout=seconds,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    lines = [line for line in asked.stdout.splitlines() if line.startswith("{")]
    if len(lines) != len(paths):
        raise AssertionError(f"OpenCASCADE stopped with {asked.returncode}: {asked.stderr[-500:]}")
    return [json.loads(line) for line in lines]


def _judge(path: str) -> dict[str, Any]:
    from OCP.BRepAdaptor import BRepAdaptor_Surface
    from OCP.BRepCheck import BRepCheck_Analyzer
    from OCP.BRepGProp import BRepGProp
    from OCP.collections import IndexedMap_TopoDS_Shape_TopTools_ShapeMapHasher as Distinct
    from OCP.GProp import GProp_GProps
    from OCP.IFSelect import IFSelect_RetDone
    from OCP.ShapeAnalysis import ShapeAnalysis_ShapeTolerance
    from OCP.STEPControl import STEPControl_Reader
    from OCP.TopAbs import TopAbs_EDGE, TopAbs_FACE, TopAbs_SHELL, TopAbs_SOLID, TopAbs_VERTEX
    from OCP.TopExp import TopExp
    from OCP.TopoDS import TopoDS

    reader = STEPControl_Reader()
    if reader.ReadFile(path) != IFSelect_RetDone:
        return {"error": "not read"}
    reader.TransferRoots()
    shape = reader.OneShape()
    if shape.IsNull():
        return {"error": "no shape"}

    def distinct(kind: Any) -> list[Any]:
        found = Distinct()
        TopExp.MapShapes_s(shape, kind, found)
        return [found.FindKey(index) for index in range(1, found.Extent() + 1)]

    solids = distinct(TopAbs_SOLID)
    volumes = []
    for solid in solids:
        properties = GProp_GProps()
        BRepGProp.VolumeProperties_s(solid, properties)
        volumes.append(properties.Mass())
    kinds, radii = [], []
    for face in distinct(TopAbs_FACE):
        surface = BRepAdaptor_Surface(TopoDS.Face(face))
        kinds.append(str(surface.GetType()).rsplit("_", 1)[-1])
        if kinds[-1] == "Cylinder":
            radii.append(surface.Cylinder().Radius())
    return {
        "valid": BRepCheck_Analyzer(shape).IsValid(),
        "valid_solids": sum(BRepCheck_Analyzer(solid).IsValid() for solid in solids),
        "solids": len(solids),
        "shells": len(distinct(TopAbs_SHELL)),
        "faces": len(kinds),
        "edges": len(distinct(TopAbs_EDGE)),
        "vertices": len(distinct(TopAbs_VERTEX)),
        "kinds": dict(Counter(kinds)),
        "cylinder_radii": sorted(radii),
        "volumes": volumes,
        "tolerance": ShapeAnalysis_ShapeTolerance().Tolerance(shape, 1),
    }


def _tree(path: str) -> dict[str, Any]:
    """Instances with the names above them, where they stand, and in which colour."""
    from OCP.collections import Sequence_TDF_Label
    from OCP.Quantity import Quantity_ColorRGBA
    from OCP.STEPCAFControl import STEPCAFControl_Reader
    from OCP.TCollection import TCollection_ExtendedString
    from OCP.TDataStd import TDataStd_Name
    from OCP.TDF import TDF_Label
    from OCP.TDocStd import TDocStd_Document
    from OCP.TopAbs import TopAbs_FACE
    from OCP.XCAFApp import XCAFApp_Application
    from OCP.XCAFDoc import XCAFDoc_ColorGen, XCAFDoc_ColorSurf, XCAFDoc_ColorTool, XCAFDoc_DocumentTool
    from OCP.XCAFDoc import XCAFDoc_ShapeTool as Tool

    document = TDocStd_Document(TCollection_ExtendedString("BinXCAF"))
    XCAFApp_Application.GetApplication_s().InitDocument(document)
    reader = STEPCAFControl_Reader()
    reader.SetNameMode(True)
    reader.SetColorMode(True)
    reader.ReadFile(path)
    reader.Transfer(document)

    def name(label: Any) -> str:
        attribute = TDataStd_Name()
        return attribute.Get().ToExtString() if label.FindAttribute(TDataStd_Name.GetID_s(), attribute) else ""

    def color(label: Any) -> list[float] | None:
        value = Quantity_ColorRGBA()
        for kind in (XCAFDoc_ColorSurf, XCAFDoc_ColorGen):
            if XCAFDoc_ColorTool.GetColor_s(label, kind, value):
                rgb = value.GetRGB()
                linear = [rgb.Red(), rgb.Green(), rgb.Blue()]
                encoded = [12.92 * c if c <= 0.0031308 else 1.055 * c ** (1 / 2.4) - 0.055 for c in linear]
                return [*(round(c, 4) for c in encoded), round(value.Alpha(), 4)]
        return None

    def labels(fill: Any) -> list[Any]:
        found = Sequence_TDF_Label()
        fill(found)
        return [found.Value(index) for index in range(1, found.Length() + 1)]

    instances: list[dict[str, Any]] = []

    def walk(label: Any, above: Any, names: list[str]) -> None:
        product = label
        if Tool.IsReference_s(label):
            product = TDF_Label()
            Tool.GetReferredShape_s(label, product)
        here = Tool.GetLocation_s(label)
        place = here if above is None else above.Multiplied(here)
        if Tool.IsAssembly_s(product):
            for child in labels(lambda found: Tool.GetComponents_s(product, found, False)):
                walk(child, place, [*names, name(product)])
            return
        moved = place.Transformation()
        parts = labels(lambda found: Tool.GetSubShapes_s(product, found))
        faces = [color(part) for part in parts if Tool.GetShape_s(part).ShapeType() == TopAbs_FACE]
        instances.append(
            {
                "path": names,
                "name": name(label),
                "product": name(product),
                "matrix": [[round(moved.Value(row, column), 6) for column in range(1, 5)] for row in range(1, 4)],
                "color": color(product),
                "face_colors": [one for one in faces if one is not None],
            }
        )

    for root in labels(XCAFDoc_DocumentTool.ShapeTool_s(document.Main()).GetFreeShapes):
        walk(root, None, [])
    return {"instances": instances}


if __name__ == "__main__":
    for argument in sys.argv[2:]:
        print(json.dumps(_judge(argument) | ({} if sys.argv[1] == "shapes" else _tree(argument))), flush=True)  # noqa: T201
