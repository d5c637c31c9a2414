"""Compare how meshhub and other programs read the formats of `plugins/`.

    python -m benchmarks.plugin_formats FOLDER [--format ID]… [--csv FILE]

FOLDER has a folder of files for each format, and `models`, which are written to the formats. meshhub and the judges of
a format write each file as STL, and the figures of both are compared; programs that know no triangles report size, area
or volume. Judges differ in units and in the axis that points up, so sizes are compared after sorting them, with the
scale between both as a column. Where the first judge reads a file otherwise, or not at all, the next one decides. The
exit status is 1 if a format that is not experimental is below the goal, or an experimental one reaches it.

Gmsh reports the exact area and volume of IGES and BREP files, though it contains OpenCASCADE, too. rhino3dm is McNeel's
library, by which meshhub-rhino reads and writes files as well. assimp is an older version of the library of
meshhub-assimp. No package but meshio reads SU2, FLAC3D and TetGen: a plain reader of this folder judges them.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from enum import Enum
from pathlib import Path

from benchmarks.plugin_formats.formats import CASES, Case
from benchmarks.plugin_formats.judges import JUDGES, Judge, find_usd_faults
from benchmarks.plugin_formats.measures import Measures, compare

from meshhub import MeshhubError, Registry

GOAL_PERCENT = 95
"""Files that are read right or rejected clearly; a format below is experimental."""

EXPERIMENTAL = " (experimental)"
"""End of the label of a format below the goal, so that each list of formats shows it."""

TIMEOUT_S = 120.0
"""Seconds for one file in meshhub."""


class Verdict(Enum):
    """Judgment of how a file was read; the value heads a column of the summary."""

    RIGHT = "right"
    PARTLY = "right in part, with a note"
    REFUSED = "refused clearly"
    UNSUPPORTED = "refused clearly, but read by a judge"
    UNCLEAR = "refused unclearly"
    WRONG = "wrong"
    UNJUDGED = "not judged"


COMPANIONS = (".mtl", ".png", ".jpg")
"""Extensions of files beside the models."""

GOOD = (Verdict.RIGHT, Verdict.PARTLY, Verdict.REFUSED, Verdict.UNSUPPORTED)
"""Verdicts that count for the goal."""


@dataclass(frozen=True)
class Reading:
    """Figures of a file, or why it has none, and the codes of the notes."""

    measures: Measures | None
    reason: str = ""
    notes: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Judgment:
    """Verdict of a file, the judge that decided, and the figures or reasons."""

    verdict: Verdict
    judge: str = ""
    text: str = ""


FOREIGN_REASON = re.compile(r"cannot read the file as|^worker_|^timeout|^internal")
"""Reasons in the words of a library or of Python, which name no feature of the file."""

DAMAGED_REASON = re.compile(r"not a readable .* file \(")
"""Reasons of a library for a damaged file, which are wrong if another program reads it."""

PARTIAL_NOTES = re.compile(
    r"^(?!texture|material|color)\w+_(left_out|skipped|missing|lost|not_meshed)$|^(bind_pose|first_frame|subdivision_dropped)$"
)
"""Codes of notes by which a reader reports that the model differs from the file."""


def read(case: Case, path: Path, registry: Registry) -> Reading:
    """Let meshhub write a file as STL."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.stl"
        keywords = {} if path.suffix.lower() in (".bgcode", ".mtl") else {"input_format": case.format_id}
        try:
            report = registry.convert(path, out, options=case.options, timeout=TIMEOUT_S, **keywords)
        except MeshhubError as error:
            return Reading(None, f"{error.error_code}: {error.message}")
        return Reading(case.measure(out), "no finite triangles", frozenset(note.code for note in report.notes))


def judge(case: Case, path: Path, ours: Reading) -> Judgment:
    """Judge how a file was read, or rejected."""
    judges = [JUDGES[name] for name in case.judges if JUDGES[name].is_installed()]
    if ours.measures is None:
        return judge_refusal(path, ours.reason, judges)
    judgment = Judgment(Verdict.UNJUDGED)
    for each in judges:
        theirs = each.read(path)
        if theirs is None:
            continue
        scale, faults = compare(ours.measures, theirs)
        if not faults:
            return Judgment(Verdict.RIGHT, each.name, f"scale {scale:.6g}")
        if judgment.verdict is Verdict.UNJUDGED:
            judgment = Judgment(Verdict.WRONG, each.name, f"scale {scale:.6g}: {'; '.join(faults)}")
    if judgment.verdict is Verdict.WRONG and (notes := sorted(filter(PARTIAL_NOTES.search, ours.notes))):
        return Judgment(Verdict.PARTLY, judgment.judge, f"{judgment.text} ({', '.join(notes)})")
    return judgment


def judge_refusal(path: Path, reason: str, judges: list[Judge]) -> Judgment:
    """Judge a rejection: clear if it names a feature of the file, or if other programs do not read the file either."""
    if FOREIGN_REASON.search(reason):
        return Judgment(Verdict.UNCLEAR, "", reason)
    readers = [each.name for each in judges if each.read(path) is not None]
    if reason.startswith("empty_model"):
        # assimp draws the bones and lights of a file without triangles, so all judges decide
        verdict = Verdict.UNCLEAR if readers and len(readers) == len(judges) else Verdict.REFUSED
    elif readers:
        verdict = Verdict.UNCLEAR if DAMAGED_REASON.search(reason) else Verdict.UNSUPPORTED
    else:
        verdict = Verdict.REFUSED
    return Judgment(verdict, ", ".join(readers), reason)


