"""Coverage-guided fuzzing of everything that reads what strangers send (atheris, which is libFuzzer for Python).

    python benchmarks/fuzz.py [targets …] [--seconds 300] [--seed 1] [--found FOLDER] [--corpus FOLDER]

`tox -e fuzz` does it in a fresh environment. Every target runs in a process of its own, one after the
other; the coverage of meshhub's own modules guides it, from seeds that our writers make here. A finding is

- an exception that is no MeshhubError, or a MeshhubError that blames a plug-in or the service,
- a warning, or a message that is not one short printable line,
- more than `SECONDS` of processor time or `MEGABYTES` of memory for an input of a few kilobytes,
- a crash or a hang of the process.

The smallest input of each kind of finding is kept in `--found`; any makes the exit status 1. `--corpus`
keeps what reached new code, for the next run to begin with. STEP is not among the targets: its kernel is
native code that no coverage guides and that may crash; `step_mutations.py` damages STEP files in isolated workers.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import logging
import pkgutil
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from pathlib import Path
from typing import Any

from fuzz_targets import TARGETS, check_messages, memory

SECONDS = 0.3
"""The most processor time for one input, measured again before it is believed."""

MEGABYTES = 100
"""The most memory for one input, beyond what the process had before."""

LONGEST = 16 << 10
"""Bytes of an input: small, so that whatever is slow or large is out of proportion."""

HANG = 30
"""Seconds after which an input counts as a hang; the process is stopped then, and started anew."""

# -- one target, in its process --


class Watch:
    """Runs one input after the other, and keeps the smallest of each kind of finding."""

    def __init__(self, name: str, found: Path) -> None:
        self._run = TARGETS[name].run
        self._found = found
        self._name = name
        self._sizes: dict[str, int] = {}
        self._state = found / f"{name}.state.json"
        self._slowest = self._largest = 0.0
        found.mkdir(parents=True, exist_ok=True)

    def __call__(self, data: bytes) -> None:
        """One input, as libFuzzer gives it."""
        from meshhub.errors import MeshhubError, PluginError

        kind = ""
        clear_peak()
        before, started = peak_megabytes(), time.process_time()
        try:
            self._run(data)
        except PluginError as error:
            kind = signature(error.__cause__ or error)
        except MeshhubError as error:
            if error.code == "internal_error":
                kind = signature(error)
            else:
                try:
                    check_messages([error.message])
                except AssertionError as wrong:
                    kind = signature(wrong)
        except Exception as error:
            kind = signature(error)
        seconds, megabytes = time.process_time() - started, peak_megabytes() - before
        if seconds > max(self._slowest, 0.005) * 1.1 or megabytes > max(self._largest, 1) * 1.1:
            self._slowest, self._largest = max(self._slowest, seconds), max(self._largest, megabytes)
            self._state.write_text(json.dumps({"slowest": self._slowest, "largest": self._largest}))
        if seconds > SECONDS and self._again(data) > SECONDS:
            kind = kind or f"slow-{zlib.crc32(data[:16]) % 8}"
        elif megabytes > MEGABYTES:
            kind = kind or f"large-{zlib.crc32(data[:16]) % 8}"
        if kind and len(data) < self._sizes.get(kind, 1 << 30):
            self._sizes[kind] = len(data)
            (self._found / f"{self._name}-{kind}.bin").write_bytes(data)
            print(f"\nFINDING {self._name} {kind} ({len(data)} bytes, {seconds:.2f} s, {megabytes:.0f} MB)", flush=True)

    def _again(self, data: bytes) -> float:
        """The processor time of a second run: the first may have imported something, or been disturbed."""
        started = time.process_time()
        with contextlib.suppress(Exception):
            self._run(data)
        return time.process_time() - started


def signature(error: BaseException) -> str:
    """A name for a kind of finding: the exception and where in meshhub it was raised."""
    frames = list(traceback.extract_tb(error.__traceback__))
    last = ([one for one in frames if "meshhub" in one.filename] or frames)[-1]
    path = Path(last.filename)
    return re.sub(r"[^\w-]", "", f"{type(error).__name__}-{path.parent.name}-{path.stem}-{last.lineno}")


def clear_peak() -> None:
    """Let the process's highest memory count from now (proc(5), clear_refs)."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:  # noqa: PTH123
        file.write("5")


