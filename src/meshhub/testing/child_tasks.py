"""Tasks for the child processes: fingerprint a result, run a chain once, or classify how it ends."""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from meshhub.errors import MeshhubError, MissingDependency, SourceError
from meshhub.model.capabilities import checked_score
from meshhub.model.chain import Chain
from meshhub.model.source import Source, Target
from meshhub.model.verdict import Verdict
from meshhub.pipeline.declarations import load
from meshhub.pipeline.execute import execute
from meshhub.testing.guards import forbid_side_effects

ChainRun = tuple[Chain, Source]
"""A resolved chain and the source to run it on; both can be pickled."""


def fingerprint(target: Target) -> str:
    """Return the SHA-256 of a file and its companions, including the companions' names."""
    digest = hashlib.sha256()
    for index, name in enumerate(target.names):
        # the caller chooses the name of the file itself, and the writer chooses those of the companions
        digest.update(b"" if index == 0 else name.encode())
        digest.update(target.read(name))
    return digest.hexdigest()


def fingerprint_result(chain_run: ChainRun) -> str:
    """Run a chain and return the fingerprint of the files that it writes, or of its findings."""
    chain, source = chain_run
    target = Target()
    result = execute(chain, source, target)
    if isinstance(result, Verdict):
        return hashlib.sha256(repr((result.findings, result.estimate)).encode()).hexdigest()
    return fingerprint(target)


def try_chain(chain_run: ChainRun) -> str:
    """Run a chain and ignore errors, output and leftover files: the parent process checks those in its own run."""
    with contextlib.suppress(Exception), forbid_side_effects("it"):
        fingerprint_result(chain_run)
    return ""


def check_score(sniff_call: tuple[str, bytes]) -> str:
    """Run a sniffer, given by its import path, on the head of a file. Return the fault, or "" for a valid score."""
    sniff, head = sniff_call
    try:
        checked_score(load(sniff)(head, len(head)))
    except (Exception, SystemExit) as error:
        return f"fails with {type(error).__name__}: {error}"
    return ""


def check_outcome(chain_run: ChainRun) -> str:
    """Run a chain on a hostile file. Return the fault, or "" if it ends in a result or an error about the file."""
    chain, source = chain_run
    try:
        with forbid_side_effects("the reader"):
            try:
                execute(chain, source, Target())
            except (SourceError, MissingDependency) as error:
                if isinstance(error.__cause__, MemoryError):
                    return "the reader allocates memory by sizes that the file only claims"
                return "" if error.message.strip() else "the error has no message"
    except MeshhubError as error:
        cause = error.__cause__
        return f"{type(cause).__name__}: {cause}" if cause is not None else f"{type(error).__name__}: {error.message}"
    except AssertionError as error:
        return str(error)
    return ""


def serialize(value: Any) -> bytes:
    """Serialize a scene completely: equal scenes give equal bytes, different scenes different bytes."""
    if isinstance(value, np.ndarray):
        return b"%s %s " % (str(value.dtype).encode(), str(value.shape).encode()) + value.tobytes()
    if is_dataclass(value) and not isinstance(value, type):
        return b"".join(field.name.encode() + b"=" + serialize(getattr(value, field.name)) for field in fields(value))
    if isinstance(value, tuple):
        return b"(" + b",".join(serialize(item) for item in value) + b")"
    return repr(value).encode()
