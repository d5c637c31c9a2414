"""The menu Extensions > meshhub: check and repair the selected models."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from UM.Extension import Extension
from UM.Job import Job
from UM.Mesh.MeshBuilder import MeshBuilder
from UM.Mesh.MeshData import transformVertices
from UM.Message import Message
from UM.Operations.GroupedOperation import GroupedOperation
from UM.Operations.Operation import Operation
from UM.Scene.Selection import Selection

from .program import PREFERENCE, MeshhubFailed, run_meshhub

TRIANGLE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
"""A record of a binary STL file."""

HEADER_BYTES = 80
"""Bytes before the number of records."""


class Menu(Extension):  # type: ignore[misc]
    """The menu."""

    def __init__(self, app: Any) -> None:
        super().__init__()
        app.getPreferences().addPreference(PREFERENCE, "meshhub")
        self._app = app
        # Cura keeps no jobs
        self._tasks: set[Task] = set()
        self.setMenuName("meshhub")
        self.addMenuItem("Check", lambda: self._start(check_model, show_findings))
        self.addMenuItem("Repair", lambda: self._start(repair_model, replace_meshes))
        self.addMenuItem("Path of the program…", self.ask_command)

    def ask_command(self) -> None:
        """Ask for the path of the program."""
        try:
            from PyQt6.QtWidgets import QInputDialog
        except ImportError:
            from PyQt5.QtWidgets import QInputDialog

        preferences = self._app.getPreferences()
        text, is_accepted = QInputDialog.getText(
            None, "meshhub", "Command that runs meshhub, with its path:", text=preferences.getValue(PREFERENCE)
        )
        if is_accepted and text.strip():
            preferences.setValue(PREFERENCE, text.strip())

    def _start(self, work: Callable[[Any], Any], show: Callable[[list[Any]], None]) -> None:
        """Do something with each selected model in another thread, and show the results in this one."""
        nodes = [
            node
            for selected in Selection.getAllSelectedObjects()
            for node in [selected, *selected.getAllChildren()]
            if node.getMeshData() is not None and node.callDecoration("isSliceable")
        ]
        if not nodes:
            show_message("select a model first")
            return
        task = Task(nodes, work, show)
        self._tasks.add(task)
        # Cura keeps no function that is connected, only a method of an object that exists
        task.finished.connect(self._finish)
        task.start()

    def _finish(self, task: Task) -> None:
        """Show the results of a task."""
        self._tasks.discard(task)
        if task.hasError():
            show_message(str(task.getError()), Message.MessageType.ERROR)
        else:
            task.show(task.getResult())


class Task(Job):  # type: ignore[misc]
    """Work on some models; the result is a list of nodes with their results, for `show`."""

    def __init__(self, nodes: list[Any], work: Callable[[Any], Any], show: Callable[[list[Any]], None]) -> None:
        super().__init__()
        self._nodes, self._work, self.show = nodes, work, show

    def run(self) -> None:
        """Work, while a message says so."""
        names = ", ".join(node.getName() for node in self._nodes)
        waiting = Message(names, title="meshhub", lifetime=0, progress=-1, dismissable=False)
        waiting.show()
        try:
            self.setResult([(node, self._work(node)) for node in self._nodes])
        except (MeshhubFailed, OSError) as error:
            self.setError(error)
        finally:
            waiting.hide()


def check_model(node: Any) -> list[str]:
    """Return what is wrong with a model as it is printed: scaled and turned."""
    corners = transformVertices(list_corners(node.getMeshData()), node.getWorldTransformation())
    with tempfile.TemporaryDirectory(prefix="meshhub-") as folder:
        path = Path(folder, "model.stl")
        # Cura's Y axis is up
        write_stl(path, np.stack([corners[:, 0], -corners[:, 2], corners[:, 1]], axis=1))
        verdict = json.loads(run_meshhub("check", str(path), "--json", "--fail-on", "never")[0])
    return [finding["message"] for finding in verdict["findings"] if finding["severity"] != "info"]


def show_findings(results: list[tuple[Any, list[str]]]) -> None:
    """Show what is wrong with models."""
    for node, findings in results:
        kind = Message.MessageType.WARNING if findings else Message.MessageType.POSITIVE
        show_message("\n".join([f"{node.getName()}:", *findings] if findings else [f"{node.getName()} is ready"]), kind)


def repair_model(node: Any) -> tuple[Any, str]:
    """Return the repaired mesh of a model, and what was repaired."""
    mesh = node.getMeshData()
    with tempfile.TemporaryDirectory(prefix="meshhub-") as folder:
        path, repaired = Path(folder, "model.stl"), Path(folder, "repaired.stl")
        write_stl(path, list_corners(mesh))
        report = run_meshhub("convert", str(path), str(repaired), "--repair")[1]
        builder = MeshBuilder()
        builder.setVertices(read_stl(repaired))
    builder.calculateNormals(fast=True)
    builder.setFileName(mesh.getFileName())
    # the first line names the temporary file
    return builder.build(), "\n".join(line.strip() for line in report.splitlines()[1:]) or "it needed no repair"


def replace_meshes(results: list[tuple[Any, tuple[Any, str]]]) -> None:
    """Replace the meshes of models, as one step that can be undone, and show what was repaired."""
    group = GroupedOperation()
    for node, (mesh, _) in results:
        group.addOperation(ReplaceMesh(node, mesh))
    group.push()
    for node, (_, report) in results:
        show_message(f"{node.getName()}:\n{report}", Message.MessageType.POSITIVE)


class ReplaceMesh(Operation):  # type: ignore[misc]
    """Replacement of the mesh of a model."""

    def __init__(self, node: Any, mesh: Any) -> None:
        super().__init__()
        self._node, self._before, self._after = node, node.getMeshData(), mesh

    def undo(self) -> None:
        """Return to the mesh before."""
        self._node.setMeshData(self._before)

    def redo(self) -> None:
        """Replace the mesh."""
        self._node.setMeshData(self._after)


def list_corners(mesh: Any) -> Any:
    """Return the corners (3m, 3) of the triangles of a mesh."""
    return mesh.getVertices()[mesh.getIndices().ravel()] if mesh.hasIndices() else mesh.getVertices()


def write_stl(path: Path, corners: Any) -> None:
    """Write triangles, by their corners (3m, 3)."""
    records = np.zeros(len(corners) // 3, TRIANGLE)
    records["corners"] = corners.reshape(-1, 3, 3)
    path.write_bytes(bytes(HEADER_BYTES) + np.uint32(len(records)).tobytes() + records.tobytes())


def read_stl(path: Path) -> Any:
    """Return the corners (3m, 3) of the triangles of a file."""
    return np.fromfile(path, TRIANGLE, offset=HEADER_BYTES + 4)["corners"].reshape(-1, 3).copy()


def show_message(text: str, kind: Any = Message.MessageType.NEUTRAL) -> None:
    """Show a message until it is closed."""
    Message(text, title="meshhub", lifetime=0, message_type=kind).show()
