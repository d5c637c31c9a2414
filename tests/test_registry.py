"""The registry: loading, faults, resolving, running; with a test format."""

from __future__ import annotations

import importlib
import sys
import types
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, get_args

import msgspec
import numpy as np
import pytest
from msgspec import Meta, Struct

import toys
from distributions import install
from meshhub import (
    API_VERSION,
    LOCAL,
    Caller,
    Chain,
    EmptyModel,
    Format,
    Frame,
    InvalidOption,
    MeshhubError,
    MissingDependency,
    Objection,
    Operation,
    OutputExists,
    Part,
    Plan,
    PluginError,
    PremiumRequired,
    Reader,
    Registry,
    Report,
    RequestRefused,
    Scene,
    Source,
    Stage,
    Target,
    UnreadableFile,
    UnsupportedFormat,
    UnsupportedTarget,
    Writer,
    hookimpl,
)
from meshhub.model.capabilities import HOST_FRAME, Occasion
from meshhub.model.chain import Request
from meshhub.supported import supported
from models import brick

FREE = Caller(plan=Plan(id="free", label="Free"))


def build_plugin(name: str, **hooks: Any) -> types.ModuleType:
    """Return a module with these hook implementations."""
    result = types.ModuleType(name)
    for hook, function in hooks.items():
        setattr(result, hook, hookimpl(function))
    return result


def build_registry(*plugins: object) -> Registry:
    return Registry(plugins, entry_points=False, builtins=False)


def toy(text: str = "toy!", name: str = "a.toy") -> Source:
    return Source.from_bytes(text.encode(), name)


def resolve_chain(registry: Registry, source: Source, target: str = "toy", **options: object) -> Chain:
    return registry.resolve(Request(target=target, options=options), source)


# loading and faults


def test_two_registries_are_independent() -> None:
    assert set(build_registry(toys).declarations.formats) == {"toy"}
    assert set(build_registry().declarations.formats) == set()


def test_builtins_have_no_fault() -> None:
    assert Registry(entry_points=False).faults == ()


def nothing() -> list[object]:
    return []


def raising(*_: object) -> Any:
    raise RuntimeError("broken")


def test_a_broken_hook_is_a_fault_and_affects_no_other_plugin() -> None:
    registry = build_registry(build_plugin("broken", meshhub_readers=raising), toys)
    assert [fault.plugin for fault in registry.faults] == ["broken"]
    assert "RuntimeError: broken" in registry.faults[0].message
    assert "toy" in registry.declarations.formats


def test_a_misspelled_hook_is_a_fault() -> None:
    (fault,) = build_registry(build_plugin("typo", meshhub_reader=nothing)).faults
    assert "meshhub_reader is not a hook" in fault.message
    assert "meshhub_readers" in fault.message


def test_a_hook_with_wrong_arguments_is_a_fault() -> None:
    registry = build_registry(build_plugin("args", meshhub_review=lambda chian: []), toys)
    assert [fault.plugin for fault in registry.faults] == ["args"]
    assert resolve_chain(registry, toy())


def test_a_missing_marker_is_a_fault() -> None:
    result = types.ModuleType("unmarked")
    result.meshhub_readers = lambda: nothing()  # type: ignore[attr-defined]
    (fault,) = build_registry(result).faults
    assert "@hookimpl" in fault.message


