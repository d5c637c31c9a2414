"""meshhub: convert, repair and print-prepare 3D model files.

    from meshhub import Registry

    registry = Registry()
    report = registry.convert("bracket.stl", "bracket.3mf", repair=True, target_height_mm=40)

This package exports every public name, and imports its module at the first use, so that `import meshhub` is fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from meshhub.model import display as _display

if TYPE_CHECKING:
    from meshhub.engine.contract import Cancel as Cancel
    from meshhub.engine.contract import Engine as Engine
    from meshhub.engine.in_process import InProcess as InProcess
    from meshhub.engine.isolated import Isolated as Isolated
    from meshhub.engine.isolated import WorkerSharing as WorkerSharing
    from meshhub.errors import *  # noqa: F403
    from meshhub.hookspecs import hookimpl as hookimpl
    from meshhub.model.api_version import API_VERSION as API_VERSION
    from meshhub.model.capabilities import Capability as Capability
    from meshhub.model.capabilities import Check as Check
    from meshhub.model.capabilities import Feature as Feature
    from meshhub.model.capabilities import Format as Format
    from meshhub.model.capabilities import Frame as Frame
    from meshhub.model.capabilities import Magic as Magic
    from meshhub.model.capabilities import Memory as Memory
    from meshhub.model.capabilities import NetworkPrinter as NetworkPrinter
    from meshhub.model.capabilities import NoOptions as NoOptions
    from meshhub.model.capabilities import Operation as Operation
    from meshhub.model.capabilities import Reader as Reader
    from meshhub.model.capabilities import Stage as Stage
    from meshhub.model.capabilities import Storage as Storage
    from meshhub.model.capabilities import StoredFile as StoredFile
    from meshhub.model.capabilities import Writer as Writer
    from meshhub.model.chain import Chain as Chain
    from meshhub.model.chain import Request as Request
    from meshhub.model.chain import Step as Step
    from meshhub.model.estimate import Estimate as Estimate
    from meshhub.model.estimate import PartEstimate as PartEstimate
    from meshhub.model.features import FeatureTable as FeatureTable
    from meshhub.model.features import Hole as Hole
    from meshhub.model.features import HoleStep as HoleStep
    from meshhub.model.features import RadiusCount as RadiusCount
    from meshhub.model.features import SurfaceCount as SurfaceCount
    from meshhub.model.notes import Note as Note
    from meshhub.model.notes import did as did
    from meshhub.model.notes import note as note
    from meshhub.model.plans import LOCAL as LOCAL
    from meshhub.model.plans import Caller as Caller
    from meshhub.model.plans import Limits as Limits
    from meshhub.model.plans import Objection as Objection
    from meshhub.model.plans import Plan as Plan
    from meshhub.model.plans import Rule as Rule
    from meshhub.model.progress import Progress as Progress
    from meshhub.model.progress import advance as advance
    from meshhub.model.progress import track as track
    from meshhub.model.quote import Price as Price
    from meshhub.model.quote import Quote as Quote
    from meshhub.model.recipes import Recipe as Recipe
    from meshhub.model.report import Failure as Failure
    from meshhub.model.report import FileReport as FileReport
    from meshhub.model.report import Inspection as Inspection
    from meshhub.model.report import Loss as Loss
    from meshhub.model.report import ModelInspection as ModelInspection
    from meshhub.model.report import Report as Report
    from meshhub.model.report import StepReport as StepReport
    from meshhub.model.scene import Image as Image
    from meshhub.model.scene import Material as Material
    from meshhub.model.scene import Mesh as Mesh
    from meshhub.model.scene import Part as Part
    from meshhub.model.scene import Scene as Scene
    from meshhub.model.source import Source as Source
    from meshhub.model.source import Target as Target
    from meshhub.model.verdict import Finding as Finding
    from meshhub.model.verdict import Place as Place
    from meshhub.model.verdict import Verdict as Verdict
    from meshhub.pipeline.loading import Fault as Fault
    from meshhub.pipeline.loading import Plugin as Plugin
    from meshhub.pipeline.rates import RateCard as RateCard
    from meshhub.registry import Registry as Registry

_NAMES_BY_MODULE = {
    "meshhub.model.api_version": "API_VERSION",
    "meshhub.model.chain": "Chain Request Step",
    "meshhub.model.capabilities": (
        "Capability Check Feature Format Frame Magic Memory NetworkPrinter NoOptions Operation Reader Stage Storage "
        "StoredFile Writer"
    ),
    "meshhub.engine.contract": "Cancel Engine",
    "meshhub.engine.in_process": "InProcess",
    "meshhub.engine.isolated": "Isolated WorkerSharing",
    "meshhub.hookspecs": "hookimpl",
    "meshhub.model.notes": "Note did note",
    "meshhub.model.plans": "Caller Limits LOCAL Objection Plan Rule",
    "meshhub.model.progress": "Progress advance track",
    "meshhub.model.estimate": "Estimate PartEstimate",
    "meshhub.model.quote": "Price Quote",
    "meshhub.model.recipes": "Recipe",
    "meshhub.pipeline.loading": "Fault Plugin",
    "meshhub.pipeline.rates": "RateCard",
    "meshhub.registry": "Registry",
    "meshhub.model.features": "FeatureTable Hole HoleStep RadiusCount SurfaceCount",
    "meshhub.model.report": "Failure FileReport Inspection Loss ModelInspection Report StepReport",
    "meshhub.model.scene": "Image Material Mesh Part Scene",
    "meshhub.model.source": "Source Target",
    "meshhub.model.verdict": "Finding Place Verdict",
}

_ERRORS = "meshhub.errors"

_MODULE_OF = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name == "__all__":
        return sorted([*_MODULE_OF, *_list_errors()])
    if name in _MODULE_OF:
        return getattr(importlib.import_module(_MODULE_OF[name]), name)
    if not name.startswith("_") and name in _list_errors():
        return getattr(importlib.import_module(_ERRORS), name)
    raise AttributeError(f"module 'meshhub' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF, *_list_errors()})


def _list_errors() -> list[str]:
    """Return the names of the public errors, which their module lists."""
    names: list[str] = importlib.import_module(_ERRORS).__all__
    return names


def _describe_scene(scene: Scene) -> str:
    from meshhub.toolkit.rendering.notebook import describe_scene

    return describe_scene(scene)


_display.describe_scene = _describe_scene
