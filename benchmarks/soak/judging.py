"""Whether an answer is right."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping

from benchmarks.soak.models import Book, Case, digest
from benchmarks.soak.record import Wrong
from benchmarks.soak.wire import Answer

_MEDIA = {
    "stl": "model/stl", "obj": "model/obj", "ply": "application/octet-stream", "glb": "model/gltf-binary",
    "gltf": "model/gltf+json", "3mf": "model/3mf", "step": "model/step",
}  # fmt: skip


class Judge:
    """Knows whose each file is that may be answered. Every check raises Wrong."""

    def __init__(self, books: list[Book]) -> None:
        """`books` are the clients', in order."""
        self._owners: dict[str, int] = {}
        for number, book in enumerate(books):
            self._owners |= {case.expected.file: number for case in book.cases if case.expected.file}
            self._owners |= {held: number for bundle in book.bundles for held in bundle.entries.values()}

    def status(self, answer: Answer, status: int, what: str) -> None:
        """See that the status is this one."""
        if answer.status != status:
            raise Wrong(f"{what}: {answer.shown()}, not {status}")

    def code(self, answer: Answer, status: int, code: str, what: str) -> None:
        """See that it is an error of this status and code."""
        if (answer.status, answer.code) != (status, code):
            raise Wrong(f"{what}: {answer.shown()}, not {status} {code}")

    def data(self, data: bytes, wanted: str, what: str) -> None:
        """See that these are the bytes."""
        found = digest(data)
        if found != wanted:
            owner = self._owners.get(found)
            whose = "" if owner is None else f", which are client {owner}'s"
            raise Wrong(f"{what}: other bytes ({len(data)} B, {data[:60]!r}){whose}")

    def file(self, answer: Answer, case: Case, name: str) -> None:
        """See that a conversion of a file that was sent under this name is what it must be."""
        told = case.expected
        what = f"{case.name} to {case.target} {dict(case.options)}"
        if told.status != 200:
            self.code(answer, told.status, told.code, what)
            return
        self.status(answer, 200, what)
        self.data(answer.body, told.file, what)
        for header, value in (("content-type", _MEDIA[case.target]), ("content-length", str(told.size))):
            if answer.headers.get(header) != value:
                raise Wrong(f"{what}: {header} is {answer.headers.get(header)!r}, not {value!r}")
        disposition, report = answer.headers.get("content-disposition", ""), answer.headers["x-meshhub-report"]
        if f'filename="{name.rpartition(".")[0]}.{case.target}"' not in disposition:
            raise Wrong(f"{what}: Content-Disposition is {disposition!r}, sent {name!r}")
        if json.loads(report)["faces_out"] != told.faces:
            raise Wrong(f"{what}: the report tells {report[:200]}, not {told.faces} faces")

    def archive(
        self, answer: Answer, entries: Mapping[str, str], failed: Mapping[str, str], what: str, *, report: bool = False
    ) -> None:
        """See that a ZIP holds these files and no others, and tells these failures."""
        self.status(answer, 200, what)
        with zipfile.ZipFile(io.BytesIO(answer.body)) as archive:
            held = {name: archive.read(name) for name in archive.namelist()}
        told = {row["file"]: row["error_code"] for row in json.loads(held.pop("errors.json", b"[]"))}
        if told != failed:
            raise Wrong(f"{what}: errors.json tells {told}, not {failed}")
        if report != ("report.json" in held):
            raise Wrong(f"{what}: report.json was {'' if report else 'not '}asked for")
        held.pop("report.json", None)
        if held.keys() != entries.keys():
            raise Wrong(f"{what}: the ZIP holds {sorted(held)}, not {sorted(entries)}")
        for name, data in held.items():
            self.data(data, entries[name], f"{what}: {name}")
        count = answer.headers.get("x-meshhub-failed")
        if count != str(len(failed)):
            raise Wrong(f"{what}: X-Meshhub-Failed is {count}, not {len(failed)}")
