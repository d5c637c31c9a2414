"""Schemas of the PostgreSQL that MESHHUB_TEST_POSTGRES_URL names: each test has tables of its own."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator

import sqlalchemy as sql
from sqlalchemy.engine import make_url

URL = os.environ.get("MESHHUB_TEST_POSTGRES_URL", "")


@contextlib.contextmanager
def temporary_schema() -> Iterator[str]:
    """Create an empty schema; yield the URL whose connections use it."""
    name = f"test_{secrets.token_hex(8)}"
    engine = sql.create_engine(URL, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sql.schema.CreateSchema(name))
    try:
        url = make_url(URL).update_query_dict({"options": f"-c search_path={name}"})
        yield url.render_as_string(hide_password=False)
    finally:
        with engine.connect() as connection:
            connection.execute(sql.schema.DropSchema(name, cascade=True))
        engine.dispose()
