"""Versions of the tables, for programs of two versions that use one database at the same time.

A new version only adds tables, and columns that may be NULL: programs of the version before ignore them, and their
rows lack them. A column is removed in a later version, whose `MIN_VERSION` excludes the programs that still use it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sql
from sqlalchemy.schema import CreateColumn

from meshhub.errors import JobStoreUnavailable
from meshhub.service.jobs.tables import JOBS, METADATA, SCHEMA

VERSION = 2
"""Version of `tables.py`. 1: jobs, callers, usage and webhooks; 2: workers, and the weights of jobs."""

MIN_VERSION = 1
"""Lowest version of the programs that work with these tables."""

ADDED_COLUMNS: Mapping[int, Sequence[sql.Column[object]]] = {2: (JOBS.c.memory_bytes, JOBS.c.cores, JOBS.c.placed)}
"""Columns that a version adds to existing tables."""


def upgrade(connection: sql.Connection) -> None:
    """Create the tables, or add the parts that an older version lacks; the caller excludes other upgrades.

    Raises:
        JobStoreUnavailable: The tables belong to a version with which this program does not work.
    """
    inspector = sql.inspect(connection)
    if not inspector.has_table(JOBS.name):
        METADATA.create_all(connection)
        _set_version(connection)
        return
    version = 1
    if inspector.has_table(SCHEMA.name):
        version, min_version = connection.execute(sql.select(SCHEMA.c.version, SCHEMA.c.min_version)).one()
        if min_version > VERSION:
            raise JobStoreUnavailable(
                f"the tables of jobs have version {version}, and this program works with {VERSION}; upgrade meshhub"
            )
    if version >= VERSION:
        return
    for added in range(version + 1, VERSION + 1):
        for column in ADDED_COLUMNS[added]:
            definition = CreateColumn(column).compile(dialect=connection.dialect)
            connection.exec_driver_sql(f"ALTER TABLE {column.table.name} ADD COLUMN {definition}")
    METADATA.create_all(connection)
    _set_version(connection)


def _set_version(connection: sql.Connection) -> None:
    connection.execute(SCHEMA.delete())
    connection.execute(SCHEMA.insert().values(version=VERSION, min_version=MIN_VERSION))