@pytest.mark.parametrize(
    ("declared", "oldest", "newest", "fault"),
    [
        ("1.3", "1.2", "1.4", None),
        ("1.2", "1.2", "1.4", None),
        ("1.4", "1.2", "1.4", None),
        ("1.5", "1.2", "1.4", "needs plug-in API 1.5, and this meshhub has 1.4: update meshhub"),
        ("2.0", "1.2", "1.4", "needs plug-in API 2.0, and this meshhub has 1.4: update meshhub"),
        ("1.1", "1.2", "1.4", "supports 1.2 to 1.4: update the plug-in"),
        ("1.10", "1.2", "1.10", None),
        ("1", "1.2", "1.4", "must be a version such as \"1.4\", got '1'"),
        (1.3, "1.2", "1.4", 'must be a version such as "1.4", got 1.3'),
        (API_VERSION, API_VERSION, API_VERSION, None),
    ],
)
def test_the_declared_version_of_the_api_is_checked(
    declared: object, oldest: str, newest: str, fault: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("meshhub.model.api_version.OLDEST_API_VERSION", oldest)
    monkeypatch.setattr("meshhub.model.api_version.API_VERSION", newest)
    registry = Registry([type("Versioned", (), {"MESHHUB_API": declared})], entry_points=False)
    loaded = [plugin.api_version for plugin in registry.plugins if plugin.name == "Versioned"]
    assert loaded == ([] if fault else [declared])
    assert [fault in each.message for each in registry.faults] == [True] * bool(fault)
    # a plug-in without a declaration is loaded
    assert not Registry([type("Plain", (), {})], entry_points=False).faults


def test_a_duplicate_plugin_is_a_fault() -> None:
    (fault,) = build_registry(toys, build_plugin("toys")).faults
    assert "taken" in fault.message


def test_an_object_that_is_not_a_declaration_is_a_fault() -> None:
    (fault,) = build_registry(build_plugin("odd", meshhub_writers=lambda: ["stl"])).faults
    assert "Writer" in fault.message


class Clash(Struct, frozen=True, kw_only=True):
    toy_size: Annotated[int, Meta(title="Clash")] = 1


class Reserved(Struct, frozen=True, kw_only=True):
    file: Annotated[str, Meta(title="Reserved")] = ""


class Stranger(Struct, frozen=True, kw_only=True):
    other_size: Annotated[int, Meta(title="Stranger")] = 1


class Untitled(Struct, frozen=True, kw_only=True):
    clash_size: int = 1


@pytest.mark.parametrize("options", [Clash, Reserved, Stranger, Untitled])
def test_invalid_option_names_are_faults(options: type[Struct]) -> None:
    operation = Operation(id="clash", label="Clash", run="toys:spin", stage=Stage.CUT, options=options)
    registry = build_registry(toys, build_plugin("clash", meshhub_operations=lambda: [operation]))
    assert [fault.plugin for fault in registry.faults] == ["clash"]
    assert [operation.capability.id for operation in registry.declarations.operations] == ["spin"]


@pytest.mark.parametrize("run", ["toys.read", "no_such_module_at_all:read", "toys:", ":read"])
def test_missing_code_is_a_fault(run: str) -> None:
    registry = build_registry(build_plugin("lost", meshhub_readers=lambda: [Reader(format=toys.TOY, run=run)]))
    assert len(registry.faults) == 1
    assert not registry.declarations.readers


def test_a_format_declared_differently_is_a_fault() -> None:
    other = Format(id="toy", label="Other", extensions=(".oth",))
    registry = build_registry(
        toys, build_plugin("other", meshhub_writers=lambda: [Writer(format=other, run="toys:write")])
    )
    assert len(registry.faults) == 1
    assert registry.declarations.formats["toy"].label == "Toy"


def test_a_missing_dependency_disables_one_capability_and_names_the_remedy() -> None:
    lame = Writer(
        format=Format(id="lame", label="Lame", extensions=(".lame",)),
        run="toys:write",
        needs=("no_such_module_at_all",),
        install="meshhub[lame]",
    )
    registry = build_registry(toys, build_plugin("lame", meshhub_writers=lambda: [lame]))
    with pytest.raises(MissingDependency, match=r'pip install "meshhub\[lame\]"') as caught:
        resolve_chain(registry, toy(), "lame")
    assert caught.value.error_code == "unsupported_target"
    assert resolve_chain(registry, toy())


def test_entry_points_are_found_and_broken_ones_are_faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "meshhub-sample", sample="toys", bad="sample_that_exits", worse="not_there_at_all")
    (tmp_path / "sample_that_exits.py").write_text("raise SystemExit(3)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = Registry(builtins=False)
    assert ("sample", "meshhub-sample 1.2") in [(plugin.name, plugin.origin) for plugin in registry.plugins]
    assert {"bad", "worse"} <= {fault.plugin for fault in registry.faults}
    assert "toy" in registry.declarations.formats


@pytest.mark.parametrize("value", ["twice", "twice:Hooks"])
def test_a_plugin_that_is_passed_and_installed_is_loaded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    """The tests of a plug-in pass its module, which `pip install -e .` has installed."""
    (tmp_path / "twice.py").write_text(
        "from meshhub import Format, Reader, hookimpl\n"
        "TWICE = Format(id='twice', label='Twice', extensions=('.twice',))\n"
        "@hookimpl\ndef meshhub_readers(): return [Reader(format=TWICE, run='twice:read')]\n"
        "class Hooks:\n"
        "    @hookimpl\n    def meshhub_readers(self): return meshhub_readers()\n"
        "def read(source, options): return None\n"
    )
    install(tmp_path, "meshhub-twice", other=value)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("twice")
    monkeypatch.setitem(sys.modules, "twice", module)
    for given in [module] if value == "twice" else [module.Hooks, module.Hooks()]:
        registry = Registry([given])
        assert registry.faults == ()
        loaded = [plugin for plugin in registry.plugins if plugin.origin not in ("built-in",)]
        assert [(plugin.origin, plugin.entry_point) for plugin in loaded if plugin.name != "off"] == [("given", "")]
        assert "twice" in registry.formats


def test_another_plugin_of_the_name_of_an_installed_one_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "original.py").write_text("")
    install(tmp_path, "meshhub-original", rival="original")
    monkeypatch.syspath_prepend(str(tmp_path))
    (fault,) = Registry([build_plugin("rival")]).faults
    assert (fault.plugin, fault.origin) == ("rival", "given")
    assert "the name is already taken by a plug-in (meshhub-original 1.2)" in fault.message


