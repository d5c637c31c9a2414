"""Debian machines in containers of systemd-nspawn, for the guides of deployment.

Everything that a machine uses ends with it: its disk is mounted in a namespace of its own, and its network is one, too.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from guide_code import read_commands
from waiting import wait_until

ROOT = Path(__file__).parents[2]
CLONE = "/root/meshhub"
"""Folder of the clone of the repository, where the commands of the guides run."""

NEXT_VERSION = "v0.1.1"
"""Tag of a later version in the repository that machines fetch from."""

BINDS = "MESHHUB_TEST_MACHINE_BINDS"
"""Variable with files and folders that machines can read, too, separated by colons, such as those of a mirror."""

FURTHER_PACKAGES = "nginx nftables sqlite3 postgresql redis-server"
"""Packages of Debian that the guides use, beside those that they install."""

COMMAND_TIMEOUT_S = 1500
"""Seconds; pip installs 1.5 GB on a busy machine."""

_PROGRAMS = ("systemd-nspawn", "debootstrap", "nsenter", "unshare", "setpriv", "ip", "git", "openssl")


def reason_to_skip() -> str:
    """Return why machines cannot run here; an empty text if they can."""
    if os.environ.get("MESHHUB_TEST_MACHINES") != "1":
        return "MESHHUB_TEST_MACHINES is not 1; see tox -e machines"
    if sys.platform != "linux" or os.getuid() != 0:
        return "machines need Linux and root"
    if not (ROOT / ".git").exists():
        return "machines clone the repository, and this is none"
    missing = [name for name in _PROGRAMS if shutil.which(name) is None]
    return f"not installed: {', '.join(missing)}" if missing else ""


def create_tree(folder: Path) -> Path:
    """Install a Debian that boots, without a package that the guides install, and with a clone of the repository."""
    tree = folder / "tree"
    mirror = os.environ.get("MESHHUB_TEST_MACHINE_MIRROR", "http://deb.debian.org/debian")
    packages = "--include=systemd,systemd-sysv,ca-certificates"
    _run("debootstrap", "--variant=minbase", packages, "bookworm", str(tree), mirror)
    (tree / "etc/apt/apt.conf.d/yes").write_text('APT::Get::Assume-Yes "true";\n')
    (tree / "etc/hostname").write_text("machine\n")
    (tree / "etc/machine-id").write_text("")
    return tree


def clone_repository(tree: Path) -> None:
    """Clone the last commit, from a repository to which a later version is then added."""
    origin = tree / "srv" / "meshhub.git"
    clone = tree / CLONE.removeprefix("/")
    _run("git", "clone", "--quiet", "--bare", "--no-hardlinks", str(ROOT), str(origin))
    _run("git", "clone", "--quiet", "--no-hardlinks", str(origin), str(clone))
    later = tree / "srv" / "later"
    _run("git", "clone", "--quiet", str(origin), str(later))
    project = later / "pyproject.toml"
    project.write_text(re.sub(r'^version = ".*"$', f'version = "{NEXT_VERSION[1:]}"', project.read_text(), flags=re.M))
    author = ("-c", "user.name=Test", "-c", "user.email=test@example.com")
    _run("git", "-C", str(later), *author, "commit", "--quiet", "--all", "--message", "Set the version")
    _run("git", "-C", str(later), "tag", NEXT_VERSION)
    _run("git", "-C", str(later), "push", "--quiet", "origin", NEXT_VERSION)
    shutil.rmtree(later)
    _run("git", "-C", str(clone), "remote", "set-url", "origin", "/srv/meshhub.git")


def install_layers(folder: Path) -> list[Path]:
    """Run the first commands of the guide on a machine; return the layers of its disk, the highest first."""
    tree = create_tree(folder)
    clone_repository(tree)
    with boot(folder / "installed", tree) as machine:
        machine.follow(read_commands("deploy.md", "systemd")[:3])
        machine.run(f"apt-get install {FURTHER_PACKAGES}")
        # each test starts what it needs
        machine.run("systemctl disable nginx postgresql redis-server")
    return [folder / "installed" / "upper", tree]


@dataclass(frozen=True)
class Machine:
    """Debian that has booted.

    Attributes:
        process_id: Its systemd, in the namespace of the test.
    """

    process_id: int

    def run(self, *commands: str, status: int = 0) -> str:
        """Run commands in one shell of root, and return what they print.

        Commands that download use the network of the test, because a machine has only its own.
        """
        return self._run("\n".join(commands), bool(re.search(r"\b(apt-get|pip) install\b", "".join(commands))), status)

    def follow(self, commands: Sequence[str]) -> list[str]:
        """Run the commands of a guide, and return what each prints."""
        return [self.run(command) for command in commands]

    def path(self, path: str) -> Path:
        """Return a path of the machine, as the test reaches it."""
        return Path(f"/proc/{self.process_id}/root", path.removeprefix("/"))

    def write(self, path: str, text: str) -> None:
        """Write a file of the machine."""
        self.path(path).parent.mkdir(parents=True, exist_ok=True)
        self.path(path).write_text(text, encoding="utf-8")

    def request(self, url: str, *options: str) -> tuple[int, str]:
        """Send a request with curl from this machine; return status and body, 0 without a response."""
        command = shlex.join(["curl", "--silent", "--insecure", "--write-out", r"\n%{http_code}", *options, url])
        body, _, status = self._run(command, False, None).rpartition("\n")
        return int(status), body

    def wait_for(self, url: str, *options: str) -> str:
        """Wait until a URL responds with 200, and return the body."""
        try:
            return wait_until(lambda: [body for code, body in [self.request(url, *options)] if code == 200])[0]
        except AssertionError as error:
            logs = self._run("journalctl --no-pager --lines=40", False, None)
            raise AssertionError(f"{url}: {self.request(url, *options)}\n{logs}") from error

    def _run(self, script: str, is_online: bool, status: int | None) -> str:
        namespaces = ("--mount", "--uts", "--ipc", "--pid", *(() if is_online else ("--net",)))
        enter = ["nsenter", f"--target={self.process_id}", *namespaces, "--root", "--wd", "env", "-i", *_variables()]
        shell = ["bash", "-euo", "pipefail", "-c", f"cd {CLONE}\n{script}"]
        result = subprocess.run(
            enter + shell,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )
        text = f"{script}\n{result.stdout[-3000:]}\n{result.stderr[-3000:]}"
        assert status is None or result.returncode == status, f"status {result.returncode}: {text}"
        return result.stdout


def connect(names: dict[str, Machine]) -> None:
    """Connect machines by a switch in the first one. They get the addresses 10.0.0.1 and so on, and know all names."""
    hub = next(iter(names.values()))
    _run(*_ip(hub), "link", "add", "switch", "type", "bridge")
    _run(*_ip(hub), "link", "set", "switch", "up")
    hosts = "".join(f"10.0.0.{number} {name}\n" for number, name in enumerate(names, 1))
    for number, machine in enumerate(names.values(), 1):
        port = f"port{number}"
        ends = ("netns", str(hub.process_id), "type", "veth", "peer", "name", "lan", "netns", str(machine.process_id))
        _run("ip", "link", "add", port, *ends)
        _run(*_ip(hub), "link", "set", port, "up", "master", "switch")
        _run(*_ip(machine), "address", "add", f"10.0.0.{number}/24", "dev", "lan")
        _run(*_ip(machine), "link", "set", "lan", "up")
        machine.write("/etc/hosts", f"127.0.0.1 localhost\n{hosts}")


def _ip(machine: Machine) -> list[str]:
    return ["nsenter", f"--target={machine.process_id}", "--net", "ip"]


@contextlib.contextmanager
def boot(folder: Path, *lower: Path) -> Iterator[Machine]:
    """Boot a machine whose disk is an empty layer, `folder/upper`, over others, the highest first."""
    for name in ("upper", "work", "root"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    layers = f"lowerdir={':'.join(map(str, lower))},upperdir={folder / 'upper'},workdir={folder / 'work'}"
    script = 'mount -t overlay overlay -o "$1" "$2"; shift 2; exec "$@"'
    # without a systemd on this machine, nothing can register the container
    alone = () if Path("/run/systemd/system").is_dir() else ("--register=no", "--keep-unit")
    binds = [f"--bind-ro={path}" for path in os.environ.get(BINDS, "").split(":") if path]
    container = [
        *("systemd-nspawn", "--quiet", "--boot", f"--directory={folder / 'root'}", f"--machine=meshhub-{folder.name}"),
        *("--private-network", "--link-journal=no", "--resolv-conf=off", "--timezone=off", "--console=pipe"),
    ]
    with (folder / "console").open("wb") as console:
        process = subprocess.Popen(
            # the machine ends with the test, also when that is killed
            ["setpriv", "--pdeathsig", "TERM", "unshare", "--mount"]
            + ["sh", "-euc", script, "sh", layers, str(folder / "root"), *container, *alone, *binds],
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=subprocess.STDOUT,
        )
    try:
        machine = Machine(wait_until(functools.partial(_find_init, process)))
        # before systemd answers, the state is "unknown", "offline" or missing
        is_up = "[[ $(systemctl is-system-running) =~ ^(running|degraded)$ ]] && echo yes || true"
        wait_until(lambda: machine.run(is_up))
        failed = machine.run("systemctl --failed --no-legend --no-pager")
        assert not failed, failed
        yield machine
    finally:
        process.terminate()
        try:
            process.wait(120)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _find_init(process: subprocess.Popen[bytes]) -> int | None:
    """Return the process id of the systemd of a container, if it runs."""
    assert process.poll() is None, "systemd-nspawn has ended"
    with contextlib.suppress(OSError):
        for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
            if Path(f"/proc/{child}/comm").read_text() == "systemd\n":
                return int(child)
    return None


def _variables() -> list[str]:
    """Return the variables of the shells of machines: those by which pip and apt reach their servers."""
    own = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}
    own["DEBIAN_FRONTEND"] = "noninteractive"
    passed = {name: value for name, value in os.environ.items() if re.match(r"PIP_|(https?|no)_proxy$", name, re.I)}
    return [f"{name}={value}" for name, value in {**passed, **own}.items()]


def _run(*command: str) -> None:
    result = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False)
    assert result.returncode == 0, f"{shlex.join(command)}: {result.stdout[-2000:]}{result.stderr[-2000:]}"
