"""Files of jobs in an S3-compatible store, for several machines."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import BaseError, NotFoundError
from obstore.store import S3Store

from meshhub.errors import JobStoreUnavailable
from meshhub.service.jobs.files import ORPHAN_AGE_S

if TYPE_CHECKING:
    from obstore import ObjectMeta

_REQUEST_TIMEOUT = timedelta(seconds=30)
"""Time for one request; a part of an upload has 5 MB."""

_RETRY_TIMEOUT = timedelta(seconds=60)
"""Maximum time for a request with its retries; if it passes, the run fails and starts again."""

_ANSWER_TIMEOUT = timedelta(seconds=10)
"""Time for an operation that a caller waits for: a part of an upload, a part of a result, or a removal."""

_CHECK_TIMEOUT = timedelta(seconds=3)
"""Time for the check of the store, which a request waits for."""

_MAX_RETRIES_COUNT = 5
"""Repetitions of a request."""

_MAX_REASON_CHARS = 200
"""Maximum characters of a storage error's text in a message."""

_KNOWN_BATCH_COUNT = 500
"""Ids in one question to the store of jobs."""


class ObjectJobFiles:
    """Files of jobs in a bucket. Access keys, region and endpoint come from the usual variables (AWS_…)."""

    folder = None

    def __init__(self, url: str, *, orphan_age_s: float = ORPHAN_AGE_S) -> None:
        """Use a bucket, to which the first use connects.

        Args:
            url: `s3://bucket/prefix`.
            orphan_age_s: Seconds after which files without a job are removed.
        Raises:
            ValueError: The URL or a variable is malformed.
        """
        try:
            self._store = _connect(url, _REQUEST_TIMEOUT, _RETRY_TIMEOUT, _MAX_RETRIES_COUNT)
            self._prompt_store = _connect(url, _ANSWER_TIMEOUT, _ANSWER_TIMEOUT, _MAX_RETRIES_COUNT)
            self._impatient_store = _connect(url, _CHECK_TIMEOUT, _CHECK_TIMEOUT, 0)
        except BaseError as error:
            raise ValueError(_first_line(error)) from error
        self._orphan_age = timedelta(seconds=orphan_age_s)

    def free_bytes(self) -> None:
        """Return None: the space is not limited."""

    def check(self) -> None:
        """Check that the store responds within seconds, while it may take longer to store a file."""
        try:
            with _reporting():
                next(iter(obstore.list(self._impatient_store, prefix="in/", chunk_size=1)), None)
        except FileNotFoundError as error:
            raise JobStoreUnavailable(f"the files of jobs (S3) cannot be used: {error}") from error

    def add_inputs(self, job_id: str, paths: Sequence[Path]) -> None:
        """Upload the inputs of a job, in order."""
        with _reporting():
            for number, path in enumerate(paths):
                obstore.put(self._prompt_store, f"in/{job_id}/{number}", path)

    def fetch_inputs(self, job_id: str, count: int, folder: Path) -> list[Path]:
        """Download the inputs of a job into the folder. Raises FileNotFoundError."""
        paths = [folder / f"input-{number}" for number in range(count)]
        with _reporting():
            for number, path in enumerate(paths):
                with path.open("xb") as file:
                    for chunk in obstore.get(self._store, f"in/{job_id}/{number}").stream():
                        file.write(chunk)
        return paths

    def add_result(self, job_id: str, token: str, path: Path) -> None:
        """Upload the result of a run."""
        with _reporting():
            obstore.put(self._store, f"out/{job_id}/{token}", path)

    def read_result(self, job_id: str, token: str, start: int, size: int) -> bytes:
        """Return a part of a result. Raises FileNotFoundError."""
        if size == 0:
            return b""
        with _reporting():
            return bytes(obstore.get_range(self._prompt_store, f"out/{job_id}/{token}", start=start, length=size))

    def remove_inputs(self, job_id: str) -> None:
        """Remove the inputs of a job that has ended."""
        self._remove(f"in/{job_id}/")

    def remove_result(self, job_id: str, token: str) -> None:
        """Remove the result of a run whose token is stale."""
        with _reporting(), contextlib.suppress(FileNotFoundError, NotFoundError):
            obstore.delete(self._prompt_store, f"out/{job_id}/{token}")

    def remove_results(self, job_id: str, *, keep: str | None = None) -> None:
        """Remove the results of a job, except that of the run with the token `keep`."""
        self._remove(f"out/{job_id}/", keep=None if keep is None else f"out/{job_id}/{keep}")

    def sweep(self, select_known: Callable[[Iterable[str]], set[str]]) -> int:
        """Remove the files without a job, except young ones; return the number of jobs."""
        with _reporting():
            prefixes = {
                prefix
                for parent in ("in/", "out/")
                for prefix in obstore.list_with_delimiter(self._store, prefix=parent)["common_prefixes"]
            }
            ids = sorted({prefix.rpartition("/")[2] for prefix in prefixes})
            unknown = set(ids)
            for start in range(0, len(ids), _KNOWN_BATCH_COUNT):
                unknown -= select_known(ids[start : start + _KNOWN_BATCH_COUNT])
            orphans = [job_id for job_id in unknown if self._is_old(f"in/{job_id}/") and self._is_old(f"out/{job_id}/")]
        for job_id in orphans:
            self.remove_inputs(job_id)
            self.remove_results(job_id)
        return len(orphans)

    def _is_old(self, prefix: str) -> bool:
        limit = datetime.now(UTC) - self._orphan_age
        return all(entry["last_modified"] < limit for entry in self._list(prefix))

    def _remove(self, prefix: str, *, keep: str | None = None) -> None:
        with _reporting():
            paths = [entry["path"] for entry in self._list(prefix) if entry["path"] != keep]
            if paths:
                obstore.delete(self._prompt_store, paths)

    def _list(self, prefix: str) -> Iterator[ObjectMeta]:
        for entries in obstore.list(self._prompt_store, prefix=prefix):
            yield from entries


def _connect(url: str, timeout: timedelta, retry_timeout: timedelta, retries: int) -> S3Store:
    return S3Store.from_url(
        url,
        # plain HTTP needs an endpoint that begins with http://, which no default endpoint does
        client_options={"allow_http": True, "timeout": timeout},
        retry_config={"max_retries": retries, "retry_timeout": retry_timeout},
    )


@contextlib.contextmanager
def _reporting() -> Iterator[None]:
    """Convert the errors of the library."""
    try:
        yield
    except NotFoundError as error:
        raise FileNotFoundError(_first_line(error)) from error
    except BaseError as error:
        raise JobStoreUnavailable(f"the files of jobs (S3) cannot be used: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:_MAX_REASON_CHARS]
