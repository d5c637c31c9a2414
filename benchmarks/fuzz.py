"""Coverage-guided fuzzing of everything that reads input of callers, with atheris (libFuzzer for Python).

    python benchmarks/fuzz.py [targets …] [--seconds 300] [--seed 1] [--found FOLDER] [--corpus FOLDER]

`tox -e fuzz` runs it in a new environment. The targets run one after the other, each in its own process, guided by the
coverage of meshhub's modules, from seeds that the writers generate. A finding is

- an exception that is not a MeshhubError, or a MeshhubError that blames a plug-in or the service,
- a warning, or a message that is not one short printable line,
- more than `MAX_CPU_S` of processor time or `MAX_MEGABYTES` of memory for an input of a few kilobytes,
- a crash or a hang of the process.

The smallest input of each kind of finding is kept in `--found`; a finding makes the exit status 1. `--corpus` keeps the
inputs that reached new code, as seeds for the next run. STEP is not a target, because its kernel is native code: it has
no coverage to guide the fuzzer and may crash. `step_mutations.py` damages STEP files in isolated workers.
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

MAX_CPU_S = 0.3
"""Processor seconds for one input; an excess is measured again before it counts."""

MAX_MEGABYTES = 100
"""Memory for one input, beyond that of the process before."""

MAX_INPUT_BYTES = 16 << 10
"""Small inputs, for which high costs are out of proportion."""

HANG_TIMEOUT_S = 30
"""Seconds after which an input counts as a hang; the process is then killed and restarted."""

# -- a target, in its own process --


class Monitor:
    """Function for libFuzzer that measures each input and keeps the smallest input of each kind of finding."""

    def __init__(self, name: str, findings: Path) -> None:
        self._run = TARGETS[name].run
        self._findings = findings
        self._name = name
        self._sizes: dict[str, int] = {}
        self._state = findings / f"{name}.state.json"
        self._slowest = self._largest = 0.0
        findings.mkdir(parents=True, exist_ok=True)

    def __call__(self, data: bytes) -> None:
        """Run one input."""
        from meshhub.errors import MeshhubError, PluginError

        kind = ""
        reset_peak()
        before, started = peak_megabytes(), time.process_time()
        try:
            self._run(data)
        except PluginError as error:
            kind = signature(error.__cause__ or error)
        except MeshhubError as error:
            if error.error_code == "internal_error":
                kind = signature(error)
            else:
                try:
                    check_messages([error.message])
                except AssertionError as failure:
                    kind = signature(failure)
        except Exception as error:
            kind = signature(error)
        seconds, megabytes = time.process_time() - started, peak_megabytes() - before
        if seconds > max(self._slowest, 0.005) * 1.1 or megabytes > max(self._largest, 1) * 1.1:
            self._slowest, self._largest = max(self._slowest, seconds), max(self._largest, megabytes)
            self._state.write_text(json.dumps({"slowest": self._slowest, "largest": self._largest}))
        if seconds > MAX_CPU_S and self._measure_again(data) > MAX_CPU_S:
            kind = kind or f"slow-{zlib.crc32(data[:16]) % 8}"
        elif megabytes > MAX_MEGABYTES:
            kind = kind or f"large-{zlib.crc32(data[:16]) % 8}"
        if kind and len(data) < self._sizes.get(kind, 1 << 30):
            self._sizes[kind] = len(data)
            (self._findings / f"{self._name}-{kind}.bin").write_bytes(data)
            print(f"\nFINDING {self._name} {kind} ({len(data)} bytes, {seconds:.2f} s, {megabytes:.0f} MB)", flush=True)

    def _measure_again(self, data: bytes) -> float:
        """Return the processor seconds of a second run; the first may have imported modules."""
        started = time.process_time()
        with contextlib.suppress(Exception):
            self._run(data)
        return time.process_time() - started


def signature(error: BaseException) -> str:
    """Return a name for the kind of finding: the exception and the place in meshhub that raised it."""
    frames = list(traceback.extract_tb(error.__traceback__))
    last = ([frame for frame in frames if "meshhub" in frame.filename] or frames)[-1]
    path = Path(last.filename)
    return re.sub(r"[^\w-]", "", f"{type(error).__name__}-{path.parent.name}-{path.stem}-{last.lineno}")


def reset_peak() -> None:
    """Reset the memory peak of the process (proc(5), clear_refs)."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:  # noqa: PTH123
        file.write("5")


