"""Readers beside those of other libraries: `python benchmarks/readers.py`, with MESHHUB_CORPUS.

Each reader reads every mesh file of the corpus that is expected to convert. A result is right if it has the triangle
count, the bounding box in millimeters and the volume that another reader finds, too. Files on which no two readers
agree prove nothing and are counted apart. The table holds files that are right, read otherwise, and rejected.
"""

from __future__ import annotations

import csv
import os
import sys
import tempfile
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from corpus_check import JUDGES, TOLERANCE, Shape, registry, rows, shape

RECORD = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])


def by_meshhub(path: Path, kind: str) -> Shape:
    """Return the shape that meshhub finds, as the triangles of a binary STL."""
    del kind
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "model.stl"
        registry().convert(path, target, timeout=60)
        return shape(np.frombuffer(target.read_bytes(), RECORD, offset=84)["corners"], "meshhub")


def read(path: Path) -> dict[str, Shape | None]:
    """Return what each reader finds in a file; None if it rejects the file."""
    kind = path.parent.name
    shapes: dict[str, Shape | None] = {}
    for reader in (by_meshhub, *JUDGES[kind]):
        name = reader.__name__.removeprefix("by_")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                shapes[name] = reader(path, kind)
        except Exception:
            shapes[name] = None
    return shapes


def judge(shapes: dict[str, Shape | None]) -> dict[str, str]:
    """Return `right`, `different` or `rejected` for each reader; empty if no two readers agree."""
    verdicts = {}
    for name, own in shapes.items():
        others = [other for key, other in shapes.items() if key != name and other is not None]
        is_right = own is not None and any(not own.differs(other, TOLERANCE) for other in others)
        verdicts[name] = "right" if is_right else "different" if own is not None else "rejected"
    return verdicts if "right" in verdicts.values() else {}


def main() -> None:
    """Print the table as CSV, and the files that meshhub does not read right."""
    corpus = Path(os.environ["MESHHUB_CORPUS"])
    paths = [corpus / row["file"] for row in rows(corpus) if row["expect"] == "converts"]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        results = list(pool.map(read, paths))
    counts: Counter[tuple[str, str, str]] = Counter()
    undecided: Counter[str] = Counter()
    for path, shapes in zip(paths, results, strict=True):
        verdicts = judge(shapes)
        kind = path.parent.name
        undecided[kind] += not verdicts
        counts.update((kind, name, verdict) for name, verdict in verdicts.items())
        if verdicts.get("meshhub", "right") != "right":
            print(f"{path.name}: {verdicts}", file=sys.stderr)
    table = csv.writer(sys.stdout)
    table.writerow(["format", "reader", "right", "different", "rejected", "files_without_agreement"])
    for kind, name in sorted({key[:2] for key in counts}):
        row = [counts[kind, name, verdict] for verdict in ("right", "different", "rejected")]
        table.writerow([kind, name, *row, undecided[kind]])


if __name__ == "__main__":
    main()
