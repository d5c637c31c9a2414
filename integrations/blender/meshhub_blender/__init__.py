"""Extension of Blender: read and write models by meshhub, and repair meshes.

It runs the program `meshhub`, whose path is in its preferences, and exchanges glTF with it. Blender's unit is then the
meter: a part of 40 mm is 0.04 units high.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import bpy
from bpy.props import BoolProperty, IntProperty, StringProperty
from bpy_extras.io_utils import ExportHelper, ImportHelper

PATTERNS = "*.3mf;*.step;*.stp;*.stl;*.obj;*.ply;*.glb;*.gltf"
"""Files of built-in formats; others can be read by their full name."""

TIMEOUT_S = 600.0
"""Seconds for one conversion, in which Blender waits."""

MARK = re.compile(r"meshhub-(\d+)(?:\.\d+)?")
"""Name of a material in an exchanged file; Blender adds a number to one that exists."""


class MeshhubFailed(Exception):
    """meshhub ended with an error; the message is for people."""


class Preferences(bpy.types.AddonPreferences):
    """Where the program is."""

    bl_idname = __package__

    command: StringProperty(  # type: ignore[valid-type]
        name="Program", description="Command that runs meshhub, with its path if it is not in PATH", default="meshhub"
    )

    def draw(self, context: bpy.types.Context) -> None:  # noqa: ARG002
        """Show the preferences."""
        self.layout.prop(self, "command")


def run_meshhub(source: Path, target: Path, *options: str) -> list[str]:
    """Convert a file; return the notes. Raises MeshhubFailed."""
    preferences = bpy.context.preferences.addons[__package__].preferences
    command = [*shlex.split(preferences.command), "convert", str(source), str(target), "--force", "--json", *options]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)  # noqa: S603
    except FileNotFoundError:
        raise MeshhubFailed("meshhub was not found: install it, and set its path in the preferences") from None
    except subprocess.TimeoutExpired:
        raise MeshhubFailed(f"meshhub took longer than {TIMEOUT_S:.0f} s") from None
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"meshhub ended with status {done.returncode}"]
        raise MeshhubFailed(lines[-1].removeprefix("error: ").removeprefix("Error: "))
    notes = json.loads(done.stdout)["notes"]
    return [note["message"] for note in notes if note["code"] != "frame_converted"]


@contextmanager
def exchange() -> Iterator[tuple[Path, Path]]:
    """Yield two paths of GLB files in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="meshhub-") as folder:
        yield Path(folder) / "from-blender.glb", Path(folder) / "from-meshhub.glb"


def export_glb(path: Path, *, selected: bool) -> None:
    """Write the scene, or what is selected, as GLB with its colors."""
    bpy.ops.export_scene.gltf(
        filepath=str(path),
        export_format="GLB",
        use_selection=selected,
        export_apply=True,
        export_animations=False,
        export_vertex_color="ACTIVE",
    )


def import_glb(path: Path) -> list[bpy.types.Object]:
    """Read a GLB into the scene; return its objects."""
    before = set(bpy.data.objects)
    bpy.ops.import_scene.gltf(filepath=str(path))
    return [item for item in bpy.data.objects if item not in before]


class Meshhub:
    """What the operators share."""

    bl_options = {"REGISTER", "UNDO"}  # noqa: RUF012 - Blender reads it from the class

    options: StringProperty(  # type: ignore[valid-type]
        name="Options", description="Further options of meshhub, such as --place-on-bed", default=""
    )

    def collect_options(self) -> list[str]:
        """Return the options as words of a command line."""
        words = shlex.split(self.options)
        if getattr(self, "repair", False):
            words.append("--repair")
        if getattr(self, "colors", 0):
            words += ["--reduce-colors", str(self.colors)]
        return words

    def execute(self, context: bpy.types.Context) -> set[str]:
        """Run, and show notes and errors."""
        try:
            notes = self.work(context)
        except (MeshhubFailed, ValueError) as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        for note in notes:
            self.report({"INFO"}, note)
        return {"FINISHED"}


class ImportModel(Meshhub, bpy.types.Operator, ImportHelper):
    """Read a model of any format that meshhub reads."""

    bl_idname = "import_scene.meshhub"
    bl_label = "Import by meshhub"

    filter_glob: StringProperty(default=PATTERNS, options={"HIDDEN"})  # type: ignore[valid-type]
    repair: BoolProperty(name="Repair", description="Close holes, and turn faces outward")  # type: ignore[valid-type]

    def work(self, context: bpy.types.Context) -> list[str]:  # noqa: ARG002
        """Convert the file to GLB, and read that."""
        with exchange() as (_, converted):
            notes = run_meshhub(Path(self.filepath), converted, *self.collect_options())
            import_glb(converted)
        return notes