def test_a_plan_declared_twice_is_a_fault() -> None:
    def declares(name: str) -> types.ModuleType:
        return build_plugin(name, meshhub_plans=lambda: [Plan(id="declared-twice", label=name)])

    registry = build_registry(declares("first"), declares("second"))
    assert registry.plans["declared-twice"].label == "first"
    assert [fault.plugin for fault in registry.faults] == ["second"]


# resolving


def test_a_chain_has_reasons_and_becomes_json() -> None:
    chain = resolve_chain(build_registry(toys), toy(), spin_degrees="90")
    assert [(step.kind, step.id) for step in chain.steps] == [("read", "toy"), ("operation", "spin"), ("write", "toy")]
    assert chain.steps[0].because == "magic b'toy!' at byte 0"
    assert chain.steps[1].because == "stage place"
    assert msgspec.json.decode(msgspec.json.encode(chain), type=Chain) == chain


def test_losses_are_listed_before_the_conversion() -> None:
    chain = resolve_chain(build_registry(toys), toy(), spin_degrees=90)
    assert [(loss.feature, loss.step) for loss in chain.losses] == [("colors", "spin"), ("names", "toy")]


def test_an_option_may_make_a_writer_carry_more() -> None:
    writer = Writer(
        format=Format(id="oth", label="Other", extensions=(".oth",)),
        run="toys:write",
        options=toys.OtherOptions,
        carries_with={"oth_named": frozenset({"names"})},
    )
    registry = build_registry(toys, build_plugin("oth", meshhub_writers=lambda: [writer]))
    assert "names" in {loss.feature for loss in resolve_chain(registry, toy(), "oth").losses}
    assert "names" in {loss.feature for loss in resolve_chain(registry, toy(), "oth", oth_named="no").losses}
    assert "names" not in {loss.feature for loss in resolve_chain(registry, toy(), "oth", oth_named="yes").losses}


