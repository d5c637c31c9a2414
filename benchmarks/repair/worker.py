"""Process of one entrant: reads lines with two paths, and answers each with the CPU seconds or an error.

Each entrant has its own process, so that a crash counts as a result and its imports do not affect the others.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from pathlib import Path

from benchmarks.repair.entrants import ENTRANTS


def main() -> None:
    """Serve one entrant until the end of the input."""
    warnings.simplefilter("ignore")
    # libraries print to the standard output; answers go where it pointed before
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    repair = ENTRANTS[sys.argv[1]]
    for line in sys.stdin:
        source, target = json.loads(line)
        start = sum(os.times()[:4])
        error = missing = ""
        try:
            repair(Path(source), Path(target))
        except ImportError as problem:
            missing = str(problem)
        except Exception as problem:  # any failure of a library is a wrong result
            error = f"{type(problem).__name__}: {problem}"[:200]
        answers.write(json.dumps([sum(os.times()[:4]) - start, error, missing]) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
