"""Reader of the formats that meshhub reads, and Cura does not."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from cura.Scene.BuildPlateDecorator import BuildPlateDecorator
from cura.Scene.ConvexHullDecorator import ConvexHullDecorator
from cura.Scene.CuraSceneNode import CuraSceneNode
from UM.Mesh.MeshReader import MeshReader
from UM.Message import Message
from UM.MimeTypeDatabase import MimeType, MimeTypeDatabase
from UM.Scene.GroupDecorator import GroupDecorator

from .program import MeshhubFailed, run_meshhub

FORMATS = {
    "STEP": ("step", "stp"),
    # these need further distributions of meshhub: meshhub-cad, -assimp, -ifc, -off, -rhino, -usdz and -x3d
    "IGES": ("igs", "iges"),
    "BREP": ("brep",),
    "Autodesk FBX": ("fbx",),
    "Autodesk 3DS": ("3ds",),
    "VRML": ("wrl",),
    "LightWave": ("lwo",),
    "Industry Foundation Classes": ("ifc",),
    "Object File Format": ("off",),
    "Rhino": ("3dm",),
    "Universal Scene Description": ("usdz",),
}
"""Extensions by name of the format."""


class Reader(MeshReader):  # type: ignore[misc]
    """Reads a file as the 3MF that meshhub makes of it."""

    def __init__(self, app: Any) -> None:
        super().__init__()
        self._app = app
        for label, suffixes in FORMATS.items():
            name = f"application/x-meshhub-{suffixes[0]}"
            MimeTypeDatabase.addMimeType(MimeType(name=name, comment=label, suffixes=list(suffixes)))
            self._supported_extensions += [f".{suffix}" for suffix in suffixes]

    def _read(self, file_name: str) -> Any:
        """Return the node of a file: its model, or a group of its parts."""
        with tempfile.TemporaryDirectory(prefix="meshhub-") as folder:
            converted = str(Path(folder, Path(file_name).stem + ".3mf"))
            try:
                run_meshhub("convert", file_name, converted)
            except MeshhubFailed as error:
                Message(str(error), title="meshhub", message_type=Message.MessageType.ERROR).show()
                return []
            # not `read`, which reads the file again whenever it changes
            nodes = self._app.getMeshFileHandler().getReaderForFile(converted)._read(converted)
        for node in nodes:
            for each in node.getAllChildren() + [node]:
                if each.getMeshData() is not None:
                    # Cura reads this file again if it changes
                    each.setMeshData(each.getMeshData().set(file_name=file_name))
        if len(nodes) == 1:
            return nodes[0]
        return _group(nodes, Path(file_name).name, self._app.getMultiBuildPlateModel().activeBuildPlate)


def _group(nodes: list[Any], name: str, plate: int) -> Any:
    """Return a group that keeps the places of some nodes; Cura would spread them over the bed."""
    group = CuraSceneNode()
    group.setName(name)
    for decorator in (GroupDecorator(), ConvexHullDecorator(), BuildPlateDecorator(plate)):
        group.addDecorator(decorator)
    for node in nodes:
        node.setParent(group)
    return group