@pytest.mark.parametrize("target", ["toy", "TOY", ".toy", " .Toy "])
def test_case_and_dot_of_a_target_are_ignored(target: str) -> None:
    assert resolve_chain(build_registry(toys), toy(), target).target_format == "toy"


def test_the_error_of_an_unknown_target_lists_the_known_ones() -> None:
    with pytest.raises(UnsupportedTarget, match="choose from toy"):
        resolve_chain(build_registry(toys), toy(), "xyz")


def test_content_takes_precedence_over_the_extension_with_a_note() -> None:
    named = Writer(format=Format(id="nam", label="Named", extensions=(".nam",)), run="toys:write")
    reader = Reader(format=named.format, run="toys:read")
    registry = build_registry(toys, build_plugin("nam", meshhub_readers=lambda: [reader]))
    chain = resolve_chain(registry, toy(name="a.nam"))
    assert chain.source_format == "toy"
    assert [note.code for note in chain.notes] == ["content_beats_name"]
    chain = resolve_chain(registry, toy(name="a.nam"), input_format="nam")
    assert chain.source_format == "nam"


def test_the_longest_extension_decides() -> None:
    double = Reader(format=Format(id="double", label="Double", extensions=(".made.toy",)), run="toys:read")
    registry = build_registry(toys, build_plugin("double", meshhub_readers=lambda: [double]))
    chain = resolve_chain(registry, toy("what?", "Folder/A.MADE.toy"))
    assert (chain.source_format, chain.steps[0].because) == ("double", "extension .made.toy")
    assert resolve_chain(registry, toy("what?", "made.toy")).source_format == "toy"


def test_the_extension_decides_if_the_content_does_not() -> None:
    assert resolve_chain(build_registry(toys), toy("what?")).steps[0].because == "extension .toy"


def test_a_file_without_known_content_or_extension_is_rejected() -> None:
    with pytest.raises(UnsupportedFormat, match="neither content nor extension"):
        resolve_chain(build_registry(toys), toy("what?", "a.xyz"))


def test_an_empty_file_is_rejected() -> None:
    with pytest.raises(EmptyModel, match="0 bytes"):
        resolve_chain(build_registry(toys), toy(""))


def test_unknown_options_are_rejected_by_name() -> None:
    with pytest.raises(InvalidOption, match=r"'spin_degres'.*did you mean 'spin_degrees'"):
        resolve_chain(build_registry(toys), toy(), spin_degres=3)


def test_an_unused_option_is_noted() -> None:
    other = Format(id="oth", label="Other", extensions=(".oth",))
    registry = build_registry(
        toys, build_plugin("oth", meshhub_writers=lambda: [Writer(format=other, run="toys:write")])
    )
    chain = resolve_chain(registry, toy(), "oth", toy_style="fancy")
    assert [note.code for note in chain.notes] == ["option_unused"]


class PolishOptions(Struct, frozen=True, kw_only=True):
    polish: Annotated[bool, Meta(title="Polish")] = False
    polish_inward: Annotated[bool, Meta(title="Inward")] = False
    polish_strength: Annotated[float, Meta(title="Strength", ge=0, le=1)] | None = None


class CoatOptions(Struct, frozen=True, kw_only=True):
    acme_coat: Annotated[bool, Meta(title="Coat")] = True
    acme_coat_mm: Annotated[float, Meta(title="Thickness", ge=0, le=1)] | None = None


def build_registry_with_options() -> Registry:
    operations = [
        Operation(id="polish", label="Polish", run="toys:spin", stage=Stage.PLACE, options=PolishOptions),
        Operation(id="coat", label="Coat", run="toys:spin", stage=Stage.PLACE, options=CoatOptions, requires="pro"),
    ]
    return build_registry(toys, build_plugin("acme", meshhub_operations=lambda: operations))


