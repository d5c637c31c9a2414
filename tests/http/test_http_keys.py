"""The store of API keys."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import platformdirs
import pytest
from msgspec import structs

from meshhub.errors import InvalidKey, KeyStoreUnavailable
from meshhub.service.keys import KeyStore, default_url


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "keys.sqlite3"


@pytest.fixture
def store(path: Path, clock: Clock) -> KeyStore:
    return KeyStore(f"sqlite:///{path}", clock=clock)


def test_a_created_key_is_accepted(store: KeyStore, clock: Clock) -> None:
    key, record = store.create("pro", label="acme")
    assert store.check(key) == record
    assert (record.label, record.plan, record.created, record.expires) == ("acme", "pro", int(clock.now), None)
    assert set(key) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
    assert key.startswith(record.id + "_")
    assert len(key.removeprefix(record.id + "_")) >= 22
    assert store.list() == [record]
    store.close()


def test_keys_are_unique(store: KeyStore) -> None:
    run_keys_command = [store.create("pro") for _ in range(20)]
    assert len({key for key, _ in run_keys_command}) == len({record.id for _, record in run_keys_command}) == 20
    store.close()


def test_the_database_holds_only_hashes_of_keys(store: KeyStore, path: Path) -> None:
    key, record = store.create("pro")
    store.close()
    content = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert record.id.encode() in content
    assert key.encode() not in content
    assert key.removeprefix(record.id + "_").encode() not in content
    if sys.platform != "win32":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_wrong_secret_with_a_valid_id_is_rejected(store: KeyStore) -> None:
    key, record = store.create("pro")
    wrong = key[:-1] + ("A" if key[-1] != "A" else "B")
    for wrong_key in (wrong, record.id, record.id + "_", key + "x", key.upper(), "", "mh__", "\ud800"):
        with pytest.raises(InvalidKey):
            store.check(wrong_key)
    store.close()


def test_revoked_keys_are_rejected_permanently(store: KeyStore, clock: Clock) -> None:
    key, record = store.create("pro")
    first = store.revoke(record.id)
    clock.now += 100
    assert store.revoke(record.id) == first
    assert store.list() == [first]
    assert first.state(clock.now) == "revoked"
    with pytest.raises(InvalidKey, match="revoked"):
        store.check(key)
    with pytest.raises(InvalidKey, match="no key"):
        store.revoke("mh_nothere")
    store.close()


def test_keys_expire(store: KeyStore, clock: Clock) -> None:
    key, record = store.create("pro", expires=clock.now + 10)
    assert store.check(key) == record
    clock.now += 10
    with pytest.raises(InvalidKey, match="expired"):
        store.check(key)
    store.close()


def test_a_rotated_key_is_rejected_at_once(store: KeyStore, clock: Clock) -> None:
    key, record = store.create("pro", label="acme", expires=clock.now + 1000)
    clock.now += 600
    later, successor = store.rotate(record.id)
    assert (successor.plan, successor.label, successor.expires) == ("pro", "acme", clock.now + 1000)
    assert successor.id != record.id
    assert store.check(later) == successor
    with pytest.raises(InvalidKey, match="revoked"):
        store.check(key)
    with pytest.raises(InvalidKey, match="revoked already"):
        store.rotate(record.id)
    with pytest.raises(InvalidKey, match="no key"):
        store.rotate("mh_nothere")
    assert store.list() == [structs.replace(record, revoked=int(clock.now)), successor]
    store.close()


def test_a_rotated_key_is_valid_during_the_grace_period(store: KeyStore, clock: Clock) -> None:
    key, record = store.create("pro")
    later, successor = store.rotate(record.id, grace=60, expires=clock.now + 90)
    assert successor.expires == clock.now + 90
    assert store.check(key).id == record.id
    assert store.check(later) == successor
    with pytest.raises(InvalidKey, match="replaced already"):
        store.rotate(record.id)
    clock.now += 60
    with pytest.raises(InvalidKey, match="revoked"):
        store.check(key)
    assert store.check(later) == successor
    clock.now += 30
    with pytest.raises(InvalidKey, match="expired"):
        store.check(later)
    revived, _ = store.rotate(successor.id)
    assert store.check(revived)
    store.close()


def test_a_key_in_its_grace_period_can_be_revoked(store: KeyStore, clock: Clock) -> None:
    key, record = store.create("pro")
    store.rotate(record.id, grace=60)
    assert store.revoke(record.id).revoked == clock.now
    with pytest.raises(InvalidKey, match="revoked"):
        store.check(key)
    store.close()


def test_a_lookup_creates_no_database(store: KeyStore, path: Path) -> None:
    with pytest.raises(InvalidKey):
        store.check("mh_aaaaaaaaaaaa_" + "x" * 43)
    assert store.list() == []
    assert not path.exists()
    store.close()


def test_a_database_without_the_table_has_no_keys(store: KeyStore, path: Path) -> None:
    path.parent.mkdir()
    with sqlite3.connect(path) as database:
        database.execute("create table other (x)")
    database.close()
    with pytest.raises(InvalidKey):
        store.check("mh_aaaaaaaaaaaa_" + "x" * 43)
    key, record = store.create("pro")
    assert store.check(key) == record
    store.close()


def test_a_damaged_database_is_reported(store: KeyStore, path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"this is no database" * 100)
    with pytest.raises(KeyStoreUnavailable, match="cannot be used"):
        store.check("mh_aaaaaaaaaaaa_" + "x" * 43)
    with pytest.raises(KeyStoreUnavailable):
        store.create("pro")
    store.close()


def test_the_error_of_an_invalid_url_hides_its_password() -> None:
    for url in (
        "nonsense",
        "postgresql+nodriver://user:geheim@host/db",
        "klingon://user:geheim@host/db",
        "postgresql://user:ge@geheim@host/db",
        "postgresql://user:ge@hei:geheim@host/db",
    ):
        with pytest.raises(ValueError, match="database URL") as caught:
            KeyStore(url)
        assert "geheim" not in str(caught.value)


def test_keys_are_in_the_data_folder_or_the_configured_database(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("MESHHUB_DATABASE_URL", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "my data"))
    store = KeyStore()
    key, _ = store.create("pro")
    store.close()
    if sys.platform == "linux":
        assert (tmp_path / "my data" / "meshhub" / "meshhub.sqlite3").is_file()
    monkeypatch.setenv("MESHHUB_DATABASE_URL", f"sqlite:///{tmp_path / 'other.db'}")
    assert default_url().endswith("other.db")
    other = KeyStore()
    with pytest.raises(InvalidKey):
        other.check(key)
    other.close()


def test_a_whole_key_is_accepted_as_id_and_never_shown(store: KeyStore) -> None:
    key, record = store.create("pro")
    later, successor = store.rotate(key)
    assert (successor.plan, store.check(later)) == ("pro", successor)
    assert store.revoke(later).id == successor.id
    for call in (store.rotate, store.revoke):
        with pytest.raises(InvalidKey) as caught:
            call(key[:-1].replace("mh_", "mh_x"))
        assert key[20:30] not in str(caught.value)
    with pytest.raises(InvalidKey) as caught:
        store.rotate(key)
    assert record.id in str(caught.value)
    assert key not in str(caught.value)
    store.close()


def test_look_reports_a_damaged_database_and_creates_none(store: KeyStore, path: Path) -> None:
    store.look()
    assert not path.exists()
    path.parent.mkdir()
    path.write_bytes(b"this is no database" * 100)
    with pytest.raises(KeyStoreUnavailable):
        store.look()
    store.close()


def without_override() -> None:
    """Drop the capability, in a child process before it starts, that lets root write to read-only files."""
    import ctypes

    drop_from_bounding_set, override = 24, 1
    ctypes.CDLL(None).prctl(drop_from_bounding_set, override, 0, 0, 0)


def run_keys_command(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "MESHHUB_"))}
    return subprocess.run(
        [sys.executable, "-m", "meshhub", "keys", *arguments],
        env={**environment, "HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=without_override,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="takes a right from root as only Linux can")
@pytest.mark.large
def test_a_read_only_home_allows_lookups_and_no_changes(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o500)
    assert run_keys_command("list", home=home).returncode == 0
    refused = run_keys_command("create", "--plan", "pro", home=home)
    assert refused.returncode == 6
    assert "Permission denied" in refused.stderr
    assert refused.stdout == ""
    home.chmod(0o700)
    key = run_keys_command("create", "--plan", "pro", home=home).stdout.strip()
    (file,) = home.rglob("meshhub.sqlite3")
    try:
        file.chmod(0o400)
        file.parent.chmod(0o500)
        assert key[:15] in run_keys_command("list", home=home).stdout
        assert "readonly" in run_keys_command("revoke", key, home=home).stderr
        store = KeyStore(f"sqlite:///{file}")
        assert store.check(key).plan == "pro"
        store.close()
    finally:
        file.parent.chmod(0o700)


def test_a_user_without_a_home_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless(*_: object, **__: object) -> Path:
        raise RuntimeError("no home")

    monkeypatch.delenv("MESHHUB_DATABASE_URL", raising=False)
    monkeypatch.setattr(platformdirs, "user_data_path", homeless)
    assert default_url() == "sqlite:////var/lib/meshhub/meshhub.sqlite3"
    monkeypatch.setattr(platformdirs, "user_data_path", lambda *_, **__: Path("~/.local/share/meshhub"))
    assert default_url() == "sqlite:////var/lib/meshhub/meshhub.sqlite3"


def test_first_keys_can_be_created_concurrently(path: Path) -> None:
    def create_key(_: int) -> str:
        store = KeyStore(f"sqlite:///{path}")
        try:
            key, record = store.create("pro")
            assert store.check(key) == record
            return record.id
        finally:
            store.close()

    with ThreadPoolExecutor(16) as threads:
        ids = list(threads.map(create_key, range(32)))
    store = KeyStore(f"sqlite:///{path}")
    assert {record.id for record in store.list()} == set(ids)
    assert len(set(ids)) == 32
    store.close()