class ExportModel(Meshhub, bpy.types.Operator, ExportHelper):
    """Write the scene in a format that meshhub writes; the extension chooses it."""

    bl_idname = "export_scene.meshhub"
    bl_label = "Export by meshhub"

    filename_ext = ".3mf"
    check_extension = None
    filter_glob: StringProperty(default=PATTERNS, options={"HIDDEN"})  # type: ignore[valid-type]
    selected: BoolProperty(name="Selected only")  # type: ignore[valid-type]
    repair: BoolProperty(name="Repair", description="Close holes, and turn faces outward")  # type: ignore[valid-type]
    colors: IntProperty(  # type: ignore[valid-type]
        name="Filaments", description="Reduce the colors to so many; 0 keeps all", min=0, max=64
    )

    def work(self, context: bpy.types.Context) -> list[str]:  # noqa: ARG002
        """Write GLB, and convert that to the file."""
        with exchange() as (written, _):
            export_glb(written, selected=self.selected)
            return run_meshhub(written, Path(self.filepath), *self.collect_options())


class RepairObjects(Meshhub, bpy.types.Operator):
    """Repair the selected meshes: close holes, remove fragments, turn faces outward; modifiers are applied."""

    bl_idname = "object.meshhub_repair"
    bl_label = "Repair by meshhub"

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        """Return whether there are meshes to repair."""
        return context.mode == "OBJECT" and any(item.type == "MESH" for item in context.selected_objects)

    def work(self, context: bpy.types.Context) -> list[str]:
        """Repair one object after the other."""
        chosen, active = context.selected_objects, context.view_layer.objects.active
        notes = []
        for item in chosen:
            if item.type == "MESH":
                notes += self._repair(context, item)
        select(context, chosen, active)
        return notes

    def _repair(self, context: bpy.types.Context, item: bpy.types.Object) -> list[str]:
        select(context, [item], item)
        with exchange() as (written, converted), marked_materials(item) as materials:
            export_glb(written, selected=True)
            notes = run_meshhub(written, converted, "--repair", "--merge-parts", "keep", *self.collect_options())
            created = import_glb(converted)
            mesh = next(each for each in created if each.type == "MESH")
            data = mesh.data
            data.transform(item.matrix_world.inverted() @ mesh.matrix_world)
            reuse_materials(data, materials)
        item.modifiers.clear()
        previous, item.data = item.data, data
        for each in created:
            bpy.data.objects.remove(each)
        name = previous.name
        if previous.users == 0:
            bpy.data.meshes.remove(previous)
        data.name = name
        return notes


def select(context: bpy.types.Context, items: list[Any], active: bpy.types.Object | None) -> None:
    """Select objects, and no others."""
    for item in context.selected_objects:
        item.select_set(False)
    for item in items:
        item.select_set(True)
    context.view_layer.objects.active = active


@contextmanager
def marked_materials(item: bpy.types.Object) -> Iterator[list[bpy.types.Material]]:
    """Yield the materials of an object, which have names of their numbers inside."""
    materials = list({slot.material.name: slot.material for slot in item.material_slots if slot.material}.values())
    names = [material.name for material in materials]
    for number, material in enumerate(materials):
        material.name = f"meshhub-{number}"
    try:
        yield materials
    finally:
        for name, material in zip(names, materials, strict=True):
            material.name = name


def reuse_materials(data: bpy.types.Mesh, materials: list[bpy.types.Material]) -> None:
    """Replace the materials of a repaired mesh by those of its object."""
    for index, material in enumerate(list(data.materials)):
        match = MARK.fullmatch(material.name) if material is not None else None
        if match is not None:
            data.materials[index] = materials[int(match[1])]
            if material.users == 0:
                bpy.data.materials.remove(material)


def show_import(menu: Any, context: bpy.types.Context) -> None:  # noqa: ARG001
    """Add the operator to the menu File > Import."""
    menu.layout.operator(ImportModel.bl_idname, text="CAD and print formats (meshhub)")


def show_export(menu: Any, context: bpy.types.Context) -> None:  # noqa: ARG001
    """Add the operator to the menu File > Export."""
    menu.layout.operator(ExportModel.bl_idname, text="CAD and print formats (meshhub)")


def show_repair(menu: Any, context: bpy.types.Context) -> None:  # noqa: ARG001
    """Add the operator to the menu Object."""
    menu.layout.operator(RepairObjects.bl_idname)


CLASSES = (Preferences, ImportModel, ExportModel, RepairObjects)


def register() -> None:
    """Add the extension to Blender."""
    for each in CLASSES:
        bpy.utils.register_class(each)
    bpy.types.TOPBAR_MT_file_import.append(show_import)
    bpy.types.TOPBAR_MT_file_export.append(show_export)
    bpy.types.VIEW3D_MT_object.append(show_repair)


def unregister() -> None:
    """Remove the extension from Blender."""
    bpy.types.VIEW3D_MT_object.remove(show_repair)
    bpy.types.TOPBAR_MT_file_export.remove(show_export)
    bpy.types.TOPBAR_MT_file_import.remove(show_import)
    for each in reversed(CLASSES):
        bpy.utils.unregister_class(each)