@pytest.mark.parametrize("off", [False, "false", "no", "0", "OFF"])
@pytest.mark.parametrize(
    ("switch", "other", "value"),
    [("polish", "polish_strength", "0.5"), ("polish", "polish_inward", True), ("acme_coat", "acme_coat_mm", 0.5)],
)
def test_an_operation_that_is_switched_off_does_not_run(off: object, switch: str, other: str, value: object) -> None:
    chain = resolve_chain(build_registry_with_options(), toy(), **{other: value, switch: off})
    assert [step.kind for step in chain.steps] == ["read", "write"]
    (unused,) = chain.notes
    assert unused.code == "option_unused" and repr(other) in unused.message


@pytest.mark.parametrize("options", [{"polish_strength": 0.5}, {"polish_strength": 0, "polish_inward": False}])
def test_any_option_of_an_operation_selects_it_unless_its_flag_is_false(options: dict[str, object]) -> None:
    for more in ({}, {"polish": ""}, {"polish": True}):
        chain = resolve_chain(build_registry_with_options(), toy(), **options, **more)
        assert [step.id for step in chain.steps if step.kind == "operation"] == ["polish"]
        assert chain.notes == ()


def test_options_reach_their_step_only() -> None:
    chain = resolve_chain(build_registry(toys), toy(), toy_size="3", toy_style="fancy")
    assert chain.steps[0].options == {"toy_size": 3.0}
    assert chain.steps[-1].options == {"toy_style": "fancy"}


SHOWING = Reader(
    format=toys.TOY,
    run="toys:read",
    options=toys.ToyReaderOptions,
    frame=None,
    options_for={"display": {"toy_size": "7.5"}},
)
"""Reader with an option for scenes that are only shown."""


@pytest.mark.parametrize("options", [{}, {"toy_size": "3"}, {"toy_size": ""}])
@pytest.mark.parametrize(
    ("request_fields", "is_conversion"),
    [
        ({"target": "toy"}, True),
        ({"purpose": "inspect"}, False),
        ({"purpose": "render"}, False),
        ({"purpose": "preview"}, False),
        ({"purpose": "render", "options": {"spin_degrees": "3"}}, True),
    ],
    ids=["conversion", "inspection", "picture", "preview", "picture of an operation"],
)
def test_display_options_apply_where_a_scene_is_only_shown_and_no_option_is_requested(
    request_fields: dict[str, Any], is_conversion: bool, options: dict[str, str]
) -> None:
    others = build_plugin("w", meshhub_writers=toys.meshhub_writers, meshhub_operations=toys.meshhub_operations)
    registry = Registry([build_plugin("r", meshhub_readers=lambda: [SHOWING]), others], entry_points=False)
    request = Request(**{**request_fields, "options": {**request_fields.get("options", {}), **options}})
    step = registry.resolve(request, toy()).steps[0]
    requested = {name: float(text) for name, text in options.items() if text}
    assert step.options == (requested or ({} if is_conversion else {"toy_size": 7.5}))


def test_a_scene_that_a_program_reads_is_not_only_shown() -> None:
    with build_registry(build_plugin("r", meshhub_readers=lambda: [SHOWING])) as registry:
        scene = registry.read(toy())
        assert np.ptp(scene.meshes[0].vertices, axis=0).max() == 300
        assert max(registry.inspect(toy()).model.size_mm) == 225


@pytest.mark.parametrize("occasion", get_args(Occasion))
@pytest.mark.parametrize(
    "values", [{"toy_width": "3"}, {"toy_size": "wide"}, {"toy_size": "-1"}, {"toy_style": "plain"}]
)
def test_values_that_are_not_those_of_an_option_of_the_reader_are_faults(
    occasion: Occasion, values: dict[str, str]
) -> None:
    reader = msgspec.structs.replace(SHOWING, options_for={occasion: values})
    registry = build_registry(build_plugin("r", meshhub_readers=lambda: [reader]))
    assert not registry.declarations.readers
    (fault,) = registry.faults
    assert occasion in fault.message and next(iter(values)) in fault.message


