"""Memory that jobs need, which the formats of their files declare."""

from __future__ import annotations

from pathlib import Path

import pytest

from meshhub import Format, Reader, Registry, hookimpl
from meshhub.model.chain import Request
from meshhub.service.jobs.job import JobFile
from meshhub.service.jobs.weights import DEFAULT_MEMORY_BYTES, MAX_MEMORY_BYTES, estimate_memory

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]


class Heavy:
    """Plug-in with a format of a costly library."""

    @hookimpl
    def meshhub_readers(self) -> list[Reader]:
        format_ = Format(id="heavy", label="Heavy", extensions=(".hvy",), memory_base_bytes=3 << 30, memory_ratio=1.5)
        return [Reader(format=format_, run="toys:read")]


DECLARATIONS = Registry([Heavy()], entry_points=False).declarations


@pytest.mark.parametrize("name", ["a.stl", "a.STEP", "a.stp", "a.zip", "a.unknown", "a"])
def test_larger_files_need_more_memory_up_to_the_limit_of_a_conversion(name: str) -> None:
    sizes = [0, 1 << 20, 50 << 20, 100 << 30]
    needed = [estimate_memory([JobFile("b.stl", 10), JobFile(name, size)], DECLARATIONS) for size in sizes]
    assert needed == sorted(needed)
    assert needed[1] < needed[2]
    assert needed[-1] == MAX_MEMORY_BYTES


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.HVY", (3 << 30) + 1_500),
        # the archive may hold that file
        ("a.zip", (3 << 30) + 1_500),
        ("a.other", (512 << 20) + 25_000),
    ],
)
def test_the_format_declares_the_memory(name: str, expected: int) -> None:
    assert estimate_memory([JobFile(name, 1000)], DECLARATIONS) == expected


def test_an_archive_needs_the_memory_of_the_heaviest_format_for_its_size() -> None:
    declarations = Registry(entry_points=False).declarations
    for size in (1000, 50 << 20):
        archive = estimate_memory([JobFile("a.zip", size)], declarations)
        files = [
            estimate_memory([JobFile(f"a{format_.extensions[0]}", size)], declarations)
            for format_ in declarations.formats.values()
        ]
        assert archive == max(files)


def test_files_that_are_combined_are_in_memory_together() -> None:
    files = [JobFile("a.hvy", 1000), JobFile("b.stl", 3000)]
    combined = estimate_memory(files, DECLARATIONS, are_combined=True)
    assert combined == estimate_memory([JobFile("a.hvy", 4000)], DECLARATIONS)
    assert combined > estimate_memory(files, DECLARATIONS)
    large = [JobFile("b.stl", 100 << 30)] * 2
    assert estimate_memory(large, DECLARATIONS, are_combined=True) == MAX_MEMORY_BYTES
    assert estimate_memory(large, DECLARATIONS, max_memory_bytes=20 << 30) == 20 << 30


def test_a_job_needs_what_its_most_demanding_file_needs() -> None:
    needed = estimate_memory([JobFile("a.stl", 9), JobFile("b.hvy", 1), JobFile("c.ply", 9)], DECLARATIONS)
    assert needed == (3 << 30) + 1
    assert estimate_memory([], DECLARATIONS) == DEFAULT_MEMORY_BYTES


def test_the_guide_of_clusters_states_what_formats_declare() -> None:
    guide = " ".join((ROOT / "docs" / "how-to" / "cluster.md").read_text(encoding="utf-8").split())
    formats = DECLARATIONS.formats
    for format_, each in ((formats["stl"], "of an STL"), (formats["step"], "of a STEP file")):
        memory = (
            f"{format_.memory_base_bytes / (1 << 30):g} GiB and {format_.memory_ratio:g} bytes for each byte {each}"
        )
        assert memory in guide


def test_what_runs_raises_the_demand() -> None:
    registry = Registry(entry_points=False)
    requests = {
        "convert": registry.check_request(Request(target="3mf")),
        "repair": registry.check_request(Request(target="3mf", options={"repair": True})),
        "repair_solid": registry.check_request(Request(target="3mf", options={"repair": True, "repair_solid": True})),
        "step": registry.check_request(Request(target="step")),
        "one check": registry.check_request(Request(purpose="check", options={"checks": "mesh"})),
        "check": registry.check_request(Request(purpose="check")),
    }
    file = JobFile("a.stl", 20 << 20)
    demands = {
        name: estimate_memory([file], registry.declarations, memory=request.memory)
        for name, request in requests.items()
    }
    assert demands["convert"] == estimate_memory([file], registry.declarations)
    assert demands["convert"] < demands["repair"] < demands["check"]
    assert demands["convert"] <= demands["one check"] < demands["check"]
