"""Engines: answers, deadlines, crashes, leaving nothing behind."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import toys
from meshhub import (
    Cancel,
    Cancelled,
    ConversionTimeout,
    InProcess,
    Isolated,
    MeshhubError,
    ModelTooComplex,
    PluginError,
    Registry,
    ServerBusy,
    ShuttingDown,
    Source,
    Target,
    WorkerCrashed,
)
from meshhub.report import Inspection, Report


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    made = Registry([toys], entry_points=False, engine=Isolated(workers=2, queue=1))
    yield made
    made.close()


def convert(registry: Registry, text: str, timeout: float = 30, cancel: Cancel | None = None) -> tuple[Report, bytes]:
    target = Target()
    report = registry.convert(
        Source.from_bytes(text.encode(), "a.toy"), target, to="toy", timeout=timeout, cancel=cancel
    )
    return report, target.read()


def test_the_answer_is_the_same_as_in_process(registry: Registry) -> None:
    here = Registry([toys], entry_points=False, engine=InProcess())
    report, data = convert(registry, "toy! note")
    told, same = convert(here, "toy! note")
    assert data == same
    assert report.notes == told.notes
    assert report.target == told.target


def test_an_inspection_crosses_the_border(registry: Registry) -> None:
    found = registry.inspect(Source.from_bytes(b"toy!", "a.toy"), timeout=30)
    assert isinstance(found, Inspection)
    assert found.model.watertight
    assert found.model.volume_mm3 == pytest.approx(100 * 200 * 300)


@pytest.mark.parametrize(
    ("word", "error"),
    [
        ("crash", WorkerCrashed),
        ("exit", WorkerCrashed),
        ("quit", PluginError),
        ("memory", ModelTooComplex),
        ("raise", PluginError),
    ],
)
def test_what_goes_wrong_has_its_code(registry: Registry, word: str, error: type[MeshhubError]) -> None:
    with pytest.raises(error):
        convert(registry, f"toy! {word}")


def test_a_hang_ends_at_the_deadline(registry: Registry) -> None:
    with pytest.raises(ConversionTimeout, match="optimize_target_faces"):
        convert(registry, "toy! hang", timeout=0.5)


def test_the_caller_may_leave(registry: Registry) -> None:
    cancel = Cancel()
    threading.Timer(0.3, cancel).start()
    with pytest.raises(Cancelled):
        convert(registry, "toy! hang", cancel=cancel)
    cancel.close()


def test_a_full_queue_is_busy_and_others_are_served(registry: Registry, tmp_path: Path) -> None:
    go = tmp_path / "go"
    outcomes: list[object] = []

    def ask() -> None:
        try:
            outcomes.append(convert(registry, f"toy! wait {go}")[1])
        except MeshhubError as error:
            outcomes.append(error)

    threads = [threading.Thread(target=ask) for _ in range(5)]
    for thread in threads:
        thread.start()
    limit = time.monotonic() + 20
    while len(outcomes) < 2 and time.monotonic() < limit:
        time.sleep(0.01)
    go.touch()
    for thread in threads:
        thread.join()
    assert sum(isinstance(outcome, ServerBusy) for outcome in outcomes) == 2
    assert sum(isinstance(outcome, bytes) for outcome in outcomes) == 3


def test_nothing_is_left_behind(registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for word in ("cube", "crash", "hang"):
        try:
            convert(registry, f"toy! {word}", timeout=0.5 if word == "hang" else 30)
        except MeshhubError:
            continue
    assert list(tmp_path.iterdir()) == []


def test_a_closed_engine_takes_no_task() -> None:
    made = Registry([toys], entry_points=False, engine=Isolated())
    made.close()
    with pytest.raises(ShuttingDown):
        convert(made, "toy!")


def test_a_program_is_not_run_again_in_its_workers(tmp_path: Path) -> None:
    """A script without a guard around its main part, as people write them."""
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\n"
        f"sys.path[:0] = {[str(Path(toys.__file__).parent)]!r}\n"
        "import toys\n"
        "from meshhub import Isolated, Registry, Source, Target\n"
        "print('once')\n"
        "registry = Registry([toys], entry_points=False, engine=Isolated(workers=1))\n"
        "report = registry.convert(Source.from_bytes(b'toy!', 'a.toy'), Target(), to='toy')\n"
        "print(report.ok)\n"
        "registry.close()\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["once", "True"]