def test_the_highest_score_is_chosen_in_any_order() -> None:
    def reader(name: str, score: int) -> types.ModuleType:
        return build_plugin(name, meshhub_readers=lambda: [Reader(format=toys.TOY, run="toys:read", score=score)])

    for readers in ([reader("a", 10), reader("b", 90)], [reader("b", 90), reader("a", 10)]):
        chain = build_registry(*readers, build_plugin("w", meshhub_writers=toys.meshhub_writers)).resolve(
            Request(target="toy"), toy()
        )
        assert chain.steps[0].plugin == "b"


def test_a_broken_sniffer_does_not_hide_other_formats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toys, "sniff_badly", raising, raising=False)
    other = Format(id="oth", label="Other", extensions=(".oth",))
    reader = Reader(format=other, run="toys:read", sniff="toys:sniff_badly")
    assert (
        resolve_chain(build_registry(build_plugin("oth", meshhub_readers=lambda: [reader]), toys), toy()).source_format
        == "toy"
    )


@pytest.mark.parametrize("score", [101, -1, 60.5, "60", None])
def test_a_sniffer_score_out_of_bounds_is_ignored(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, score: object
) -> None:
    monkeypatch.setattr(toys, "sniff_badly", lambda _head, _size: score, raising=False)
    other = Format(id="oth", label="Other", extensions=(".oth",))
    reader = Reader(format=other, run="toys:read", sniff="toys:sniff_badly")
    registry = build_registry(build_plugin("oth", meshhub_readers=lambda: [reader]), toys)
    assert resolve_chain(registry, toy()).source_format == "toy"
    assert "whole number from 0 to 100" in caplog.text
    with pytest.raises(UnsupportedFormat):
        resolve_chain(registry, Source.from_bytes(b"what", "a.xyz"))


def test_a_sniffer_that_raises_system_exit_does_not_hide_other_formats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toys, "sniff_badly", lambda _head, _size: sys.exit(0), raising=False)
    other = Format(id="oth", label="Other", extensions=(".oth",))
    reader = Reader(format=other, run="toys:read", sniff="toys:sniff_badly")
    assert (
        resolve_chain(build_registry(build_plugin("oth", meshhub_readers=lambda: [reader]), toys), toy()).source_format
        == "toy"
    )


@pytest.mark.parametrize("score", [101, -1])
def test_a_declared_score_that_is_out_of_bounds_is_a_fault(score: int) -> None:
    reader = Reader(format=toys.TOY, run="toys:read", score=score)
    writer = Writer(format=toys.TOY, run="toys:write", score=score)
    registry = build_registry(build_plugin("a", meshhub_readers=lambda: [reader], meshhub_writers=lambda: [writer]))
    assert [fault.plugin for fault in registry.faults] == ["a", "a"]
    assert all(f"whole number from 0 to 100, got {score}" in fault.message for fault in registry.faults)
    assert not registry.declarations.readers and not registry.declarations.writers


# plans and reviews

PRO_TOY = Writer(format=Format(id="protoy", label="Pro toy", extensions=(".ptoy",)), run="toys:write", requires="pro")


def test_an_entitlement_is_checked_before_options_and_source() -> None:
    registry = build_registry(toys, build_plugin("protoy", meshhub_writers=lambda: [PRO_TOY]))
    request = Request(target="protoy", options={"nonsense": "1"})
    with pytest.raises(PremiumRequired):
        registry.resolve(request, toy("what", "a.xyz"), FREE)
    assert registry.resolve(Request(target="protoy"), toy(), LOCAL).steps[-1].requires == "pro"
    pro = Caller(plan=Plan(id="pro", label="Pro", grants=frozenset({"pro"})))
    assert registry.resolve(Request(target="protoy"), toy(), pro)


