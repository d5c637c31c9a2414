"""What is asked of a chain and a source: the fingerprint of what is written, or whether it ends as it may."""

from __future__ import annotations

import hashlib

from meshhub.chain import Chain
from meshhub.errors import MeshhubError, MissingDependency, SourceError
from meshhub.run import run
from meshhub.source import Source, Target
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
    run(chain, source, target)
    return digest(target)


def outcome_of(job: Job) -> str:
    """What goes wrong over a file that may be anything: "" when it ends in a result or in an error of the file's."""
    chain, source = job
    try:
        with watched("the reader"):
            try:
                run(chain, source, Target())
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
