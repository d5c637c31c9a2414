"""Compare the output bytes of two checkouts: every format pair, and the operations of most requests.

    python benchmarks/same_bytes.py BEFORE AFTER [--corpus FOLDER]

BEFORE converts a generated model to every input format. Both checkouts then convert these files, and the files of
the corpus where one is named, with the same options. The script prints every difference and exits with 1 if there is
one. Run it before and after a change that must not alter results.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path

FORMATS = ("stl", "obj", "ply", "glb", "gltf", "3mf", "step")
OPERATIONS: tuple[dict[str, object], ...] = (
    {"repair": True},
    {"optimize_target_faces": 60},
    {"target_height_mm": 33.0},
    {"flatten_base_mm": 1.5},
    {"place_on_bed": True},
    {
        "repair": True,
        "optimize_target_faces": 80,
        "target_height_mm": 25.0,
        "flatten_base_mm": 1.0,
        "place_on_bed": True,
    },
)
CORPUS_TARGETS = ("stl", "glb", "3mf", "obj")
CORPUS_FILES_PER_FORMAT = 12
"""Enough for every reader's branches; STEP output of scans would take minutes."""

COLORED_PLY = """ply
format ascii 1.0
element vertex 4
property float x
property float y
property float z
property uchar red
property uchar green
property uchar blue
element face 4
property list uchar int vertex_indices
end_header
0 0 0 255 0 0
30 0 0 0 255 0
0 30 0 0 0 255
0 0 30 255 255 0
3 0 2 1
3 0 1 3
3 1 2 3
3 0 3 2
"""

RUN = """
import hashlib, json, sys, tempfile
from pathlib import Path
from meshhub import MeshhubError, Registry

registry = Registry(entry_points=False)
for line in sys.stdin:
    job = json.loads(line)
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / ("out." + job["target"])
        try:
            report = registry.convert(job["source"], target, **job["options"])
            codes = sorted({note.code for note in report.notes})
            digest = hashlib.sha256()
            for path in sorted(Path(folder).iterdir()):
                digest.update(path.name.encode() + path.read_bytes())
            answer = [digest.hexdigest(), codes]
            if job["keep"]:
                for path in Path(folder).iterdir():
                    path.replace(Path(job["keep"]) / path.name.replace("out.", job["stem"] + "."))
        except MeshhubError as error:
            answer = [error.error_code, []]
    print(json.dumps(answer), flush=True)
"""


def run_jobs(checkout: Path, jobs: list[dict[str, object]]) -> list[list[object]]:
    """Run the jobs with the package of one checkout; return a digest or error code and the note codes of each."""
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src"), "PYTHONHASHSEED": "0"}
    lines = "".join(json.dumps(job) + "\n" for job in jobs)
    process = subprocess.run(
        [sys.executable, "-c", RUN], input=lines, env=environment, capture_output=True, text=True, check=False
    )
    if process.returncode:
        sys.exit(f"{checkout}: the conversions failed:\n{process.stderr[-2000:]}")
    return [json.loads(line) for line in process.stdout.splitlines()]


def job(source: Path, target: str, options: dict[str, object], keep: Path | None = None) -> dict[str, object]:
    """Return a conversion as plain data; `keep` is the folder that receives its output."""
    return {
        "source": str(source),
        "target": target,
        "options": options,
        "keep": str(keep) if keep else "",
        "stem": source.stem,
    }


def corpus_jobs(corpus: Path) -> list[dict[str, object]]:
    """Return conversions of small files of every format of the corpus, without operations and with several."""
    jobs = []
    for name in FORMATS:
        files = sorted((corpus / name).glob("*"), key=lambda path: (path.stat().st_size, path.name))
        step = max(1, len(files) // CORPUS_FILES_PER_FORMAT)
        for source, target in product(files[::step][:CORPUS_FILES_PER_FORMAT], CORPUS_TARGETS):
            if source.stat().st_size < 2_000_000:
                jobs.append(job(source, target, {}))
        jobs += [
            job(source, "3mf", {"repair": True, "target_height_mm": 20.0, "place_on_bed": True})
            for source in files[::step][:CORPUS_FILES_PER_FORMAT]
            if source.stat().st_size < 500_000
        ]
    return jobs


def main() -> int:
    """Compare two checkouts; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--corpus", type=Path)
    arguments = parser.parse_args()
    before, after = arguments.before.resolve(), arguments.after.resolve()
    with tempfile.TemporaryDirectory() as folder:
        inputs = Path(folder)
        colored = inputs / "colored.ply"
        colored.write_text(COLORED_PLY, encoding="ascii")
        bracket = before / "examples" / "bracket.stl"
        seeds = [job(bracket, name, {}, inputs) for name in FORMATS]
        seeds += [job(colored, name, {}, inputs) for name in FORMATS if name != "ply"]
        run_jobs(before, seeds)
        sources = [inputs / f"bracket.{name}" for name in FORMATS]
        colors = [inputs / f"colored.{name}" for name in FORMATS]
        jobs = [job(source, name, {}) for source, name in product(sources + colors, FORMATS)]
        jobs += [
            job(source, name, options) for source, name, options in product(sources[:2], ("3mf", "glb"), OPERATIONS)
        ]
        if arguments.corpus:
            jobs += corpus_jobs(arguments.corpus)
        old, new = run_jobs(before, jobs), run_jobs(after, jobs)
    differences = 0
    for entry, first, second in zip(jobs, old, new, strict=True):
        if first != second:
            differences += 1
            print(f"{entry['source']} -> {entry['target']} {entry['options']}: {first} / {second}")
    digests = sum(len(str(digest)) == hashlib.sha256().digest_size * 2 for digest, _ in old)
    print(f"{len(jobs)} conversions, {digests} with output, {differences} different")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