class Tuesdays:
    """Plug-in that grants "pro" to all callers on Tuesdays."""

    def __init__(self) -> None:
        self.day = "Monday"
        self.asked: list[Caller] = []

    @hookimpl
    def meshhub_grants(self, caller: Caller) -> list[str]:
        self.asked.append(caller)
        return ["pro"] if self.day == "Tuesday" else []


@pytest.mark.skipif(find_spec("OCP") is None, reason="STEP needs OCP")
def test_a_plugin_can_grant_more_than_the_plan() -> None:
    policy = Tuesdays()
    registry = Registry([toys, policy], entry_points=False)
    request = Request(target="step", options={})
    with pytest.raises(PremiumRequired):
        registry.resolve(request, toy(), FREE)
    assert "step" not in supported(registry, FREE)["output_formats"]
    policy.day = "Tuesday"
    assert "step" in supported(registry, FREE)["output_formats"]
    entitled = registry.entitled(FREE)
    assert (entitled.plan.grants, entitled.plan.id, FREE.plan.grants) == ({"pro"}, "free", frozenset())
    policy.day = "Wednesday"
    policy.asked.clear()
    assert registry.entitled(entitled) is entitled
    assert registry.entitled(LOCAL) is LOCAL
    assert policy.asked == []
    assert registry.resolve(request, toy(), entitled).target_format == "step"


@pytest.mark.parametrize("grants", [raising, lambda: "pro", lambda: 3, lambda: ["pro", 3], lambda: None])
def test_a_broken_plugin_grants_nothing(grants: Any, caplog: pytest.LogCaptureFixture) -> None:
    fine = build_plugin("fine", meshhub_grants=lambda: iter(("lab",)))
    registry = build_registry(toys, build_plugin("broken", meshhub_grants=grants), fine)
    assert registry.entitled(FREE).plan.grants == {"lab"}
    assert "'broken'" in caplog.text or grants() is None


def test_the_error_lists_all_objections() -> None:
    def objects(code: str) -> types.ModuleType:
        return build_plugin(
            code, meshhub_review=lambda chain: [Objection(code=code, message=f"no {code}", remedy="ask")]
        )

    with pytest.raises(RequestRefused, match=r"no late — ask; no small — ask") as caught:
        resolve_chain(build_registry(toys, objects("late"), objects("small")), toy())
    assert caught.value.error_code == "late"


@pytest.mark.parametrize("review", [raising, lambda chain: 3, lambda chain: ["no"]])
def test_a_broken_review_rejects_the_request(review: Any) -> None:
    with pytest.raises(PluginError, match="rejected"):
        resolve_chain(build_registry(toys, build_plugin("gate", meshhub_review=review)), toy())


# running


def convert(text: str = "toy!", registry: Registry | None = None, **options: object) -> tuple[Report, str]:
    target = Target()
    report = (registry or build_registry(toys)).convert(toy(text), target, target="toy", **options)  # type: ignore[arg-type]
    return report, target.read().decode()


def test_frames_are_converted_by_the_host() -> None:
    # 10 × 20 × 30 cm with Y up, written in meters with Y up
    report, text = convert()
    assert text == "plain m y 0 [0.1, 0.2, 0.3]"
    assert report.source.size_mm == pytest.approx((100, 300, 200))
    report, text = convert(input_unit="in", input_up="z")
    assert report.source.size_mm == pytest.approx((254, 508, 762))
    assert text == "plain m y -0.508 [0.254, 0.762, 0.0]"


def build_framed(declared: Frame | None, stated: Frame | None, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """Return a registry whose reader declares one frame, and returns a cube of 50 whose scene states another."""
    reader = Reader(format=toys.TOY, run="framed:read", frame=declared)
    plugin = build_plugin("framed", meshhub_readers=lambda: [reader])
    plugin.read = lambda source, options: Scene((brick(50, 50, 50),), (Part(0),), frame=stated)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "framed", plugin)
    return build_registry(plugin)


