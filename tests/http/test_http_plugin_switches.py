"""What operators and policies switch: disabled plug-ins, rules, plans."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from distributions import install
from http_serving import check_error, serving
from meshhub import LOCAL, Caller, Limits, Objection, Registry, RequestRefused, Rule, Target, hookimpl
from meshhub.http import Settings, create_app
from meshhub.model.chain import Request
from meshhub.service.keys import KeyStore
from meshhub.service.settings import load
from meshhub.supported import supported
from models import brick, scene_of

pytestmark = pytest.mark.once

SUPPORT = Path(__file__).parents[1] / "support"
BRICK = Registry(entry_points=False).convert_bytes(scene_of(brick()), "stl")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    install(tmp_path / "site", "meshhub-toys", toys="toys")
    return tmp_path


def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "meshhub", *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(folder / "site"), str(SUPPORT))),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "COLUMNS": "200",
            **variables,
        },
    )


def list_plugins(folder: Path, **variables: str) -> tuple[set[str], set[str]]:
    """Return the names of the loaded and of the disabled plug-ins."""
    listed = json.loads(run(folder, "plugins", "--json", **variables).stdout)
    return {entry["name"] for entry in listed["plugins"]}, {entry["name"] for entry in listed["disabled"]}


@pytest.mark.large
def test_plugins_are_disabled_and_enabled(site: Path) -> None:
    assert "toys" in list_plugins(site)[0]
    for name in ("toys", "ply"):
        done = run(site, "plugins", "disable", name)
        assert (done.returncode, done.stderr) == (0, f"{name} is disabled\n")
    loaded, disabled = list_plugins(site)
    assert disabled == {"toys", "ply"}
    assert not loaded & disabled
    assert "disabled: toys (meshhub-toys 1.2)" in run(site, "plugins").stdout
    assert "toy" not in json.loads(run(site, "formats", "--json").stdout)
    (site / "a.stl").write_bytes(BRICK)
    assert "unsupported_target" in run(site, "convert", "a.stl", "a.ply").stderr
    for name in ("toys", "ply"):
        assert run(site, "plugins", "enable", name).returncode == 0
    assert list_plugins(site)[1] == set()
    assert run(site, "convert", "a.stl", "a.ply").returncode == 0


def test_a_variable_disables_plugins(site: Path) -> None:
    assert list_plugins(site, MESHHUB_DISABLED_PLUGINS="toys, ply,unknown")[1] == {"toys", "ply"}
    done = run(site, "plugins", "enable", "toys", MESHHUB_DISABLED_PLUGINS="toys")
    assert done.returncode == 2
    assert "disabled by the variable MESHHUB_DISABLED_PLUGINS" in done.stderr


def test_wrong_names_are_rejected(site: Path) -> None:
    done = run(site, "plugins", "disable", "toy")
    assert (done.returncode, "did you mean 'toys'?" in done.stderr) == (2, True)
    done = run(site, "plugins", "enable", "toys")
    assert (done.returncode, "'toys' is not disabled" in done.stderr) == (2, True)


def test_a_broken_plugin_can_be_disabled(tmp_path: Path) -> None:
    install(tmp_path / "site", "meshhub-broken", broken="no_such_module")
    assert "fault: broken" in run(tmp_path, "plugins").stderr
    assert run(tmp_path, "plugins", "disable", "broken").returncode == 0
    done = run(tmp_path, "plugins")
    assert (done.returncode, done.stderr) == (0, "")


def test_registries_leave_out_disabled_plugins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert [plugin.name for plugin in Registry(disabled=["ply"]).disabled_plugins] == ["ply"]
    assert "ply" not in Registry(disabled=["ply"]).formats
    monkeypatch.setenv("MESHHUB_DISABLED_PLUGINS", "obj")
    assert not {"obj", "ply"} & set(Registry(disabled=["ply"]).formats)


def test_the_service_leaves_out_disabled_plugins(tmp_path: Path) -> None:
    assert load({"MESHHUB_DISABLED_PLUGINS": "ply, obj"}).settings.disabled_plugins == ("ply", "obj")
    file = tmp_path / "meshhub.toml"
    file.write_text('disabled_plugins = ["ply"]')
    settings = load({"MESHHUB_SETTINGS": str(file)}).settings
    app = create_app(settings, keys=KeyStore(f"sqlite:///{tmp_path / 'keys.sqlite3'}"))
    try:
        assert "ply" not in app.state.service.registry.formats
    finally:
        app.state.service.registry.close()
    assert Settings().disabled_plugins == ()


# rules


class Rules:
    @hookimpl
    def meshhub_rules(self) -> list[Rule]:
        no_ply = Objection(code="no_ply", message="PLY is for customers", remedy="choose STL")
        no_cut = Objection(code="no_cut", message="nothing is cut here")
        return [
            Rule(objection=no_ply, formats=frozenset({"ply"}), plans=frozenset({"free"})),
            Rule(objection=no_cut, operations=frozenset({"flatten-base"})),
        ]


def test_rules_reject_requests_before_the_source_is_read() -> None:
    registry = Registry([Rules()], entry_points=False)
    free = Caller(plan=registry.plans["free"])
    with pytest.raises(RequestRefused, match="PLY is for customers — choose STL") as raised:
        registry.check_request(Request(target="ply"), free)
    assert raised.value.error_code == "no_ply"
    with pytest.raises(RequestRefused, match="nothing is cut here; PLY"):
        registry.convert(scene_of(brick()), Target(), target="ply", caller=free, options={"flatten_base_mm": 1})
    assert registry.convert(scene_of(brick()), Target(), target="ply").ok
    with pytest.raises(RequestRefused, match="nothing is cut here"):
        registry.read(scene_of(brick()), flatten_base_mm=1)


def test_rules_show_as_not_allowed() -> None:
    registry = Registry([Rules()], entry_points=False)
    for caller, is_allowed in ((LOCAL, True), (Caller(plan=registry.plans["free"]), False)):
        listed = supported(registry, caller)
        assert listed["formats"]["ply"]["allowed"] == is_allowed
        assert ("ply" in listed["output_formats"]) == is_allowed
        assert listed["formats"]["ply"]["objection"] == (None if is_allowed else "PLY is for customers")
        (cut,) = (entry for entry in listed["operations"] if entry["id"] == "flatten-base")
        assert (cut["allowed"], cut["objection"]) == (False, "nothing is cut here")
        assert listed["formats"]["stl"]["allowed"]


def test_the_service_lists_and_applies_rules(tmp_path: Path) -> None:
    with serving(tmp_path, {"workers": 1}, plugins=(Rules(),)) as server:
        assert server.get("/supported").json()["formats"]["ply"]["allowed"] is False
        check_error(server.convert(BRICK, "a.stl", "ply"), 403, "no_ply")


# plans


@pytest.mark.parametrize(
    ("limits", "request_bytes"),
    [
        (Limits(max_file_bytes=100, max_batch_files=3), 300),
        (Limits(max_file_bytes=100, max_batch_files=3, max_request_bytes=250), 250),
        (Limits(max_file_bytes=100), None),
        (Limits(max_batch_files=3), None),
        (Limits(), None),
    ],
)
def test_a_plan_derives_the_size_of_requests(limits: Limits, request_bytes: int | None) -> None:
    assert limits.request_bytes == request_bytes


def test_the_service_applies_the_derived_size(tmp_path: Path) -> None:
    limits = {"free": {"max_file_bytes": 1000, "max_batch_files": 2, "max_request_bytes": None}}
    with serving(tmp_path, {"workers": 1, "plan_limits": limits}) as server:
        assert server.get("/plan").json()["limits"]["max_request_bytes"] == 2000
        many = [(f"{number}.stl", bytes(99_000)) for number in range(3)]
        error = check_error(server.many(*many, target="stl"), 413, "file_too_large")
        assert "2000 bytes in one request" in error["error"]


@pytest.mark.large
def test_explain_for_a_plan(site: Path) -> None:
    (site / "a.stl").write_bytes(BRICK)
    assert run(site, "explain", "a.stl", "step").returncode == 0
    assert run(site, "explain", "a.stl", "step", "--plan", "pro").returncode == 0
    done = run(site, "explain", "a.stl", "step", "--plan", "free")
    assert (done.returncode, "[premium_format_required]" in done.stderr) == (2, True)
    done = run(site, "explain", "a.stl", "step", "--plan", "gold")
    assert (done.returncode, "known are free, pro" in done.stderr) == (2, True)
