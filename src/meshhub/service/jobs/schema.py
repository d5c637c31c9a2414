"""Version of the tables, which ensures that programs of two versions never misread one database.

A later version only adds tables, and columns that may be NULL, so that programs of the previous version can continue
beside it; a version that removes a column raises `MIN_VERSION`, which excludes the programs that still use the column.
"""

from __future__ import annotations

import sqlalchemy as sql

from meshhub.errors import JobStoreUnavailable
from meshhub.service.jobs.tables import METADATA, SCHEMA

VERSION = 1
"""Version of `tables.py`."""

MIN_VERSION = 1
"""Lowest version of the programs that work with these tables."""


def create_tables(connection: sql.Connection) -> None:
    """Create missing tables; the caller excludes other processes that do the same.

    Raises:
        JobStoreUnavailable: The tables belong to a version with which this program does not work.
    """
    if not sql.inspect(connection).has_table(SCHEMA.name):
        METADATA.create_all(connection)
        connection.execute(SCHEMA.insert().values(version=VERSION, min_version=MIN_VERSION))
        return
    version, min_version = connection.execute(sql.select(SCHEMA.c.version, SCHEMA.c.min_version)).one()
    if min_version > VERSION:
        raise JobStoreUnavailable(
            f"the tables of jobs have version {version}, and this program works with {VERSION}; upgrade meshhub"
        )