def judge_files(case: Case, folder: Path, registry: Registry) -> Iterator[Judgment]:
    """Judge all files of a format, and print a row for each."""
    extensions = registry.formats[case.format_id].extensions
    if case.format_id == "gcode":
        extensions += registry.formats["bgcode"].extensions
    # nodes belong to the file of elements
    for path in sorted(
        path for path in folder.rglob("*") if path.suffix.lower() in extensions and path.suffix != ".node"
    ):
        judgment = judge(case, path, read(case, path, registry))
        print_row(case.folder, path.relative_to(folder), judgment)
        yield judgment


def judge_written(case: Case, models: list[Path], registry: Registry) -> Iterator[Judgment]:
    """Write models to a format, judge what other programs read of them, and print a row for each."""
    with tempfile.TemporaryDirectory() as folder:
        for model in models:
            path = Path(folder) / f"{model.stem}{registry.formats[case.format_id].extensions[0]}"
            surface = Path(folder) / f"{model.stem}.stl"
            try:
                registry.convert(model, path, timeout=TIMEOUT_S)
                registry.convert(model, surface, timeout=TIMEOUT_S)
            except MeshhubError as error:
                judgment = Judgment(Verdict.REFUSED, "", f"{error.error_code}: {error.message}")
            else:
                judgment = judge(case, path, Reading(case.measure(surface)))
                if case.format_id == "usdz" and (faults := find_usd_faults(path)):
                    judgment = Judgment(Verdict.WRONG, "OpenUSD", "; ".join(faults))
            print_row(f"{case.folder}, written", model.name, judgment)
            yield judgment


def print_row(name: str, path: object, judgment: Judgment) -> None:
    print(name, judgment.verdict.value, judgment.judge, path, judgment.text[:150], sep=" | ", flush=True)


def count_row(case: Case, judgments: list[Judgment], label: str) -> dict[str, str]:
    """Return the row of a format in the table."""
    counts = Counter(judgment.verdict for judgment in judgments)
    judges = Counter(judgment.judge for judgment in judgments if judgment.judge)
    judged = len(judgments) - counts[Verdict.UNJUDGED]
    row = {
        "machine": "",
        "recorded": str(date.today()),
        "distribution": f"meshhub-{case.distribution}",
        "format": label,
    }
    row |= {"files": str(len(judgments))} | {verdict.value: str(counts[verdict]) for verdict in Verdict}
    row["percent"] = f"{100 * sum(counts[verdict] for verdict in GOOD) / judged:.0f}" if judged else ""
    row["judges"] = ", ".join(f"{name} ({count})" for name, count in judges.most_common())
    return row


def update_table(path: Path, rows: list[dict[str, str]]) -> None:
    """Replace the rows of these formats in a CSV file, and keep those of others."""
    # the label gains or loses a word with the result
    by_format = {row["format"].removesuffix(EXPERIMENTAL): row for row in rows}
    old = list(csv.DictReader(path.read_text().splitlines())) if path.exists() else []
    kept = [by_format.pop(row["format"].removesuffix(EXPERIMENTAL), row) for row in old]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows([*kept, *by_format.values()])


def find_mislabeled(rows: list[dict[str, str]]) -> list[str]:
    """Return what is wrong with the labels of formats: those below the goal are experimental."""
    faults: list[str] = []
    for row in rows:
        if row["format"].endswith(", written"):
            continue
        is_below = row["percent"] != "" and int(row["percent"]) < GOAL_PERCENT
        if is_below != row["format"].endswith(EXPERIMENTAL):
            faults.append(
                f"{row['format']}: {row['percent']} %, so the label {'needs' if is_below else 'loses'}{EXPERIMENTAL}"
            )
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--format", choices=[case.folder for case in CASES], action="append")
    parser.add_argument("--csv", type=Path, help="table whose rows are replaced")
    arguments = parser.parse_args()
    needed = {name for case in CASES if case.folder in (arguments.format or [case.folder]) for name in case.judges}
    for name in sorted(name for name in needed if not JUDGES[name].is_installed()):
        print(f"{name} is not installed", file=sys.stderr)
    models = sorted(path for path in (arguments.folder / "models").glob("*") if path.suffix not in COMPANIONS)
    rows: list[dict[str, str]] = []
    with Registry() as registry:
        for case in CASES:
            if arguments.format and case.folder not in arguments.format:
                continue
            label = registry.formats[case.format_id].label
            if judgments := list(judge_files(case, arguments.folder / case.folder, registry)):
                rows.append(count_row(case, judgments, label))
            if case.is_written and (judgments := list(judge_written(case, models, registry))):
                rows.append(count_row(case, judgments, f"{label}, written"))
            if rows and arguments.csv:
                update_table(arguments.csv, rows)
    for row in rows:
        print(*row.values(), sep=" | ")
    faults = find_mislabeled(rows)
    print(*faults, sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
