"""Plug-in `tint` with an operation and a catalog, as a package in a folder."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

PACKAGE = "translated_tint"

CATALOG = """
[operations]
tint = "Tönen"

[options.tint]
title = "Farbton"
description = "Färbt das ganze Modell."

[options.tint.choices]
warm = "warme Farben"
cold = "kalte Farben"
"""

_CODE = """
from typing import Annotated, Literal

from meshhub import Operation, Stage, hookimpl
from msgspec import Meta, Struct


class TintOptions(Struct, frozen=True, kw_only=True):
    tint: Annotated[Literal["warm", "cold"], Meta(title="Tint", description="Color the whole model.")] | None = None


@hookimpl
def meshhub_operations():
    return [Operation(id="tint", label="Tint", stage=Stage.COLOR, options=TintOptions, run=f"{__name__}:run")]


def run(scene, options):
    return scene
"""


@contextmanager
def translated(folder: Path, catalog: bytes = CATALOG.encode(), language: str = "de") -> Iterator[ModuleType]:
    """Write the package into a folder, and import it until the block ends."""
    package = folder / PACKAGE
    (package / "translations").mkdir(parents=True)
    (package / "__init__.py").write_text(_CODE)
    (package / "translations" / f"{language}.toml").write_bytes(catalog)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield importlib.import_module(PACKAGE)
    del sys.modules[PACKAGE]
