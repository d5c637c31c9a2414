"""The store of API keys in the PostgreSQL that MESHHUB_TEST_POSTGRES_URL names."""

# ruff: noqa: E402
from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

URL = os.environ.get("MESHHUB_TEST_POSTGRES_URL", "")
if not URL:
    pytest.skip("MESHHUB_TEST_POSTGRES_URL names no PostgreSQL", allow_module_level=True)
pytest.importorskip("psycopg", reason="PostgreSQL needs psycopg")

import sqlalchemy as sql

from meshhub.errors import InvalidKey, KeyStoreUnavailable
from meshhub.service.keys import KeyStore

pytestmark = pytest.mark.once


@pytest.fixture
def url() -> Iterator[str]:
    """Create a database for the test; yield its URL."""
    name = f"meshhub_{os.getpid()}_{os.urandom(4).hex()}"
    maker = sql.create_engine(KeyStore(URL)._url, isolation_level="AUTOCOMMIT", poolclass=sql.NullPool)
    with maker.connect() as connection:
        connection.execute(sql.text(f"CREATE DATABASE {name}"))
    yield maker.url.set(database=name).render_as_string(hide_password=False)
    with maker.connect() as connection:
        connection.execute(sql.text(f"DROP DATABASE {name} WITH (FORCE)"))


@pytest.fixture
def store(url: str) -> Iterator[KeyStore]:
    result = KeyStore(url)
    yield result
    result.close()


def test_a_key_is_created_rotated_and_revoked(store: KeyStore) -> None:
    with pytest.raises(InvalidKey):
        store.check("mh_aaaaaaaaaaaa_" + "x" * 43)
    assert store.list() == []
    key, record = store.create("pro", label="Käufer ' ; --", expires=4_000_000_000)
    assert store.check(key) == record
    assert store.list() == [record]
    later, successor = store.rotate(record.id, grace=3600)
    assert (successor.plan, successor.label) == (record.plan, record.label)
    assert store.check(key).id == record.id
    assert store.check(later) == successor
    store.revoke(record.id)
    with pytest.raises(InvalidKey, match="revoked"):
        store.check(key)
    assert store.check(later) == successor
    short, _ = store.create("pro", expires=1000)
    with pytest.raises(InvalidKey, match="expired"):
        store.check(short)


def test_the_database_holds_only_hashes_of_keys(store: KeyStore) -> None:
    key, record = store.create("pro")
    with store._engine.connect() as connection:
        rows = connection.execute(sql.text("SELECT * FROM api_keys")).all()
    assert record.id in str(rows)
    assert key.removeprefix(record.id) not in str(rows)


def test_several_stores_create_the_table_concurrently(url: str) -> None:
    """Several servers start at the same time with an empty database."""
    stores = [KeyStore(url) for _ in range(8)]
    with ThreadPoolExecutor(8) as threads:
        result = list(threads.map(lambda store: store.create("pro"), stores))
    assert {record.id for _, record in result} == {record.id for record in stores[0].list()}
    for store in stores:
        store.close()


def test_options_of_the_url_reach_the_database(url: str) -> None:
    engine = sql.create_engine(url, poolclass=sql.NullPool)
    with engine.begin() as connection:
        connection.execute(sql.text("CREATE SCHEMA shop"))
    store = KeyStore(sql.make_url(url).update_query_dict({"options": "-csearch_path=shop"}).render_as_string(False))
    store.create("pro")
    store.close()
    with engine.connect() as connection:
        assert "api_keys" in sql.inspect(connection).get_table_names("shop")


def test_a_key_is_rotated_once(url: str, store: KeyStore) -> None:
    _, record = store.create("pro")
    stores = [KeyStore(url) for _ in range(6)]

    def try_rotate(key_store: KeyStore) -> bool:
        try:
            key_store.rotate(record.id)
        except InvalidKey:
            return False
        return True

    with ThreadPoolExecutor(6) as threads:
        assert sum(threads.map(try_rotate, stores)) == 1
    assert len(store.list()) == 2
    for key_store in stores:
        key_store.close()


def test_closed_connections_are_replaced(store: KeyStore) -> None:
    key, record = store.create("pro")
    killer = sql.create_engine(store._url, isolation_level="AUTOCOMMIT", poolclass=sql.NullPool)
    with killer.connect() as connection:
        cut = connection.execute(
            sql.text(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        ).scalar_one()
    assert cut >= 1
    assert store.check(key) == record


def test_a_locked_table_is_reported_without_a_long_wait(store: KeyStore) -> None:
    key, record = store.create("pro")
    other = sql.create_engine(store._url, poolclass=sql.NullPool)
    with other.begin() as connection:
        connection.execute(sql.text("LOCK TABLE api_keys IN ACCESS EXCLUSIVE MODE"))
        with pytest.raises(KeyStoreUnavailable):
            store.check(key)
    assert store.check(key) == record


def test_the_error_of_an_unreachable_database_hides_its_password() -> None:
    for url in ("postgresql://user:geheim@127.0.0.1:1/db", "postgresql+psycopg://user:geheim@/db?host=/nowhere"):
        store = KeyStore(url)
        for ask in (
            lambda store=store: store.create("pro"),
            lambda store=store: store.check("mh_" + "a" * 12 + "_" + "x" * 43),
        ):
            with pytest.raises(KeyStoreUnavailable) as caught:
                ask()
            assert "geheim" not in str(caught.value)
        store.close()