def peak_megabytes() -> float:
    """The highest memory since the last `clear_peak`."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run_here(name: str, found: Path, arguments: list[str]) -> None:
    """Fuzz one target in this process; does not come back."""
    import atheris

    with atheris.instrument_imports(include=["meshhub", "multipart"], enable_loader_override=False):
        for name_of in ("meshhub.http.intake.archives", "meshhub.http.intake.uploads"):
            importlib.import_module(name_of)
        for format_id in ("stl", "obj", "ply", "gltf", "threemf"):
            package = importlib.import_module(f"meshhub.builtin_plugins.{format_id}")
            for one in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
                importlib.import_module(one.name)
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("error")
    watch = Watch(name, found)
    for seed in TARGETS[name].seeds():
        watch(seed)
    atheris.Setup([sys.argv[0], *arguments], watch)
    atheris.Fuzz()


# -- all targets, from outside --


def fuzzed(name: str, asked: argparse.Namespace, work: Path) -> dict[str, Any]:
    """Fuzz one target for its time, beginning anew after what ends the process."""
    corpus = (asked.corpus or work) / name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(TARGETS[name].seeds()):
        (corpus / f"seed-{number}").write_bytes(seed)
    words = work / f"{name}.words"
    words.write_text("".join(f'"{word}"\n' for word in TARGETS[name].words.split()))
    told: dict[str, Any] = {"target": name, "runs": 0, "edges": 0, "features": 0, "seconds": 0.0}
    end = time.monotonic() + asked.seconds
    attempt = 0
    while (left := int(end - time.monotonic())) > 0 and attempt < 20:
        attempt += 1
        options = [
            f"-max_total_time={left}", f"-max_len={LONGEST}", f"-seed={asked.seed + attempt}", f"-timeout={HANG}",
            "-rss_limit_mb=0", "-print_final_stats=1", f"-dict={words}", "-close_fd_mask=1",
            f"-artifact_prefix={asked.found}/{name}-stopped-",
        ]  # fmt: skip
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, __file__, "--here", name, "--found", str(asked.found)]
        done = subprocess.run(
            [*command, "--", *options, str(corpus)], capture_output=True, text=True, errors="replace", check=False
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        told["seconds"] += after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        _count(told, done.stderr)
        if done.returncode and not told["runs"]:
            sys.exit(f"{name} could not be fuzzed at all:\n{done.stderr[-2000:]}")
        if done.returncode:
            (asked.found / f"{name}-stopped-{attempt}.log").write_text(done.stderr[-20_000:])
        else:
            break
    state = asked.found / f"{name}.state.json"
    told |= json.loads(state.read_text()) if state.exists() else {"slowest": 0, "largest": 0}
    state.unlink(missing_ok=True)
    told["found"] = sorted(one.name for one in asked.found.iterdir() if one.name.startswith(f"{name}-"))
    return told


def _count(told: dict[str, Any], said: str) -> None:
    """Add up what libFuzzer tells."""
    for edges, features in re.findall(r"cov: (\d+) ft: (\d+)", said)[-1:]:
        told["edges"] = max(told["edges"], int(edges))
        told["features"] = max(told["features"], int(features))
    runs = re.findall(r"stat::number_of_executed_units:\s*(\d+)", said) or re.findall(r"^#(\d+)\s", said, re.M)
    told["runs"] += int(runs[-1]) if runs else 0


def main() -> int:
    """Fuzz the targets one after the other and print the table."""
    parser = argparse.ArgumentParser(description="coverage-guided fuzzing of the readers")
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, []], help="all unless named")
    parser.add_argument("--seconds", type=int, default=300, help="for each target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--found", type=Path, default=Path("fuzz-found"), help="where findings are kept")
    parser.add_argument("--corpus", type=Path, help="where inputs that reached new code are kept")
    asked = parser.parse_args()
    asked.found.mkdir(parents=True, exist_ok=True)
    print("| target | CPU s | inputs | edges | features | slowest s | largest MB | findings |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    findings: list[str] = []
    with tempfile.TemporaryDirectory(dir=memory()) as work:
        for name in asked.targets or TARGETS:
            told = fuzzed(name, asked, Path(work))
            findings += told["found"]
            print(
                f"| {name} | {told['seconds']:.0f} | {told['runs']} | {told['edges']} | {told['features']} | "
                f"{told['slowest']:.2f} | {told['largest']:.0f} | {len(told['found'])} |",
                flush=True,
            )
    for one in findings:
        print(asked.found / one)
    if not findings:
        shutil.rmtree(asked.found, ignore_errors=True)
    return 1 if findings else 0


if __name__ == "__main__":
    if "--here" in sys.argv:
        at = sys.argv.index("--here")
        run_here(sys.argv[at + 1], Path(sys.argv[at + 3]), sys.argv[at + 5 :])
    sys.exit(main())
