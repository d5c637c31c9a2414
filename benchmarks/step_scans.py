"""Scans and sculptures as STEP files: their triangles, and B-spline faces within a share of their size.

    python benchmarks/step_scans.py MODEL... [--share 0.002]

For each model: triangles, faces, B-spline faces, the largest distance of a corner from its face over the diagonal, CPU
seconds, and whether OpenCASCADE reads valid solids.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parent.parent / "tests" / "support"))

from meshhub import Registry
from opencascade_report import judge_files


def run(model: Path, share: float, target: Path) -> list[str]:
    """Write one STEP file, and return the columns of the table."""
    registry = Registry()
    inspection = registry.inspect(model).model
    diagonal = float(np.linalg.norm(inspection.size_mm))
    started = time.process_time()
    report = registry.convert(model, target, step_tolerance_mm=min(share * diagonal, 1.0))
    seconds = time.process_time() - started
    figures = {name: value for step in report.steps for name, value in step.figures.items()}
    verdict = judge_files([target])[0]
    return [
        model.name,
        str(inspection.faces),
        str(figures["faces"]),
        str(figures.get("bsplines", 0)),
        f"{figures['max_deviation_mm'] / diagonal:.3%}",
        f"{seconds:.0f} s",
        "valid" if verdict["valid"] else "invalid",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--share", type=float, default=0.002, help="allowed distance over the diagonal")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for number, model in enumerate(options.models):
            print(" | ".join(run(model, options.share, Path(folder) / f"{number}.step")), flush=True)


if __name__ == "__main__":
    main()
