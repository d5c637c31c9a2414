"""Who may slice: callers of the command line and of Python, and plans with the entitlement."""

from __future__ import annotations

import pytest
from slicer_models import make_box, make_scene

from meshhub import LOCAL, Caller, Plan, PremiumRequired, Registry, Request, Source, Target
from meshhub.supported import supported

FARM = Caller(plan=Plan(id="farm", label="Farm", grants=frozenset({"slicer"})))


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry()


@pytest.mark.parametrize("target", ["gcode", "bgcode", "gcode-3mf"])
def test_a_plan_needs_the_entitlement(registry: Registry, target: str) -> None:
    assert registry.faults == ()
    stl = Target("box.stl")
    registry.write(make_scene(make_box(1, 1, 1)), stl, target="stl")
    source = Source.from_bytes(stl.read(), "box.stl")
    request = Request(target=target, options={"slicer_printer": "mk4"})
    for plan in ("free", "pro"):
        with pytest.raises(PremiumRequired):
            registry.resolve(request, source, Caller(plan=registry.plans[plan]))
    for caller in (FARM, LOCAL):
        assert registry.resolve(request, source, caller).target_format == target


def test_the_targets_are_listed(registry: Registry) -> None:
    listed = supported(registry, FARM)
    assert {"gcode", "bgcode", "gcode-3mf"} <= set(listed["output_formats"])
    assert "gcode" not in supported(registry, Caller(plan=registry.plans["free"]))["output_formats"]


def test_slicing_is_an_action_of_the_page_with_four_options(registry: Registry) -> None:
    formats = supported(registry, FARM, "de")["formats"]
    assert (formats["gcode"]["action"], formats["bgcode"]["action"], formats["stl"]["action"]) == ("Slicen", None, None)
    options = formats["gcode"]["options"]["properties"]
    assert [name for name, field in options.items() if field.get("x-everyday")] == [
        "slicer_printer",
        "slicer_material",
        "slicer_quality",
        "slicer_supports",
    ]


def test_colors_are_reduced_to_the_filaments_of_the_printer(registry: Registry) -> None:
    source = Source.from_bytes(b"solid x\nendsolid x", "box.stl")
    request = Request(target="gcode", options={"slicer_printer": "prusa-mini"})
    assert registry.resolve(request, source, FARM).ending.max_colors == 1


def test_extensions_of_two_parts_are_the_format(registry: Registry) -> None:
    from meshhub.pipeline.outputs import target_format

    declarations = registry.declarations
    names = {
        "part.gcode.3mf": ".gcode.3mf",
        "part.v2.3mf": ".3mf",
        "PART.GCODE.3MF": ".GCODE.3MF",
        "moonraker://voron/part.gcode?print=true": ".gcode",
        "s3://bucket/what?.stl": ".stl",
    }
    assert {name: target_format(name, None, declarations) for name in names} == names
