"""Temporary folders, which end with their program or at the start of the next one."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import toys
from folders import becomes_empty
from meshhub import Isolated, Registry, Source, Target
from meshhub.engine.scratch import Scratch, remove_tree, sweep

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="folders are locked on POSIX")

MAKER = """
import sys
from meshhub.engine.scratch import Scratch
for kind in ("job", "service"):
    made = Scratch(kind, sys.argv[1])
    (made.path / "upload").write_bytes(b"x")
    globals()[kind] = made
print("made", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def creator(tmp_path: Path) -> subprocess.Popen[str]:
    """Start a program that creates two folders and keeps running."""
    process = subprocess.Popen(
        [sys.executable, "-c", MAKER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "made\n"
    return process


def kill_process(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def test_folders_of_a_killed_program_are_removed(tmp_path: Path, creator: subprocess.Popen[str]) -> None:
    left = list(tmp_path.iterdir())
    assert len(left) == 2
    assert all(f"-{creator.pid}-" in path.name for path in left)
    for path in left:
        os.utime(path, (1, 1))
    assert sweep(tmp_path) == 0
    kill_process(creator)
    assert sweep(tmp_path) == 2
    assert list(tmp_path.iterdir()) == []


def test_a_reused_process_id_protects_recent_folders_only(tmp_path: Path, creator: subprocess.Popen[str]) -> None:
    kill_process(creator)
    (first, second) = sorted(tmp_path.iterdir())
    other = f"-{os.getppid()}-"
    young, old = (path.rename(str(path).replace(f"-{creator.pid}-", other)) for path in (first, second))
    os.utime(old, (1, 1))
    assert sweep(tmp_path) == 1
    assert list(tmp_path.iterdir()) == [young]


def test_the_current_process_id_does_not_protect_old_folders(tmp_path: Path) -> None:
    """In containers, each service has the same process id."""
    (tmp_path / f"meshhub-service-{os.getpid()}-abc").mkdir()
    mine = Scratch("service", tmp_path)
    assert sweep(tmp_path) == 1
    assert list(tmp_path.iterdir()) == [mine.path]
    mine.remove()
    assert list(tmp_path.iterdir()) == []


def test_folders_of_other_programs_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    aim = tmp_path / "aim"
    aim.mkdir()
    (aim / "file").touch()
    names = ["meshhub-job-1", "meshhub-other-1-abc", "other-job-1-abc", "meshhub-job-x-abc"]
    for name in names:
        (tmp_path / name).mkdir()
    (tmp_path / "meshhub-job-999999999-file").touch()
    (tmp_path / "meshhub-job-999999999-link").symlink_to(aim, target_is_directory=True)
    assert sweep(tmp_path) == 0
    assert (aim / "file").exists()
    (tmp_path / "meshhub-job-99999999999999999999-abc").mkdir()
    (tmp_path / "meshhub-job-999999999-abc").mkdir()
    uid = os.getuid()
    with monkeypatch.context() as patched:
        patched.setattr(os, "getuid", lambda: uid + 1)
        assert sweep(tmp_path) == 0
    assert sweep(tmp_path / "nowhere") == 0
    assert sweep(tmp_path) == 1


def test_an_engine_removes_old_folders_at_its_first_task(tmp_path: Path, creator: subprocess.Popen[str]) -> None:
    kill_process(creator)
    registry = Registry([toys], entry_points=False, engine=Isolated(workers=1, folder=str(tmp_path)))
    assert len(list(tmp_path.iterdir())) == 2
    registry.convert(Source.from_bytes(b"toy!", "a.toy"), Target(), target="toy")
    registry.close()
    assert becomes_empty(tmp_path)
    assert becomes_empty(Path(tempfile.gettempdir()), f"meshhub-job-{os.getpid()}-*")


def test_a_folder_that_cannot_be_locked_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr(os, "open", full)
    with pytest.raises(OSError, match="too many"):
        Scratch("job", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_deep_and_unreadable_folders_are_removed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    depth = sys.getrecursionlimit() + 50
    here = os.open(root, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("deeper", dir_fd=here)
        below = os.open("deeper", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("bottom", os.O_CREAT, 0, dir_fd=here))
    os.close(here)
    for name in ("locked", "locked/inside"):
        (root / name).mkdir()
    (root / "locked" / "file").touch()
    (root / "locked").chmod(0)
    remove_tree(root)
    assert list(tmp_path.iterdir()) == []


def test_a_symlink_is_removed_without_its_target(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").touch()
    root = tmp_path / "root"
    root.mkdir()
    (root / "inside").symlink_to(precious)
    remove_tree(root)
    assert not root.exists()
    root.symlink_to(precious)
    remove_tree(root)
    assert not root.is_symlink()
    assert (precious / "file").exists()


FORKING = """
import os, sys
from meshhub.engine.scratch import Scratch, sweep
made = Scratch("job", sys.argv[1])
(made.path / "upload").write_bytes(b"x")
ready, done = os.pipe()
child = os.fork()
if child == 0:
    made.remove()
    sweep(sys.argv[1])
    print((made.path / "upload").exists(), flush=True)
    os.close(done)
    sys.stdin.read()
    os._exit(0)
os.close(done)
os.read(ready, 1)
os.kill(os.getpid(), 9)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_neither_removes_nor_locks_the_folders_of_its_parent(tmp_path: Path) -> None:
    """The parent is killed, and its child keeps running."""
    script = [sys.executable, "-c", FORKING, str(tmp_path)]
    with subprocess.Popen(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        parent.wait(300)
        assert parent.stdout.readline() == "True\n"
        assert sweep(tmp_path) == 1
