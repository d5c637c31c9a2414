"""Fetch and store objects of allowed buckets through obstore, with limits on size and time."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import S3Store

from meshhub import (
    InvalidOption,
    ModelTooComplex,
    OutputExists,
    RequestError,
    RequestRefused,
    StoredFile,
    UnreadableFile,
)

BUCKETS_VARIABLE = "MESHHUB_S3_BUCKETS"
"""Environment variable with the allowed buckets, separated by commas or blanks; `*` allows all."""

MAX_BYTES_VARIABLE = "MESHHUB_S3_MAX_BYTES"
"""Environment variable with the maximum size of an object to fetch."""

TIMEOUT_VARIABLE = "MESHHUB_S3_TIMEOUT_S"
"""Environment variable with the seconds that one transfer may take."""

DEFAULT_MAX_BYTES = 2 << 30
"""Bytes; default maximum size of an object to fetch, far above real models."""

DEFAULT_TIMEOUT_S = 300
"""Seconds; 2 GiB at 57 Mbit/s."""

STALL_TIMEOUT_S = 20
"""Seconds without a byte after which a transfer is repeated."""

CONNECT_TIMEOUT_S = 5
"""Seconds to connect."""

MAX_RETRIES = 3
"""Maximum repetitions of a request that failed with a status of 500 or above, or on the network."""

CHUNK_BYTES = 4 << 20
"""Bytes of a chunk that is written to disk at a time."""

PART_BYTES = 8 << 20
"""Bytes of a part of a multipart upload; 10 000 parts, the maximum of S3, hold 80 GiB."""

MAX_SINGLE_PUT_BYTES = 64 << 20
"""Bytes up to which a new object is sent in one request, which the store can make conditional."""

MAX_LISTED_COUNT = 10_000
"""Maximum objects below a prefix among which companions are searched: ten requests, about a second."""

MAX_KEY_BYTES = 1024
"""Maximum bytes of a key in UTF-8 (S3 User Guide, "Naming Amazon S3 objects")."""

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_DENIED = re.compile(r"status code: 40[13]\b")
_CODE = re.compile(r"<Code>(\w{1,60})</Code>")


class S3Object:
    """An object of an allowed bucket."""

    def __init__(self, bucket: str, key: str) -> None:
        self._bucket, self._key = bucket, key
        self._max_bytes = _read_number(MAX_BYTES_VARIABLE, DEFAULT_MAX_BYTES)
        self._timeout_s = _read_number(TIMEOUT_VARIABLE, DEFAULT_TIMEOUT_S)

    @property
    def _address(self) -> str:
        return f"s3://{self._bucket}/{self._key}"

    def fetch(self, file: BinaryIO) -> None:
        """Write the content of the object to a file.

        Raises:
            FileNotFoundError: The bucket or the object does not exist.
            UnreadableFile: Access is denied, or the store fails.
            ModelTooComplex: The object is larger than MESHHUB_S3_MAX_BYTES.
        """
        try:
            result = obstore.get(self._open_bucket(), self._key)
            self._check_size(result.meta["size"])
            total = 0
            for chunk in result.stream(CHUNK_BYTES):
                total += len(chunk)
                # a store may send more bytes than it announced
                self._check_size(total)
                file.write(chunk)
        except FileNotFoundError as error:
            raise self._not_found(error) from None
        except (BaseError, ValueError) as error:
            raise UnreadableFile(f"{self._address} cannot be fetched: {_reason(error)}") from error

    def list_folder(self) -> Mapping[str, StoredFile]:
        """Return the first MAX_LISTED_COUNT objects below the prefix of this one; none if listing is denied.

        Raises:
            UnreadableFile: The store fails.
        """
        prefix = self._key.rpartition("/")[0]
        siblings: dict[str, StoredFile] = {}
        try:
            for page in obstore.list(self._open_bucket(), prefix or None, chunk_size=1000):
                for item in page:
                    key = item["path"]
                    siblings[key[len(prefix) :].lstrip("/")] = S3Object(self._bucket, key)
                if len(siblings) >= MAX_LISTED_COUNT:
                    break
        except (BaseError, ValueError) as error:
            # obstore has no separate exception for a denied listing
            if isinstance(error, PermissionDeniedError | UnauthenticatedError) or _DENIED.search(str(error)):
                return {}
            raise UnreadableFile(f"the objects beside {self._address} cannot be listed: {_reason(error)}") from error
        siblings.pop(self._key.rpartition("/")[2], None)
        return siblings

    def store(self, files: Sequence[Path], *, overwrite: bool) -> None:
        """Store the companions of a result beside the object, and then the result.

        Raises:
            OutputExists: The object exists and `overwrite` is false.
            FileExistsError: A companion exists with other content.
            FileNotFoundError: The bucket does not exist.
            OSError: Access is denied, or the store fails.
        """
        bucket = self._open_bucket()
        result, *companions = files
        folder = self._key.rpartition("/")[0]
        if not overwrite and _exists(bucket, self._key):
            raise self._output_exists()
        with self._translate_store_errors():
            for file in companions:
                _put_companion(bucket, f"{folder}/{file.name}" if folder else file.name, file)
            is_conditional = not overwrite and result.stat().st_size <= MAX_SINGLE_PUT_BYTES
            mode = "create" if is_conditional else "overwrite"
            obstore.put(bucket, self._key, result, mode=mode, chunk_size=PART_BYTES)

    def _open_bucket(self) -> S3Store:
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
        return S3Store(
            self._bucket,
            client_options={
                # the operator names an endpoint without TLS explicitly
                "allow_http": endpoint.lower().startswith("http://"),
                "connect_timeout": timedelta(seconds=CONNECT_TIMEOUT_S),
                "read_timeout": timedelta(seconds=min(STALL_TIMEOUT_S, self._timeout_s)),
                "timeout": timedelta(seconds=self._timeout_s),
            },
            retry_config={"max_retries": MAX_RETRIES, "retry_timeout": timedelta(seconds=self._timeout_s)},
        )

    def _check_size(self, count: int) -> None:
        if count > self._max_bytes:
            raise ModelTooComplex(
                f"{self._address} is larger than {self._max_bytes} bytes; raise {MAX_BYTES_VARIABLE} to read it"
            )

    def _output_exists(self) -> OutputExists:
        return OutputExists(f"{self._address} already exists and was not changed")

    def _not_found(self, error: Exception) -> FileNotFoundError:
        reason = "the bucket does not exist" if "NoSuchBucket" in str(error) else "the object does not exist"
        return FileNotFoundError(errno.ENOENT, reason, self._address)

    @contextlib.contextmanager
    def _translate_store_errors(self) -> Iterator[None]:
        try:
            yield
        except AlreadyExistsError:
            raise self._output_exists() from None
        except FileNotFoundError as error:
            raise self._not_found(error) from None
        except (PermissionDeniedError, UnauthenticatedError) as error:
            raise PermissionError(errno.EACCES, _reason(error), self._address) from error
        except (BaseError, ValueError) as error:
            raise OSError(errno.EIO, _reason(error), self._address) from error


def open_object(address: str) -> S3Object:
    """Return the object at an address.

    Raises:
        RequestError: The address is not of the form s3://bucket/key.
        RequestRefused: The operator did not allow the bucket.
    """
    bucket, _, key = address.partition("://")[2].partition("/")
    if not _BUCKET.fullmatch(bucket):
        raise RequestError(f"{bucket[:70]!r} is not the name of a bucket; write s3://bucket/key")
    if len(key.encode()) > MAX_KEY_BYTES:
        raise RequestError(f"the key of an S3 object has at most {MAX_KEY_BYTES} bytes; use a shorter one")
    if not key.isprintable() or any(part in ("", ".", "..") for part in key.split("/")):
        raise RequestError("the key of an S3 object has an empty part, '.', '..' or a control character; rename it")
    allowed = re.split(r"[,\s]+", os.environ.get(BUCKETS_VARIABLE, "").strip())
    if bucket not in allowed and "*" not in allowed:
        raise RequestRefused(f"bucket {bucket!r} is not allowed; add it to {BUCKETS_VARIABLE}")
    return S3Object(bucket, key)


def _exists(bucket: S3Store, key: str) -> bool:
    """Return whether an object exists; if the store does not answer, the upload reports why."""
    try:
        obstore.head(bucket, key)
    except (FileNotFoundError, BaseError):
        return False
    return True


def _put_companion(bucket: S3Store, key: str, file: Path) -> None:
    """Store a companion, and keep an existing one with the same content. Raises FileExistsError for other content."""
    try:
        obstore.put(bucket, key, file, mode="create")
    except AlreadyExistsError:
        same_size = obstore.head(bucket, key)["size"] == file.stat().st_size
        if not same_size or bytes(obstore.get(bucket, key).bytes()) != file.read_bytes():
            raise FileExistsError(
                errno.EEXIST,
                "it exists with other content than this result needs; move it, or use another prefix",
                key,
            ) from None


def _read_number(variable: str, default: int) -> int:
    text = os.environ.get(variable, "").strip()
    if not text:
        return default
    if not re.fullmatch(r"[1-9]\d{0,15}", text, re.ASCII):
        raise InvalidOption(f"{variable} must be a whole number above 0")
    return int(text)


def _reason(error: Exception) -> str:
    """Describe a failure in a few words, because the text of obstore contains the whole response of the store."""
    if isinstance(error, PermissionDeniedError | UnauthenticatedError):
        return "access is denied; check the credentials and the rights of the bucket"
    if isinstance(error, AlreadyExistsError):
        return "it exists already"
    code = _CODE.search(str(error))
    if code is not None:
        return f"the store answers {code[1]}; try again later"
    return "the store does not answer, or ends the transfer; check its endpoint, or try again"
