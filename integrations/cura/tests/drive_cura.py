"""Run in Cura's Python: start Cura without a window, open a file, use the plug-in, and print what happened as JSON.

    drive_cura.py COMMAND FILE [ITEM ...]

ITEM is an item of the menu. The plug-in is in Cura's folder of plug-ins below XDG_DATA_HOME, where users install it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

from cura.CuraApplication import CuraApplication
from cura.Scene.CuraSceneNode import CuraSceneNode
from PyQt5.QtCore import QTimer, QUrl
from UM.Scene.Selection import Selection

command, path, *items = sys.argv[1:]
# Cura finds its own plug-ins from the place of its program
sys.argv = ["/usr/bin/cura", "--headless"]
app = CuraApplication()
result: dict[str, Any] = {}


def finish() -> None:
    """Print the result, and end at once; Cura ends slowly."""
    result["messages"] = [message.getText() for message in app.getVisibleMessages()]
    sys.stdout.write(f"RESULT {json.dumps(result)}\n")
    sys.stdout.flush()
    os._exit(0)


def wait_for(condition: Callable[[], Any], then: Callable[[], None]) -> None:
    """Call a function as soon as a condition holds."""
    timer = QTimer(app)

    def look() -> None:
        if condition():
            timer.stop()
            then()

    timer.timeout.connect(look)
    timer.start(50)


def describe(node: Any) -> dict[str, Any]:
    """Return what the tests ask about a node."""
    box, mesh = node.getBoundingBox(), node.getMeshData()
    return {
        "name": node.getName(),
        "size": [box.width, box.depth, box.height],
        "faces": mesh and mesh.getVertexCount() // 3,
        "file": mesh and mesh.getFileName(),
        "children": [describe(child) for child in node.getChildren() if isinstance(child, CuraSceneNode)],
    }


def list_models() -> list[Any]:
    """Return the models on the bed."""
    return [
        node
        for node in app.getController().getScene().getRoot().getChildren()
        if isinstance(node, CuraSceneNode) and (node.getMeshData() or node.callDecoration("isGroup"))
    ]


def begin() -> None:
    """Open the file."""
    app.getPreferences().setValue("meshhub/command", command)
    # Cura opens no model without a printer
    app.getMachineManager().addMachine("prusa_i3", "printer")
    (menu,) = [each for each in app.getExtensions() if each.getMenuName() == "meshhub"]
    result["menu"] = menu.getMenuItemList()
    app.readLocalFile(QUrl.fromLocalFile(path))
    wait_for(lambda: not app._currently_loading_files, lambda: use(menu))


def use(menu: Any) -> None:
    """Use the menu."""
    result["models"] = [describe(node) for node in list_models()]
    if not items:
        finish()
    for node in list_models():
        Selection.add(node)
    menu.activateMenuItem(items.pop(0))
    # no task is left when the last one has shown its result
    wait_for(lambda: not menu._tasks, end)


def end() -> None:
    """Describe the models after the command, and without it again."""
    result["after"] = [describe(node) for node in list_models()]
    app.getOperationStack().undo()
    result["undone"] = [describe(node) for node in list_models()]
    finish()


app.initializationFinished.connect(lambda: QTimer.singleShot(0, begin))
app.run()