def peak_megabytes() -> float:
    """Return the memory peak since the last `reset_peak`."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def fuzz_in_process(name: str, findings: Path, arguments: list[str]) -> None:
    """Fuzz one target in this process; does not return."""
    import atheris

    with atheris.instrument_imports(include=["meshhub", "multipart"], enable_loader_override=False):
        for module in ("meshhub.http.intake.archives", "meshhub.http.intake.uploads"):
            importlib.import_module(module)
        from meshhub import Registry

        readers = Registry(entry_points=False).declarations.readers
        for plugin in sorted({reader.plugin for reader in readers if reader.capability.format.id in TARGETS}):
            package = importlib.import_module(f"meshhub.builtin_plugins.{plugin}")
            for submodule in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
                importlib.import_module(submodule.name)
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("error")
    monitor = Monitor(name, findings)
    for seed in TARGETS[name].seeds():
        monitor(seed)
    atheris.Setup([sys.argv[0], *arguments], monitor)
    atheris.Fuzz()


# -- all targets --


def fuzz(name: str, arguments: argparse.Namespace, work: Path) -> dict[str, Any]:
    """Fuzz one target for its time, and restart its process after a crash or a hang."""
    corpus = (arguments.corpus or work) / name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(TARGETS[name].seeds()):
        (corpus / f"seed-{number}").write_bytes(seed)
    dictionary = work / f"{name}.dictionary"
    dictionary.write_text("".join(f'"{word}"\n' for word in TARGETS[name].dictionary.split()))
    result: dict[str, Any] = {"target": name, "runs": 0, "edges": 0, "features": 0, "seconds": 0.0}
    end = time.monotonic() + arguments.seconds
    attempt = 0
    while (remaining_s := int(end - time.monotonic())) > 0 and attempt < 20:
        attempt += 1
        options = [
            f"-max_total_time={remaining_s}", f"-max_len={MAX_INPUT_BYTES}", f"-seed={arguments.seed + attempt}",
            f"-timeout={HANG_TIMEOUT_S}", "-rss_limit_mb=0", "-print_final_stats=1", f"-dict={dictionary}",
            "-close_fd_mask=1", f"-artifact_prefix={arguments.found}/{name}-stopped-",
        ]  # fmt: skip
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, __file__, "--here", name, "--found", str(arguments.found)]
        process = subprocess.run(
            [*command, "--", *options, str(corpus)], capture_output=True, text=True, errors="replace", check=False
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        result["seconds"] += after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        _add_statistics(result, process.stderr)
        if process.returncode and not result["runs"]:
            sys.exit(f"{name} did not start:\n{process.stderr[-2000:]}")
        if process.returncode:
            (arguments.found / f"{name}-stopped-{attempt}.log").write_text(process.stderr[-20_000:])
        else:
            break
    state = arguments.found / f"{name}.state.json"
    result |= json.loads(state.read_text()) if state.exists() else {"slowest": 0, "largest": 0}
    state.unlink(missing_ok=True)
    result["found"] = sorted(path.name for path in arguments.found.iterdir() if path.name.startswith(f"{name}-"))
    return result


def _add_statistics(result: dict[str, Any], log: str) -> None:
    """Add the statistics in libFuzzer's log."""
    for edges, features in re.findall(r"cov: (\d+) ft: (\d+)", log)[-1:]:
        result["edges"] = max(result["edges"], int(edges))
        result["features"] = max(result["features"], int(features))
    runs = re.findall(r"stat::number_of_executed_units:\s*(\d+)", log) or re.findall(r"^#(\d+)\s", log, re.M)
    result["runs"] += int(runs[-1]) if runs else 0


def main() -> int:
    """Fuzz the targets one after the other, print the table, and return the exit status."""
    parser = argparse.ArgumentParser(description="coverage-guided fuzzing of the readers")
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, []], help="default: all")
    parser.add_argument("--seconds", type=int, default=300, help="per target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--found", type=Path, default=Path("fuzz-found"), help="folder for findings")
    parser.add_argument("--corpus", type=Path, help="folder for inputs that reached new code")
    arguments = parser.parse_args()
    arguments.found.mkdir(parents=True, exist_ok=True)
    print("| target | CPU s | inputs | edges | features | slowest s | largest MB | findings |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    findings: list[str] = []
    with tempfile.TemporaryDirectory(dir=memory()) as work:
        for name in arguments.targets or TARGETS:
            result = fuzz(name, arguments, Path(work))
            findings += result["found"]
            print(
                f"| {name} | {result['seconds']:.0f} | {result['runs']} | {result['edges']} | {result['features']} | "
                f"{result['slowest']:.2f} | {result['largest']:.0f} | {len(result['found'])} |",
                flush=True,
            )
    for name in findings:
        print(arguments.found / name)
    if not findings:
        shutil.rmtree(arguments.found, ignore_errors=True)
    return 1 if findings else 0


if __name__ == "__main__":
    if "--here" in sys.argv:
        index = sys.argv.index("--here")
        fuzz_in_process(sys.argv[index + 1], Path(sys.argv[index + 3]), sys.argv[index + 5 :])
    sys.exit(main())
