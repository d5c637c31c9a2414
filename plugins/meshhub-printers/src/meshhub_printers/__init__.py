"""Storages for addresses of printers: octoprint://name/file.gcode, moonraker://… and prusalink://…: declarations."""

from __future__ import annotations

from meshhub import Storage, hookimpl

MESHHUB_API = "1.0"

EXTENSIONS = (".gcode", ".gco", ".g", ".bgcode", ".bgc", ".gcode.3mf")
"""Files that printers print."""


@hookimpl
def meshhub_storages() -> list[Storage]:
    """Declare the storages; the user's configuration file names the printers."""
    return [
        Storage(
            scheme=scheme,
            run="meshhub_printers.files:open_printer",
            printers="meshhub_printers.files:list_printers",
            prints=EXTENSIONS,
            start_query="?print=true",
            requires="printers",
            needs=("httpx",),
            install="meshhub-printers",
        )
        for scheme in ("octoprint", "moonraker", "prusalink")
    ]
