"""Comparison of responses with the expected results."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping

from benchmarks.soak.connections import Response
from benchmarks.soak.models import Case, Workload, hash_bytes
from benchmarks.soak.record import WrongResponse

from builtin_formats import MEDIA_TYPES


class ResponseChecker:
    """Checks of responses, each of which raises WrongResponse; for other bytes it names the client that owns them."""

    def __init__(self, workloads: list[Workload]) -> None:
        """Index the expected files by client; `workloads` are in the order of the clients."""
        self._owners: dict[str, int] = {}
        for number, workload in enumerate(workloads):
            self._owners |= {case.expected.file: number for case in workload.cases if case.expected.file}
            self._owners |= {file: number for archive in workload.archives for file in archive.entries.values()}

    def check_status(self, response: Response, status: int, what: str) -> None:
        """Check the status."""
        if response.status != status:
            raise WrongResponse(f"{what}: {response.describe()}, not {status}")

    def check_error(self, response: Response, status: int, code: str, what: str) -> None:
        """Check the status and the error code."""
        if (response.status, response.code) != (status, code):
            raise WrongResponse(f"{what}: {response.describe()}, not {status} {code}")

    def check_bytes(self, data: bytes, expected: str, what: str) -> None:
        """Check bytes against a digest."""
        actual = hash_bytes(data)
        if actual != expected:
            owner = self._owners.get(actual)
            suffix = "" if owner is None else f", which belong to client {owner}"
            raise WrongResponse(f"{what}: other bytes ({len(data)} B, {data[:60]!r}){suffix}")

    def check_file(self, response: Response, case: Case, name: str) -> None:
        """Check the conversion of a file that was sent as `name`."""
        expected = case.expected
        what = f"{case.name} to {case.target} {dict(case.options)}"
        if expected.status != 200:
            self.check_error(response, expected.status, expected.code, what)
            return
        self.check_status(response, 200, what)
        self.check_bytes(response.body, expected.file, what)
        for header, value in (("content-type", MEDIA_TYPES[case.target]), ("content-length", str(expected.size))):
            if response.headers.get(header) != value:
                raise WrongResponse(f"{what}: {header} is {response.headers.get(header)!r}, not {value!r}")
        disposition, report = response.headers.get("content-disposition", ""), response.headers["x-meshhub-report"]
        if f'filename="{name.rpartition(".")[0]}.{case.target}"' not in disposition:
            raise WrongResponse(f"{what}: Content-Disposition is {disposition!r}, sent {name!r}")
        if json.loads(report)["faces_out"] != expected.faces:
            raise WrongResponse(f"{what}: the report is {report[:200]}, not {expected.faces} faces")

    def check_archive(
        self,
        response: Response,
        entries: Mapping[str, str],
        failed: Mapping[str, str],
        what: str,
        *,
        report: bool = False,
    ) -> None:
        """Check that a ZIP has exactly these files and failures."""
        self.check_status(response, 200, what)
        with zipfile.ZipFile(io.BytesIO(response.body)) as archive:
            contents = {name: archive.read(name) for name in archive.namelist()}
        errors = {row["file"]: row["error_code"] for row in json.loads(contents.pop("errors.json", b"[]"))}
        if errors != failed:
            raise WrongResponse(f"{what}: errors.json has {errors}, not {failed}")
        if report != ("report.json" in contents):
            raise WrongResponse(f"{what}: report.json was {'' if report else 'not '}requested")
        contents.pop("report.json", None)
        if contents.keys() != entries.keys():
            raise WrongResponse(f"{what}: the ZIP has {sorted(contents)}, not {sorted(entries)}")
        for name, data in contents.items():
            self.check_bytes(data, entries[name], f"{what}: {name}")
        count = response.headers.get("x-meshhub-failed")
        if count != str(len(failed)):
            raise WrongResponse(f"{what}: X-Meshhub-Failed is {count}, not {len(failed)}")
