"""Halve and double each numeric constant of a package, and count the cases whose results change.

    python benchmarks/constants.py print|repair|recognition [--parts FOLDER …] [--csv FILE] [--names FILE:NAME …]
                                   [--stop-after 2] [--case-seconds 15] [--folder FOLDER [--compare]] [--list]

`constant_cases.py` makes the cases. FOLDER has real parts with an INDEX.csv; default: MESHHUB_CORPUS, and `printed`
beside it. Each run has its own process, forked from one that has loaded libraries and modules that do not import
the package. There the loader of one module passes the value of one constant through a function, so that constants
derived from it, and modules that import it, follow.

Values between ½ and 1½ are moved from 1, as ratios and cosines; counts are rounded and stay at least 1. A case is run
for a constant only if the unchanged run called a function that reads it; the fastest cases run first, as many as take
so many seconds of processor time unchanged. A run ends after so many changed cases, and counts as changed if it takes
four times as long. Cases whose results differ between two unchanged runs are left out. --folder keeps the cases and the
unchanged results; after a change of the package, --compare lists the cases whose results are others.
"""

from __future__ import annotations

import argparse
import ast
import bisect
import csv
import datetime
import importlib
import importlib.util
import itertools
import json
import math
import multiprocessing
import os
import pickle
import platform
import resource
import signal
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "meshhub"
PACKAGES = {
    "print": "builtin_plugins/print",
    "repair": "builtin_plugins/repair",
    "recognition": "builtin_plugins/step/recognition",
}
FACTORS = (0.5, 2.0)
SLOW_RATIO, MIN_LIMIT_S = 4.0, 10.0
"""Processor time of a run, per time of the unchanged run, and in addition, after which it counts as changed."""
WALL_RATIO = 8.0
"""Seconds of the clock per second of processor time after which a run is ended; other programs may be running."""
_VARY = "__vary"
"""Name of the function in the changed module."""
_UNIT_SUFFIXES = ("_MM", "_MM2", "_MM3", "_DEG", "_RAD", "_S", "_MM_S", "_MM_S2")
"""Endings of names whose values are no ratios, also near 1."""

Function = tuple[str, str]
"""File, and qualified name of a function or method outside other functions."""


class Constant(NamedTuple):
    """A number, or numbers, at the top of a module.

    readers: functions whose results may depend on it; None if all cases may
    """

    path: str
    name: str
    value: Any
    readers: frozenset[Function] | None


class Case(NamedTuple):
    """Input of a run: a model, or a pickled scene, and the options of the request."""

    name: str
    path: Path
    options: dict[str, Any]


class Run(NamedTuple):
    """Results of cases by name, and the seconds of processor time and the functions of each."""

    results: dict[str, str]
    seconds: dict[str, float]
    functions: dict[str, set[Function]]