@pytest.mark.parametrize(
    ("declared", "stated", "unit", "size_mm"),
    [
        (Frame("m", "y"), None, "m", 50_000),
        (Frame("m", "y"), Frame("m", "y"), "m", 50_000),
        (HOST_FRAME, None, "mm", 50),
        (None, Frame("in", "z"), "in", 1270),
        (None, None, "mm", 50),
    ],
)
def test_the_declared_frame_is_that_of_scenes_that_state_none(
    declared: Frame | None, stated: Frame | None, unit: str, size_mm: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = build_framed(declared, stated, monkeypatch).inspect(toy()).source
    assert source.frame is not None
    assert (source.frame.unit, source.size_mm) == (unit, pytest.approx((size_mm,) * 3))


@pytest.mark.parametrize(("declared", "stated"), [(Frame("m", "y"), HOST_FRAME), (HOST_FRAME, Frame("in", "z"))])
def test_a_scene_that_contradicts_the_declared_frame_is_a_fault_of_the_plugin(
    declared: Frame, stated: Frame, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = build_framed(declared, stated, monkeypatch)
    with pytest.raises(PluginError, match=r"'framed'.* declares m.*, but its scene states .*maintainer of 'framed'"):
        registry.inspect(toy())


def test_certain_losses_become_notes() -> None:
    report, _ = convert("toy! colors")
    assert {note.code for note in report.notes} == {"colors_dropped", "names_dropped", "frame_converted"}
    report, _ = convert("toy! colors", spin_degrees=1)
    assert {(loss.feature, loss.step) for loss in report.losses} == {("colors", "spin"), ("names", "toy")}


def test_notes_of_a_step_have_its_name() -> None:
    report, _ = convert("toy! note")
    assert ("toy_noted", "toy") in [(note.code, note.step) for note in report.notes]


@pytest.mark.parametrize(
    ("word", "error"),
    [
        ("raise", PluginError),
        ("quit", PluginError),
        ("none", PluginError),
        ("nan", UnreadableFile),
        ("range", UnreadableFile),
        ("empty", EmptyModel),
    ],
)
def test_a_faulty_reader_gives_a_coded_error(word: str, error: type[MeshhubError]) -> None:
    with pytest.raises(error) as caught:
        convert(f"toy! {word}")
    # a service shows the message to its callers
    assert "secret" not in caught.value.message


def test_listeners_are_called_after_success_and_failure_and_their_errors_ignored() -> None:
    heard: list[Report] = []
    registry = build_registry(
        toys,
        build_plugin("ears", meshhub_finished=lambda report: heard.append(report)),
        build_plugin("bad", meshhub_finished=raising),
    )
    convert(registry=registry)
    with pytest.raises(EmptyModel):
        convert("toy! empty", registry=registry)
    assert [report.ok for report in heard] == [True, False]
    assert heard[1].error is not None
    assert heard[1].error.error_code == "empty_model"


def test_a_target_is_written_completely_or_not_at_all(tmp_path: Path) -> None:
    source, target = tmp_path / "a.toy", tmp_path / "b.toy"
    source.write_text("toy! empty")
    target.write_text("before")
    registry = build_registry(toys)
    with pytest.raises(EmptyModel):
        registry.convert(source, target, overwrite=True)
    assert target.read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.toy", "b.toy"]
    source.write_text("toy!")
    with pytest.raises(OutputExists):
        registry.convert(source, target, overwrite=False)
    registry.convert(source, target, overwrite=True)
    assert target.read_text().startswith("plain")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.toy", "b.toy"]


def test_a_missing_input_is_reported(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        build_registry(toys).convert(tmp_path / "none.toy", tmp_path / "b.toy")


def test_listing_capabilities_imports_no_numpy() -> None:
    import subprocess

    code = "import sys; from meshhub import Registry; assert Registry().plugins; print('numpy' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"
