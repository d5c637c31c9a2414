"""The plug-in meshhub-slicer, by the name of its entry point, with which its options begin; every caller may slice."""

from __future__ import annotations

from meshhub_slicer import MESHHUB_API, meshhub_writers

from meshhub import Caller, hookimpl

__all__ = ["MESHHUB_API", "meshhub_grants", "meshhub_writers"]


@hookimpl
def meshhub_grants(caller: Caller) -> list[str]:
    return ["slicer"]
