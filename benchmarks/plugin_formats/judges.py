"""Other programs that read the formats. Each writes what it reads as STL, or its figures as JSON."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

from benchmarks.plugin_formats.measures import Measures, measure_surface, read_figures

DEADLINE_S = 120
"""Seconds for one file of a program."""

PROGRAMS = Path(__file__).parent / "programs"

PYTHON = os.environ.get("JUDGES_PYTHON", sys.executable)
"""Python with the packages of the judges."""

BLENDER_PYTHON = os.environ.get("BLENDER_PYTHON", PYTHON)
"""Python with Blender as a module, which needs an older numpy than meshhub."""

ASSIMP = shutil.which("assimp", path=os.defpath) or "assimp"
"""Program of the system, not that of the library by which meshhub-assimp reads."""

NODE_MODULES = Path(os.environ.get("JUDGES_NODE_MODULES", "node_modules"))
"""Folder with three, linkedom and web-ifc."""


class Judge(ABC):
    """Program that reads files."""

    def __init__(self, name: str, suffix: str = ".stl") -> None:
        self.name = name
        self.suffix = suffix

    def read(self, path: Path) -> Measures | None:
        """Return the figures of a file; None if the program cannot read it, or finds no surface."""
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / f"out{self.suffix}"
            self.write(path, out)
            if not out.exists() or not out.stat().st_size:
                return None
            return measure_surface(out) if self.suffix == ".stl" else read_figures(out)

    @abstractmethod
    def write(self, source: Path, out: Path) -> None:
        """Write the surface, or the figures, of a file; without any, write nothing."""

    @abstractmethod
    def is_installed(self) -> bool: ...


class Program(Judge):
    """Program of the system, or script of Node.js, which starts for each file."""

    def __init__(
        self, name: str, command: Callable[[Path, Path], list[str]], needs: str | Path, suffix: str = ".stl"
    ) -> None:
        super().__init__(name, suffix)
        self.command = command
        self.needs = needs

    def write(self, source: Path, out: Path) -> None:
        run_program(self.command(source, out))

    def is_installed(self) -> bool:
        return self.needs.is_dir() if isinstance(self.needs, Path) else shutil.which(self.needs) is not None


class Module(Judge):
    """Module of `programs/` in a process of Python that reads one file after the other."""

    def __init__(
        self, name: str, module: str, needs: str, word: str = "", python: str = PYTHON, suffix: str = ".stl"
    ) -> None:
        super().__init__(name, suffix)
        self.needs = needs
        self.command = [python, str(PROGRAMS / "loop.py"), module, *word.split()]
        self.process: subprocess.Popen[str] | None = None

    def write(self, source: Path, out: Path) -> None:
        if self.process is None:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{source}\t{out}\n")
        self.process.stdin.flush()
        deadline = threading.Timer(DEADLINE_S, self.process.kill)
        deadline.start()
        # the lines end with the process
        is_alive = any(line == f"{out}\n" for line in self.process.stdout)
        deadline.cancel()
        if not is_alive:
            self.process.wait()
            self.process = None

    def is_installed(self) -> bool:
        return self.command[0] != sys.executable or importlib.util.find_spec(self.needs) is not None


def run_program(command: list[str]) -> None:
    """Run a program; one that fails or exceeds the deadline writes no result."""
    silent = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=silent, stdout=silent, stderr=silent, start_new_session=True) as process:
        try:
            process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            # some programs are scripts that start the real one
            os.killpg(process.pid, signal.SIGKILL)


def _slice_to_stl(source: Path, out: Path) -> list[str]:
    if source.suffix == ".amf":
        # PrusaSlicer reads the angles of text files, which ISO/ASTM 52915 defines in degrees, as radians
        data = source.read_bytes()
        source = out.with_name(source.name)
        source.write_bytes(_ANGLE.sub(lambda match: b"%s%.9f<" % (match[1], math.radians(float(match[2]))), data))
    return ["prusa-slicer", "--no-ensure-on-bed", "--export-stl", "-o", str(out), str(source)]


_ANGLE = re.compile(rb"(<r[xyz]>)\s*([-+.\deE]+)\s*<")
"""Rotation of an AMF instance about an axis."""


class Slicer(Judge):
    """Length of filament that the slicer reports in its G-code."""

    def write(self, source: Path, out: Path) -> None:
        text = source.read_text("utf-8", "replace")
        length = re.search(r"^; filament used(?: \[mm\])? = ([\d.]+)", text, re.MULTILINE)
        diameter = re.search(r"^; filament_diameter = ([\d.]+)", text, re.MULTILINE)
        if length and diameter:
            out.write_text(json.dumps({"volume": float(length[1]) * math.pi / 4 * float(diameter[1]) ** 2}))

    def is_installed(self) -> bool:
        return True


def _node(script: str) -> Callable[[Path, Path], list[str]]:
    return lambda source, out: ["node", str(PROGRAMS / script), str(source), str(out)]


def _integrate_in_freecad(source: Path, out: Path) -> list[str]:
    places = [f"JUDGED_FILE={source}", f"JUDGED_RESULT={out}"]
    return ["env", *places, "freecadcmd", str(PROGRAMS / "brep_masses.py")]


OWN = sys.executable
"""Python of meshhub, with the packages that its plug-ins need as well."""

JUDGES = {
    judge.name: judge
    for judge in (
        Program("assimp", lambda source, out: [ASSIMP, "export", str(source), str(out), "-fstlb"], ASSIMP),
        Program("PrusaSlicer", _slice_to_stl, "prusa-slicer"),
        Program("OpenSceneGraph", lambda source, out: ["osgconv", str(source), str(out)], "osgconv"),
        Program("three.js", _node("three.mjs"), NODE_MODULES / "three"),
        Program("web-ifc", _node("ifc.mjs"), NODE_MODULES / "web-ifc"),
        Program("FreeCAD, solids", _integrate_in_freecad, "freecadcmd", ".json"),
        Module("MeshLab", "meshlab", "pymeshlab", python=OWN),
        Module("Blender", "blender", "bpy", python=BLENDER_PYTHON),
        Module("rhino3dm", "rhino", "rhino3dm", python=OWN),
        Module("LightUSD", "usd", "lightusd", python=OWN),
        Module("Gmsh, solids", "solids", "gmsh", python=OWN, suffix=".json"),
        Module("trimesh", "outlines", "trimesh", python=OWN, suffix=".json"),
        Module("resvg", "painting", "resvg_py", suffix=".json"),
        Module("Printrun", "filament", "printrun", suffix=".json"),
        Slicer("slicer", ".json"),
        Module("VTK", "cells", "vtk", "vtk"),
        Module("Gmsh", "cells", "vtk", "gmsh"),
        Module("MEDCoupling", "cells", "medcoupling", "med"),
        Module("Netgen", "cells", "netgen", "netgen"),
        Module("FreeCAD", "cells", "vtk", "freecad"),
        Module("plain reader", "cells", "vtk", "plain"),
    )
}
"""By name."""


def find_usd_faults(path: Path) -> list[str]:
    """Return the faults that OpenUSD's validators find, those of packages and of previews included."""
    from pxr import Usd, UsdValidation

    validators = UsdValidation.ValidationRegistry().GetOrLoadAllValidators()
    errors = UsdValidation.ValidationContext(validators).Validate(Usd.Stage.Open(str(path)))
    return [f"{error.GetName()}: {error.GetMessage()[:80]}" for error in errors]