def vary(value: Any, name: str, factor: float) -> Any:
    """Return a number, or the numbers of a tuple or dict, times a factor, as the docstring of this module explains."""
    if isinstance(value, dict):
        return {key: vary(item, name, factor) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(vary(item, name, factor) for item in value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if isinstance(value, int):
        return max(1, round(value * factor)) if value > 0 else value
    if 0.5 < abs(value) <= 1.5 and not name.endswith(_UNIT_SUFFIXES):
        one = 1.0 if value > 0 else -1.0
        return one + (value - one) * factor
    return value * factor


def is_numeric(value: Any) -> bool:
    """Return whether a value is a number, or consists of numbers."""
    if isinstance(value, dict):
        return bool(value) and all(is_numeric(item) for item in value.values())
    if isinstance(value, tuple):
        return bool(value) and all(is_numeric(item) for item in value)
    return isinstance(value, int | float) and not isinstance(value, bool)


def name_module(path: Path) -> str:
    """Return the name by which a file of the package is imported."""
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def list_assigned(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """Yield the names in capital letters that a module assigns, and their statements."""
    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            targets = [statement.target]
        else:
            continue
        for target in targets:
            for node in target.elts if isinstance(target, ast.Tuple) else [target]:
                if isinstance(node, ast.Name) and node.id.isupper():
                    yield node.id, statement


def mentions(node: ast.AST, name: str) -> bool:
    """Return whether code reads a name, or an attribute of that name."""
    return any(
        (isinstance(child, ast.Name) and child.id == name and isinstance(child.ctx, ast.Load))
        or (isinstance(child, ast.Attribute) and child.attr == name)
        for child in ast.walk(node)
    )


class Readers:
    """Functions of the package that read a constant."""

    def __init__(self) -> None:
        self._trees = {path: ast.parse(path.read_bytes()) for path in sorted(SOURCE.rglob("*.py"))}
        self._imports: dict[tuple[str, str], list[Path]] = defaultdict(list)
        for path, tree in self._trees.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.ImportFrom) and node.module:
                    for alias in node.names:
                        self._imports[node.module, alias.name].append(path)

    def find(self, path: Path, name: str) -> frozenset[Function] | None:
        """Return the functions that read a constant; None if code outside functions reads it in another way."""
        functions: set[Function] = set()
        pending, seen = [(path, name)], set()
        while pending:
            key = pending.pop()
            if key in seen:
                continue
            seen.add(key)
            for user in {key[0], *self._imports[name_module(key[0]), key[1]]}:
                for place in self._find_in(user, key[1]):
                    if place is None:
                        return None
                    if isinstance(place, tuple):
                        functions.add(place)
                    else:
                        pending.append((user, place))
        return frozenset(functions)

    def _find_in(self, path: Path, name: str) -> Iterator[Function | str | None]:
        """Yield the functions and constants of a file that read a name; None for other code."""
        tree = self._trees[path]
        for statement in tree.body:
            if isinstance(statement, ast.FunctionDef):
                yield from self._find_in_function(path, statement, "", name)
            elif isinstance(statement, ast.ClassDef):
                for inner in statement.body:
                    if isinstance(inner, ast.FunctionDef):
                        yield from self._find_in_function(path, inner, f"{statement.name}.", name)
                    elif mentions(inner, name):
                        yield None
            elif mentions(statement, name):
                derived = [target for target, owner in list_assigned(tree) if owner is statement]
                yield from derived or [None]

    @staticmethod
    def _find_in_function(path: Path, node: ast.FunctionDef, prefix: str, name: str) -> Iterator[Function | None]:
        if any(mentions(part, name) for part in (node.args, *node.decorator_list)):
            yield None
        elif mentions(node, name):
            yield str(path), prefix + node.name


class VaryingLoader(SourceFileLoader):
    """Loader that passes the value of one constant through `vary`."""

    def __init__(self, name: str, path: str, constant: str, factor: float) -> None:
        super().__init__(name, path)
        self._constant, self._factor = constant, factor

    def get_code(self, fullname: str) -> Any:
        """Compile the changed source; bytecode is neither read nor written."""
        path = self.get_filename(fullname)
        tree = ast.parse(self.get_data(path))
        statement = next(owner for name, owner in list_assigned(tree) if name == self._constant)
        change = ast.parse(f"{self._constant} = {_VARY}({self._constant})").body
        tree.body[tree.body.index(statement) + 1 : tree.body.index(statement) + 1] = change
        return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        """Run the changed source."""
        vars(module)[_VARY] = lambda value: vary(value, self._constant, self._factor)
        super().exec_module(module)


class VaryingFinder:
    """Finder of the one module with the changed constant."""

    def __init__(self, constant: Constant, factor: float) -> None:
        self._path, self._name, self._factor = Path(constant.path), constant.name, factor

    def find_spec(self, fullname: str, path: Sequence[str] | None, _: object = None) -> ModuleSpec | None:
        """Return the spec of the changed module; None for others."""
        if fullname != name_module(self._path):
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None:
            spec.loader = VaryingLoader(fullname, str(self._path), self._name, self._factor)
        return spec


def list_constants(package: Path) -> list[Constant]:
    """Return the numeric constants of a package."""
    readers, constants = Readers(), []
    for path in sorted(package.glob("*.py")):
        module = importlib.import_module(name_module(path))
        for name, _ in list_assigned(ast.parse(path.read_bytes())):
            value = getattr(module, name)
            if hasattr(value, "item"):
                value = value.item() if getattr(value, "ndim", 1) == 0 else None
            if is_numeric(value):
                constants.append(Constant(str(path), name, value, readers.find(path, name)))
    return constants


def run_cases(
    answers: Connection,
    package: str,
    cases: list[Case],
    varied: tuple[Constant, float] | None,
    expected: dict[str, str] | None,
    stop_after: int,
    cpu_seconds: float,
) -> None:
    """Run cases in this process, and send a tuple for each: name, result, seconds, functions.

    Args:
        answers: Pipe.
        package: Key of PACKAGES.
        cases: Cases of `constant_cases`.
        varied: Constant and factor; None for an unchanged run.
        expected: Unchanged results. Without them, the called functions are recorded.
        stop_after: Changed cases after which the run ends; 0 for none.
        cpu_seconds: Processor time after which the process is killed; 0 for no limit.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    if cpu_seconds:
        resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_seconds) + 1, int(cpu_seconds) + 1))
    if varied is not None:
        sys.meta_path.insert(0, VaryingFinder(*varied))
    from constant_cases import OBSERVERS

    observe, changed = OBSERVERS[package], 0
    called: set[Function] = set()
    if expected is None:
        record = make_recorder(called)
        threading.setprofile(record)
        sys.setprofile(record)
    for case in cases:
        called.clear()
        begin = time.process_time()
        try:
            result = json.dumps(observe(case), sort_keys=True)
        except Exception as error:  # an error is a result, and any may come
            result = f"{type(error).__name__}: {error}"[:200]
        answers.send((case.name, result, time.process_time() - begin, set(called)))
        changed += expected is not None and result != expected[case.name]
        if stop_after and changed >= stop_after:
            break
    sys.setprofile(None)
    answers.send(list(sys.modules))
    answers.close()
    os._exit(0)


def list_dependents(package: Path) -> set[str]:
    """Return the modules of a package, and all modules that import one of them, directly or not."""
    imports: dict[str, set[str]] = {}
    for path in sorted([*SOURCE.rglob("*.py"), *(ROOT / "benchmarks").glob("*.py")]):
        names = imports[name_module(path) if SOURCE in path.parents else path.stem] = set()
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ImportFrom) and node.module:
                names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
    dependents = {name_module(path) for path in package.glob("*.py")}
    while True:
        added = {name for name, names in imports.items() if name not in dependents and names & dependents}
        if not added:
            return dependents
        dependents |= added


def make_recorder(called: set[Function]) -> Callable[[FrameType, str, Any], None]:
    """Return a function for `sys.setprofile` that adds the called functions of meshhub."""
    prefix, known = str(SOURCE), {}

    def record(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            code = frame.f_code
            if code not in known:
                inside = code.co_filename.startswith(prefix)
                known[code] = (code.co_filename, code.co_qualname.partition(".<locals>")[0]) if inside else None
            function = known[code]
            if function is not None:
                called.add(function)

    return record


def start_run(*arguments: Any, wall_seconds: float) -> tuple[Run, list[str] | None]:
    """Run cases in another process; return what it answered, and the loaded libraries, None if it was killed."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=run_cases, args=(sender, *arguments))
    process.start()
    sender.close()
    run, libraries = Run({}, {}, {}), None
    deadline = time.monotonic() + wall_seconds
    try:
        while receiver.poll(max(0.0, deadline - time.monotonic())):
            answer = receiver.recv()
            if isinstance(answer, list):
                libraries = answer
                break
            name, result, seconds, functions = answer
            run.results[name], run.seconds[name], run.functions[name] = result, seconds, functions
    except EOFError:
        pass
    if process.pid is not None and libraries is None:
        os.kill(process.pid, signal.SIGKILL)
    process.join()
    return run, libraries


def in_child(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a function that another process runs, so that no module of it stays in this one."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def call() -> None:
        sender.send(function(*arguments))
        sender.close()
        os._exit(0)

    process = context.Process(target=call)
    process.start()
    sender.close()
    result = receiver.recv()
    process.join()
    return result


def make_cases(package: str, folder: Path, parts: list[Path]) -> list[tuple[Any, ...]]:
    """Return the cases of a package."""
    from constant_cases import MAKERS

    return [tuple(case) for case in MAKERS[package](folder, parts)]


def load_modules(names: list[str]) -> None:
    """Import modules, so that the processes that are forked from this one have them."""
    for name in names:
        if name not in sys.modules:
            try:
                importlib.import_module(name)
            except Exception:  # some modules cannot be imported alone
                continue


def prepare(options: argparse.Namespace, folder: Path) -> tuple[list[Case], Run, Run, list[str]]:
    """Return the cases, two unchanged runs, and the modules that do not depend on the package; a folder keeps them."""
    kept, package = folder / f"{options.package}.pickle", options.package
    if kept.exists():
        cases, *runs, modules = pickle.loads(kept.read_bytes())
        return [Case(*case) for case in cases], Run(*runs[0]), Run(*runs[1]), modules
    cases = [Case(*case) for case in in_child(make_cases, package, folder, options.parts)]
    base, modules = start_run(package, cases, None, None, 0, 0.0, wall_seconds=3600.0)
    if options.verbose:
        for case in cases:
            print(
                f"  {base.seconds.get(case.name, 0.0):6.2f} s  {case.name}: {base.results.get(case.name)}"[:150],
                flush=True,
            )
    dependents = in_child(list_dependents, SOURCE / PACKAGES[package])
    modules = [name for name in modules or [] if name not in dependents]
    load_modules(modules)
    cases = [case for case in cases if base.seconds.get(case.name, math.inf) < options.max_case_seconds]
    again, _ = start_run(package, cases[::-1], None, base.results, 0, 0.0, wall_seconds=3600.0)
    kept.write_bytes(pickle.dumps(([tuple(case) for case in cases], tuple(base), tuple(again), modules)))
    return cases, base, again, modules


def compare(options: argparse.Namespace) -> int:
    """Print the cases of a folder whose results differ from those that the folder keeps."""
    cases, base, _, modules = prepare(options, options.folder)
    load_modules(modules)
    run, _ = start_run(options.package, cases, None, base.results, 0, 0.0, wall_seconds=3600.0)
    different = [case.name for case in cases if run.results.get(case.name) != base.results[case.name]]
    print(f"{len(different)} of {len(cases)} cases differ: {', '.join(different) or 'none'}")
    return 1 if different else 0


def measure(options: argparse.Namespace, constants: list[Constant], folder: Path) -> int:
    """Print and write a row for each constant."""
    package = options.package
    cases, base, again, modules = prepare(options, folder)
    load_modules(modules)
    unsteady = [case.name for case in cases if base.results.get(case.name) != again.results.get(case.name)]
    cases = sorted((case for case in cases if case.name not in unsteady), key=lambda case: again.seconds[case.name])
    print(
        f"{len(cases)} cases, {sum(again.seconds.values()):.1f} s; left out: {', '.join(unsteady) or 'none'}",
        flush=True,
    )
    with Path(options.csv or os.devnull).open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if file.tell() == 0:
            writer.writerow("machine recorded package file name value cases changed_half changed_double".split())
        for constant in constants:
            chosen = [case for case in cases
                      if constant.readers is None or constant.readers & base.functions[case.name]]  # fmt: skip
            ends = list(itertools.accumulate(again.seconds[case.name] for case in chosen))
            chosen = chosen[: bisect.bisect_right(ends, options.case_seconds)]
            limit = SLOW_RATIO * ends[len(chosen) - 1] + MIN_LIMIT_S if chosen else MIN_LIMIT_S
            changed = []
            for factor in FACTORS:
                if repr(vary(constant.value, constant.name, factor)) == repr(constant.value):
                    changed.append("equal")
                    continue
                run, ended = start_run(package, chosen, (constant, factor), base.results, options.stop_after, limit,
                                       wall_seconds=WALL_RATIO * limit)  # fmt: skip
                count = sum(result != base.results[name] for name, result in run.results.items())
                changed.append(str(count + (ended is None)))
                if options.verbose:
                    names = [name for name, result in run.results.items() if result != base.results[name]]
                    print(f"  {constant.name} x {factor}: {', '.join(names)}{'' if ended else ' killed'}", flush=True)
            path = Path(constant.path).relative_to(SOURCE / PACKAGES[package]).as_posix()
            row = (path, constant.name, json.dumps(constant.value, default=str), len(chosen), *changed)
            print(*row, sep="\t", flush=True)
            writer.writerow((platform.machine(), datetime.date.today().isoformat(), package, *row))
            file.flush()
    return 0


def main() -> int:
    """Find the constants, and measure or list them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", choices=list(PACKAGES))
    parser.add_argument("--parts", type=Path, nargs="*", default=None, help="folders of real parts")
    parser.add_argument("--csv", type=Path, help="file to add the rows to")
    parser.add_argument("--names", nargs="*", help="constants to measure, as file.py:NAME; default: all")
    parser.add_argument("--stop-after", type=int, default=2, help="changed cases after which a run ends; 0: none")
    parser.add_argument("--case-seconds", type=float, default=15.0, help="processor time of the cases of a constant")
    parser.add_argument("--max-case-seconds", type=float, default=1.5, help="time of a case above which it is left out")
    parser.add_argument("--folder", type=Path, help="keeps the cases and the unchanged results for further runs")
    parser.add_argument("--compare", action="store_true", help="compare the cases of --folder with its kept results")
    parser.add_argument("--list", action="store_true", help="list the constants only")
    parser.add_argument("--verbose", action="store_true", help="print cases, and which of them change")
    options = parser.parse_args()
    if options.parts is None:
        corpus = Path(os.environ["MESHHUB_CORPUS"])
        options.parts = [corpus, corpus.parent / "printed"]
    sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks"), str(ROOT / "tests" / "support")]
    constants = in_child(list_constants, SOURCE / PACKAGES[options.package])
    if options.names:
        constants = [each for each in constants if f"{Path(each.path).name}:{each.name}" in options.names]
    if options.list:
        for each in constants:
            print(Path(each.path).name, each.name, each.value, sep="\t")
        print(f"{len(constants)} constants")
        return 0
    if options.compare:
        return compare(options)
    with tempfile.TemporaryDirectory() as temporary:
        return measure(options, constants, options.folder or Path(temporary))


if __name__ == "__main__":
    sys.exit(main())
