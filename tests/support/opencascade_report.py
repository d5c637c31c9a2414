"""Description of STEP files by OpenCASCADE, in a separate process: `python opencascade_report.py`.

The script reads a line of JSON for each file, its path and whether only its shapes matter, and prints one.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any


class _Judge:
    """Process with OpenCASCADE for the files of all tests, because loading the libraries takes a second."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        atexit.register(self.close)

    def judge(self, path: Path, *, shapes_only: bool) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps([str(path), shapes_only]) + "\n")
        self._process.stdin.flush()
        # OpenCASCADE also prints messages
        for line in self._process.stdout:
            if line.startswith("{"):
                return dict(json.loads(line))
        raise AssertionError(f"OpenCASCADE stopped with {self._process.wait()} at {path.name}")

    def kill(self) -> None:
        self._process.kill()

    def close(self) -> None:
        atexit.unregister(self.close)
        self._process.kill()
        self._process.communicate()


_judges: list[_Judge] = []
"""The running judge, or nothing."""


def judge_files(paths: list[Path], seconds: float = 600, *, shapes_only: bool = False) -> list[dict[str, Any]]:
    """Return how OpenCASCADE reads each file; it runs in another process, because it may crash or hang.

    Args:
        paths: STEP files.
        seconds: Timeout for all files.
        shapes_only: Leave out the assembly, names and colors.
    """
    judge = _judges.pop() if _judges else _Judge()
    timer = threading.Timer(seconds, judge.kill)
    timer.start()
    try:
        verdicts = [judge.judge(path, shapes_only=shapes_only) for path in paths]
    except BaseException:
        judge.close()
        raise
    finally:
        timer.cancel()
    _judges.append(judge)
    return verdicts


def measure_volume(path: Path) -> float:
    """Return the volume (mm³) between fine triangles; the integral over B-spline faces is off by up to 1.5 %."""
    from meshhub.builtin_plugins.step.kernel.kernel_check import read_back

    verdict = read_back(path.read_bytes(), 60)
    assert verdict is not None
    return sum(solid.volume for solid in verdict.solids)


def _judge_shapes(path: str) -> dict[str, Any]:
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
        shapes = Distinct()
        TopExp.MapShapes_s(shape, kind, shapes)
        return [shapes.FindKey(index) for index in range(1, shapes.Extent() + 1)]

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


def _judge_assembly(path: str) -> dict[str, Any]:
    """Return the instances with the names above them, their placements and their colors."""
    from OCP.STEPCAFControl import STEPCAFControl_Reader
    from OCP.TCollection import TCollection_ExtendedString
    from OCP.TDocStd import TDocStd_Document
    from OCP.XCAFApp import XCAFApp_Application
    from OCP.XCAFDoc import XCAFDoc_DocumentTool

    document = TDocStd_Document(TCollection_ExtendedString("BinXCAF"))
    XCAFApp_Application.GetApplication_s().InitDocument(document)
    reader = STEPCAFControl_Reader()
    reader.SetNameMode(True)
    reader.SetColorMode(True)
    reader.ReadFile(path)
    reader.Transfer(document)
    instances: list[dict[str, Any]] = []
    for root in _list_labels(XCAFDoc_DocumentTool.ShapeTool_s(document.Main()).GetFreeShapes):
        _collect_instances(root, None, [], instances)
    return {"instances": instances}


def _collect_instances(label: Any, above: Any, names: list[str], instances: list[dict[str, Any]]) -> None:
    """Append all instances below a label; `above` is the kernel's location of the assembly, `names` its path."""
    from OCP.TDF import TDF_Label
    from OCP.TopAbs import TopAbs_FACE
    from OCP.XCAFDoc import XCAFDoc_ShapeTool as Tool

    product = label
    if Tool.IsReference_s(label):
        product = TDF_Label()
        Tool.GetReferredShape_s(label, product)
    location = Tool.GetLocation_s(label)
    if above is not None:
        location = above.Multiplied(location)
    if Tool.IsAssembly_s(product):
        for child in _list_labels(lambda sequence: Tool.GetComponents_s(product, sequence, False)):
            _collect_instances(child, location, [*names, _read_name(product)], instances)
        return
    transformation = location.Transformation()
    parts = _list_labels(lambda sequence: Tool.GetSubShapes_s(product, sequence))
    colors = [_read_color(part) for part in parts if Tool.GetShape_s(part).ShapeType() == TopAbs_FACE]
    instances.append(
        {
            "path": names,
            "name": _read_name(label),
            "product": _read_name(product),
            "matrix": [[round(transformation.Value(row, column), 6) for column in range(1, 5)] for row in range(1, 4)],
            "color": _read_color(product),
            "face_colors": [color for color in colors if color is not None],
        }
    )


def _list_labels(fill: Callable[[Any], None]) -> list[Any]:
    from OCP.collections import Sequence_TDF_Label

    sequence = Sequence_TDF_Label()
    fill(sequence)
    return [sequence.Value(index) for index in range(1, sequence.Length() + 1)]


def _read_name(label: Any) -> str:
    from OCP.TDataStd import TDataStd_Name

    attribute = TDataStd_Name()
    return attribute.Get().ToExtString() if label.FindAttribute(TDataStd_Name.GetID_s(), attribute) else ""


def _read_color(label: Any) -> list[float] | None:
    """Return the sRGB color and opacity of a label; the kernel stores linear light (IEC 61966-2-1)."""
    from OCP.Quantity import Quantity_ColorRGBA
    from OCP.XCAFDoc import XCAFDoc_ColorGen, XCAFDoc_ColorSurf, XCAFDoc_ColorTool

    value = Quantity_ColorRGBA()
    for kind in (XCAFDoc_ColorSurf, XCAFDoc_ColorGen):
        if XCAFDoc_ColorTool.GetColor_s(label, kind, value):
            rgb = value.GetRGB()
            linear = [rgb.Red(), rgb.Green(), rgb.Blue()]
            encoded = [12.92 * c if c <= 0.0031308 else 1.055 * c ** (1 / 2.4) - 0.055 for c in linear]
            return [*(round(c, 4) for c in encoded), round(value.Alpha(), 4)]
    return None


if __name__ == "__main__":
    for request in sys.stdin:
        file, is_shapes_only = json.loads(request)
        assembly = {} if is_shapes_only else _judge_assembly(file)
        print(json.dumps(_judge_shapes(file) | assembly), flush=True)  # noqa: T201
