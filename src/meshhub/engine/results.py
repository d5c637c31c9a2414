"""Check the files that a worker wrote, and move them to the target."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from meshhub import errors
from meshhub.engine.contract import Task
from meshhub.engine.worker import Answer
from meshhub.errors import MeshhubError, PluginError
from meshhub.model.source import Target
from meshhub.model.verdict import Result


def stage_target(target: Target, scratch: Path) -> Target:
    """Return a target for the worker: a separate empty folder on the file system of the real target."""
    if target.folder is None:
        return Target("model", folder=Path(tempfile.mkdtemp(prefix="out-", dir=scratch)))
    return Target(target.name, folder=Path(tempfile.mkdtemp(prefix=".out-", dir=target.folder)))


def take_result(answer: Answer, task: Task, target: Target) -> Result:
    """Move the files that a worker wrote for a task to the target, and return its result.

    All processes of the job must have ended. Only regular files are taken, because a symlink could point outside the
    folder, and reading a named pipe would block.

    Raises:
        MeshhubError: Error that the worker reported.
        PluginError: The worker reported success, but the files are missing.
    """
    result: Result | None = answer.report or answer.inspection or answer.verdict
    if not isinstance(result, task.chain.ending.result):
        raise _build_error(answer)
    if task.chain.writes:
        _move_files(task.target, answer, target)
    return result


def _move_files(staged: Target, answer: Answer, target: Target) -> None:
    folder = staged.folder
    assert folder is not None
    staged.found(answer.companions, answer.beds)
    names = [*staged.names, *(bed.name for bed in staged.beds)]
    is_whole = len(staged.beds) == answer.beds and all(_is_regular_file(folder, name) for name in names)
    if not is_whole or any(file.size == 0 for file in staged.files):
        raise PluginError("the conversion ended without an error but wrote no file; the format's plug-in is broken")
    if target.folder is None:
        target.take(staged)
        return
    for name in names:
        (folder / name).replace(target.folder / name)
    target.found(staged.names[1:], answer.beds)


def _build_error(answer: Answer) -> MeshhubError:
    kind = getattr(errors, answer.error_class, None)
    if not (isinstance(kind, type) and issubclass(kind, MeshhubError)):
        return errors.WorkerCrashed("the conversion's process sent an invalid response; try again")
    error = kind(
        answer.error or "the conversion sent no message",
        error_code=answer.error_code or None,
        options=answer.options,
        values=answer.values,
    )
    for note in answer.notes:
        error.add_note(errors.printable(note))
    if isinstance(error, errors.PluginError):
        error.details = errors.printable(answer.details)
    return error


def _is_regular_file(folder: Path, name: str) -> bool:
    """Return whether a name is a regular file; make the file readable for its owner."""
    try:
        if not stat.S_ISDIR(os.lstat(folder).st_mode) or not stat.S_ISREG(os.lstat(folder / name).st_mode):
            return False
        (folder / name).chmod(stat.S_IRUSR | stat.S_IWUSR | os.lstat(folder / name).st_mode)
    except OSError:
        return False
    return True
