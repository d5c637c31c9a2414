"""Storages for addresses of printers: octoprint://name/file.gcode, moonraker://… and prusalink://…: declarations."""

from __future__ import annotations

from meshhub import Storage, hookimpl

MESHHUB_API = "1.0"


@hookimpl
def meshhub_storages() -> list[Storage]:
    """Declare the storages; the user's configuration file names the printers."""
    return [
        Storage(scheme=scheme, run="meshhub_printers.files:open_printer", needs=("httpx",), install="meshhub-printers")
        for scheme in ("octoprint", "moonraker", "prusalink")
    ]
