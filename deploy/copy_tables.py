"""Copy API keys, webhook secrets and the usage ledger to another database; rows that it has stay as they are.

    python deploy/copy_tables.py sqlite:////var/lib/meshhub/meshhub.sqlite3 postgresql://meshhub@db.internal/meshhub

Keys and jobs may be in different databases: run it once for each. It copies no jobs, which need their files: let the
old service end them.
"""

from __future__ import annotations

import sys

import sqlalchemy as sql

from meshhub.service import keys, webhook_secrets
from meshhub.service.jobs.tables import USAGE
from meshhub.service.key_database import METADATA, parse_url

assert keys.METADATA is webhook_secrets.METADATA is METADATA


def copy_tables(source_url: str, target_url: str) -> dict[str, int]:
    """Copy the tables that the source has; return the number of new rows by table."""
    source, target = (sql.create_engine(parse_url(url)) for url in (source_url, target_url))
    counts = {}
    with source.connect() as reading, target.begin() as writing:
        existing = sql.inspect(reading).get_table_names()
        for table in (*METADATA.sorted_tables, USAGE):
            if table.name not in existing:
                continue
            table.create(writing, checkfirst=True)
            (key,) = table.primary_key.columns
            known = set(writing.execute(sql.select(key)).scalars())
            rows = [row for row in reading.execute(table.select()).mappings() if row[key.name] not in known]
            if rows:
                writing.execute(table.insert(), [dict(row) for row in rows])
            counts[table.name] = len(rows)
    source.dispose()
    target.dispose()
    return counts


if __name__ == "__main__":
    for name, count in copy_tables(*sys.argv[1:]).items():
        sys.stdout.write(f"{name}: {count} new rows\n")
