"""What is asked of a chain and a source: the fingerprint of what is written, or whether it ends as it may."""

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
from meshhub.pipeline.declarations import load
from meshhub.pipeline.execute import execute
from meshhub.testing.watching import watched

Job = tuple[Chain, Source]


def digest(target: Target) -> str:
    """A fingerprint of a file and its companions."""
    found = hashlib.sha256()
    for index, name in enumerate(target.names):
        # the file's own name is the caller's, its companions' names are the writer's
        found.update(b"" if index == 0 else name.encode())
        found.update(target.read(name))
    return found.hexdigest()


def digest_of(job: Job) -> str:
    """The fingerprint of what a chain writes."""
    chain, source = job
    target = Target()
    execute(chain, source, target)
    return digest(target)


def trial_of(job: Job) -> str:
    """Run a chain. What it raises, prints or leaves behind is judged in the process that runs it again."""
    with contextlib.suppress(Exception), watched("it"):
        digest_of(job)
    return ""


def score_of(look: tuple[str, bytes]) -> str:
    """What goes wrong over a look at a head: "" when the sniffer gives a score."""
    sniff, head = look
    try:
        checked_score(load(sniff)(head, len(head)))
    except (Exception, SystemExit) as error:
        return f"fails with {type(error).__name__}: {error}"
    return ""


def outcome_of(job: Job) -> str:
    """What goes wrong over a file that may be anything: "" when it ends in a result or in an error of the file's."""
    chain, source = job
    try:
        with watched("the reader"):
            try:
                execute(chain, source, Target())
            except (SourceError, MissingDependency) as error:
                if isinstance(error.__cause__, MemoryError):
                    return "the reader allocates by sizes that are not there"
                return "" if error.message.strip() else "the error says nothing"
    except MeshhubError as error:
        cause = error.__cause__
        return f"{type(cause).__name__}: {cause}" if cause is not None else f"{type(error).__name__}: {error.message}"
    except AssertionError as error:
        return str(error)
    return ""


def content(value: Any) -> bytes:
    """Everything a scene holds, as bytes: equal for equal scenes, and different for different ones."""
    if isinstance(value, np.ndarray):
        return b"%s %s " % (str(value.dtype).encode(), str(value.shape).encode()) + value.tobytes()
    if is_dataclass(value) and not isinstance(value, type):
        return b"".join(field.name.encode() + b"=" + content(getattr(value, field.name)) for field in fields(value))
    if isinstance(value, tuple):
        return b"(" + b",".join(content(one) for one in value) + b")"
    return repr(value).encode()
