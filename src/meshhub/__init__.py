"""meshhub: convert, repair and print-prepare 3D model files.

    from meshhub import Registry

    registry = Registry()
    report = registry.convert("bracket.stl", "bracket.3mf", repair=True, target_height_mm=40)

Everything public is named here and loaded when it is first used, so that `import meshhub` costs
next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from meshhub.capabilities import Capability as Capability
    from meshhub.capabilities import Feature as Feature
    from meshhub.capabilities import Format as Format
    from meshhub.capabilities import Frame as Frame
    from meshhub.capabilities import Magic as Magic
    from meshhub.capabilities import NoOptions as NoOptions
    from meshhub.capabilities import Operation as Operation
    from meshhub.capabilities import Reader as Reader
    from meshhub.capabilities import Stage as Stage
    from meshhub.capabilities import Writer as Writer
    from meshhub.chain import Chain as Chain
    from meshhub.chain import Request as Request
    from meshhub.chain import Step as Step
    from meshhub.engine.contract import Cancel as Cancel
    from meshhub.engine.contract import Engine as Engine
    from meshhub.engine.in_process import InProcess as InProcess
    from meshhub.engine.isolated import Isolated as Isolated
    from meshhub.errors import Cancelled as Cancelled
    from meshhub.errors import ConversionFailed as ConversionFailed
    from meshhub.errors import ConversionTimeout as ConversionTimeout
    from meshhub.errors import EmptyModel as EmptyModel
    from meshhub.errors import EngineError as EngineError
    from meshhub.errors import ExternalReference as ExternalReference
    from meshhub.errors import InvalidOption as InvalidOption
    from meshhub.errors import MeshhubError as MeshhubError
    from meshhub.errors import MissingDependency as MissingDependency
    from meshhub.errors import ModelTooComplex as ModelTooComplex
    from meshhub.errors import OutputExists as OutputExists
    from meshhub.errors import PluginError as PluginError
    from meshhub.errors import PremiumRequired as PremiumRequired
    from meshhub.errors import RequestError as RequestError
    from meshhub.errors import RequestRefused as RequestRefused
    from meshhub.errors import ServerBusy as ServerBusy
    from meshhub.errors import ShuttingDown as ShuttingDown
    from meshhub.errors import SourceError as SourceError
    from meshhub.errors import UnreadableFile as UnreadableFile
    from meshhub.errors import UnsafeArchive as UnsafeArchive
    from meshhub.errors import UnsupportedFormat as UnsupportedFormat
    from meshhub.errors import UnsupportedTarget as UnsupportedTarget
    from meshhub.errors import WorkerCrashed as WorkerCrashed
    from meshhub.hookspecs import hookimpl as hookimpl
    from meshhub.notes import Note as Note
    from meshhub.notes import did as did
    from meshhub.notes import note as note
    from meshhub.plans import LOCAL as LOCAL
    from meshhub.plans import Caller as Caller
    from meshhub.plans import Limits as Limits
    from meshhub.plans import Objection as Objection
    from meshhub.plans import Plan as Plan
    from meshhub.plugins import Fault as Fault
    from meshhub.plugins import Plugin as Plugin
    from meshhub.registry import Registry as Registry
    from meshhub.report import Failure as Failure
    from meshhub.report import FileReport as FileReport
    from meshhub.report import Inspection as Inspection
    from meshhub.report import Loss as Loss
    from meshhub.report import ModelInspection as ModelInspection
    from meshhub.report import Report as Report
    from meshhub.report import StepReport as StepReport
    from meshhub.scene import Image as Image
    from meshhub.scene import Material as Material
    from meshhub.scene import Mesh as Mesh
    from meshhub.scene import Part as Part
    from meshhub.scene import Scene as Scene
    from meshhub.source import Source as Source
    from meshhub.source import Target as Target

_HOME = {
    "meshhub.capabilities": "Capability Feature Format Frame Magic NoOptions Operation Reader Stage Writer",
    "meshhub.chain": "Chain Request Step",
    "meshhub.engine.contract": "Cancel Engine",
    "meshhub.engine.in_process": "InProcess",
    "meshhub.engine.isolated": "Isolated",
    "meshhub.errors": (
        "Cancelled ConversionFailed ConversionTimeout EmptyModel EngineError ExternalReference InvalidOption "
        "MeshhubError MissingDependency ModelTooComplex OutputExists PluginError PremiumRequired RequestError "
        "RequestRefused ServerBusy ShuttingDown SourceError UnreadableFile UnsafeArchive UnsupportedFormat "
        "UnsupportedTarget WorkerCrashed"
    ),
    "meshhub.hookspecs": "hookimpl",
    "meshhub.notes": "Note did note",
    "meshhub.plans": "Caller Limits LOCAL Objection Plan",
    "meshhub.plugins": "Fault Plugin",
    "meshhub.registry": "Registry",
    "meshhub.report": "Failure FileReport Inspection Loss ModelInspection Report StepReport",
    "meshhub.scene": "Image Material Mesh Part Scene",
    "meshhub.source": "Source Target",
}

_MODULE_OF = {name: module for module, names in _HOME.items() for name in names.split()}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'meshhub' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
