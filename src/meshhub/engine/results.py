"""What a worker wrote: looked at with suspicion, then taken over."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from meshhub import errors
from meshhub.engine.worker import Answer
from meshhub.errors import MeshhubError, PluginError
from meshhub.model.report import Inspection, Report
from meshhub.model.source import Target


def staged(target: Target, scratch: Path) -> Target:
    """Where a worker writes instead of into the target: an empty folder of its own, on the same file system."""
    if target.folder is None:
        return Target("model", folder=Path(tempfile.mkdtemp(prefix="out-", dir=scratch)))
    return Target(target.name, folder=Path(tempfile.mkdtemp(prefix=".out-", dir=target.folder)))


def told(answer: Answer, target: Target | None, written: Target | None) -> Report | Inspection:
    """The report, having moved what was written into the target; or the inspection. Raises MeshhubError.

    All processes of the job must be gone. Only plain files are taken: a link would lead out of the
    folder, and a pipe would hold up whoever reads it.
    """
    if answer.report is not None and target is not None and written is not None and written.folder is not None:
        written.found(answer.companions)
        if not all(_is_file_in(written.folder, name) for name in written.names) or written.size == 0:
            raise PluginError("the conversion ended well but wrote no file; the plug-in of its format is broken")
        if target.folder is None:
            target.take(written)
        else:
            for name in written.names:
                (written.folder / name).replace(target.folder / name)
            target.found(written.names[1:])
        return answer.report
    if answer.inspection is not None and target is None:
        return answer.inspection
    raise _error(answer)


def _error(answer: Answer) -> MeshhubError:
    kind = getattr(errors, answer.error_class, None)
    if not (isinstance(kind, type) and issubclass(kind, MeshhubError)):
        return errors.WorkerCrashed("the conversion's process gave an answer that makes no sense")
    return kind(answer.error or "the conversion gave no answer", code=answer.error_code or None, options=answer.options)


def _is_file_in(folder: Path, name: str) -> bool:
    """Whether it is a plain file, which from now on its owner may read."""
    try:
        if not stat.S_ISDIR(os.lstat(folder).st_mode) or not stat.S_ISREG(os.lstat(folder / name).st_mode):
            return False
        (folder / name).chmod(stat.S_IRUSR | stat.S_IWUSR | os.lstat(folder / name).st_mode)
    except OSError:
        return False
    return True
