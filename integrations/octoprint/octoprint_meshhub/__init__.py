"""Plug-in of OctoPrint: check STL files when they are uploaded, and repair them if its settings say so."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import octoprint.plugin
from octoprint.filemanager import ContentTypeMapping
from octoprint.filemanager.util import AbstractFileWrapper, DiskFileWrapper

EXTENSION = ".stl"

MAX_MESSAGE_CHARS = 400
"""Maximum characters of a remark in the browser."""


class Plugin(
    octoprint.plugin.AssetPlugin,
    octoprint.plugin.EventHandlerPlugin,
    octoprint.plugin.SettingsPlugin,
    octoprint.plugin.TemplatePlugin,
):
    """The plug-in; `meshhub` runs in processes of its own, so that no model stops a print."""

    def get_settings_defaults(self) -> dict[str, Any]:
        """Return the settings.

        check: whether to check each file
        repair: whether to replace it by a repaired one
        server: address of a service that does the work; "" for this machine, whose processor the printer also needs
        timeout_s: seconds for one file
        """
        return {"check": True, "repair": False, "server": "", "timeout_s": 120}

    def get_template_configs(self) -> list[dict[str, Any]]:
        """Return the page of the settings."""
        return [{"type": "settings", "custom_bindings": False}]

    def is_template_autoescaped(self) -> bool:
        """Return that values are escaped."""
        return True

    def get_assets(self) -> dict[str, list[str]]:
        """Return the script that shows remarks."""
        return {"js": ["js/meshhub.js"]}

    def list_extensions(self) -> dict[str, Any]:
        """Accept STL files, which OctoPrint itself rejects."""
        return {"model": {"stl": ContentTypeMapping(["stl"], "model/stl")}}

    def repair_upload(
        self, path: str, file_object: AbstractFileWrapper, *_: object, **__: object
    ) -> AbstractFileWrapper | None:
        """Return the repaired file in place of an uploaded one; None leaves it as it is."""
        if not self._settings.get_boolean(["repair"]) or Path(path).suffix.lower() != EXTENSION:
            return None
        with tempfile.TemporaryDirectory(dir=self.get_plugin_data_folder()) as folder:
            source = Path(folder) / "uploaded.stl"
            # the upload is still needed if this fails
            with source.open("wb") as copy, file_object.stream() as stream:
                shutil.copyfileobj(stream, copy)
            target = Path(folder).with_suffix(EXTENSION)
            if self._run("convert", str(source), str(target), "--repair", "--json") is None:
                self._inform(path, "could not be repaired, and stays as it is; the log of OctoPrint has the reason")
                return None
        # OctoPrint moves it to its place
        return DiskFileWrapper(file_object.filename, str(target))

    def on_event(self, event: str, payload: dict[str, Any]) -> None:
        """Check a file that was added."""
        if event != "FileAdded" or not self._settings.get_boolean(["check"]):
            return
        if payload["storage"] == "local" and Path(payload["path"]).suffix.lower() == EXTENSION:
            threading.Thread(target=self._check, args=(payload["path"],), daemon=True).start()

    def _check(self, path: str) -> None:
        """Check a file, add the verdict to what OctoPrint knows about it, and show what is wrong."""
        disk = self._file_manager.path_on_disk("local", path)
        verdict = self._run("check", disk, "--json", "--fail-on", "never")
        if verdict is None:
            self._inform(path, "could not be checked; the log of OctoPrint has the reason")
            return
        findings = [
            {name: finding[name] for name in ("code", "severity", "message")} for finding in verdict["findings"]
        ]
        data = {"verdict": verdict["verdict"], "findings": findings}
        self._file_manager.set_additional_metadata("local", path, "meshhub", data, overwrite=True)
        problems = [each["message"] for each in findings if each["severity"] != "info"]
        if problems:
            self._inform(path, ". ".join(problems), verdict["verdict"])

    def _run(self, *words: str) -> dict[str, Any] | None:
        """Return the result of a command of meshhub; None after an error."""
        server, timeout_s = self._settings.get(["server"]), self._settings.get_float(["timeout_s"])
        where = ["--server", server] if server else ["--timeout", str(timeout_s)]
        command = [sys.executable, "-m", "meshhub", *words, *where]
        if nice := shutil.which("nice"):
            # the lowest priority, because a print may run
            command = [nice, "-n", "19", *command]
        try:
            done = subprocess.run(  # noqa: S603
                command, capture_output=True, text=True, timeout=timeout_s + 30, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            self._logger.warning("%s: %s", " ".join(words), error)
            return None
        if done.returncode != 0:
            self._logger.warning("%s: %s", " ".join(words), done.stderr.strip())
            return None
        result: dict[str, Any] = json.loads(done.stdout)
        return result

    def _inform(self, path: str, message: str, verdict: str = "check_this") -> None:
        self._logger.info("%s: %s", path, message)
        text = message if len(message) <= MAX_MESSAGE_CHARS else message[: MAX_MESSAGE_CHARS - 1] + "…"
        self._plugin_manager.send_plugin_message(self._identifier, {"path": path, "message": text, "verdict": verdict})


__plugin_name__ = "meshhub"
__plugin_pythoncompat__ = ">=3.11,<4"


def __plugin_load__() -> None:  # noqa: N807 - OctoPrint calls it by this name
    """Create the plug-in, and declare its hooks."""
    global __plugin_implementation__, __plugin_hooks__
    plugin = Plugin()
    __plugin_implementation__ = plugin
    __plugin_hooks__ = {
        "octoprint.filemanager.extension_tree": plugin.list_extensions,
        "octoprint.filemanager.preprocessor": plugin.repair_upload,
    }
