"""Tables of jobs. `schema.py` has the versions of these tables."""

from __future__ import annotations

import sqlalchemy as sql

METADATA = sql.MetaData()

JOBS = sql.Table(
    "jobs",
    METADATA,
    sql.Column("number", sql.BigInteger().with_variant(sql.Integer, "sqlite"), primary_key=True, autoincrement=True),
    sql.Column("id", sql.String(64), nullable=False, unique=True),
    sql.Column("kind", sql.String(20), nullable=False),
    sql.Column("state", sql.String(20), nullable=False),
    sql.Column("caller", sql.String(200), nullable=False),
    sql.Column("key_id", sql.String(32), nullable=False),
    sql.Column("plan", sql.String(100), nullable=False),
    sql.Column("weight", sql.Integer, nullable=False),
    sql.Column("request", sql.Text, nullable=False),
    sql.Column("bytes_in", sql.BigInteger, nullable=False),
    sql.Column("retention_s", sql.Double),
    sql.Column("max_unfinished", sql.Integer),
    sql.Column("idempotency_key", sql.String(255)),
    sql.Column("fingerprint", sql.String(64), nullable=False),
    sql.Column("webhook_url", sql.Text),
    # seconds since 1970, because databases differ in how they store time zones
    sql.Column("created", sql.Double, nullable=False),
    sql.Column("started", sql.Double),
    sql.Column("finished", sql.Double),
    sql.Column("expires", sql.Double),
    sql.Column("attempt", sql.Integer, nullable=False, default=0),
    sql.Column("token", sql.String(64)),
    sql.Column("worker", sql.String(200)),
    sql.Column("lease_until", sql.Double),
    sql.Column("progress", sql.Text),
    sql.Column("outcome", sql.Text),
    sql.Column("memory_bytes", sql.BigInteger),
    # when a queued job was assigned to `worker`
    sql.Column("placed", sql.Double),
    sql.UniqueConstraint("caller", "idempotency_key"),
    sql.Index("jobs_by_caller", "caller", "state", "number"),
    sql.Index("jobs_by_worker", "worker", "state"),
    sql.Index("jobs_by_lease", "state", "lease_until"),
    sql.Index("jobs_by_expiry", "expires"),
    sql.Index("jobs_by_key", "key_id", "number"),
)

CALLERS = sql.Table(
    "job_callers",
    METADATA,
    sql.Column("caller", sql.String(200), primary_key=True),
    sql.Column("pass", sql.Double, nullable=False, key="turn"),
    sql.Column("weight", sql.Integer, nullable=False),
    sql.Column("queued", sql.Integer, nullable=False),
    sql.Column("running", sql.Integer, nullable=False),
    sql.Column("bytes", sql.BigInteger, nullable=False),
    sql.Index("job_callers_by_pass", "turn"),
)

USAGE = sql.Table(
    "job_usage",
    METADATA,
    sql.Column("job_id", sql.String(64), primary_key=True),
    sql.Column("caller", sql.String(200), nullable=False),
    sql.Column("key_id", sql.String(32), nullable=False),
    sql.Column("plan", sql.String(100), nullable=False),
    sql.Column("kind", sql.String(20), nullable=False),
    sql.Column("state", sql.String(20), nullable=False),
    sql.Column("finished", sql.Double, nullable=False),
    sql.Column("attempts", sql.Integer, nullable=False),
    sql.Column("bytes_in", sql.BigInteger, nullable=False),
    sql.Column("bytes_out", sql.BigInteger, nullable=False),
    sql.Column("cpu_seconds", sql.Double, nullable=False),
    sql.Index("job_usage_by_time", "finished"),
)

DELIVERIES = sql.Table(
    "job_webhooks",
    METADATA,
    sql.Column("id", sql.String(64), primary_key=True),
    sql.Column("job_id", sql.String(64), nullable=False, unique=True),
    sql.Column("key_id", sql.String(32), nullable=False),
    sql.Column("url", sql.Text, nullable=False),
    sql.Column("payload", sql.Text, nullable=False),
    sql.Column("created", sql.Double, nullable=False),
    sql.Column("attempts", sql.Integer, nullable=False),
    # None: delivered or given up
    sql.Column("due", sql.Double),
    sql.Column("error", sql.Text, nullable=False),
    sql.Index("job_webhooks_by_due", "due"),
)

WORKERS = sql.Table(
    "job_workers",
    METADATA,
    sql.Column("worker", sql.String(200), primary_key=True),
    # None: the worker starts no more jobs
    sql.Column("slots", sql.Integer),
    sql.Column("memory_bytes", sql.BigInteger, nullable=False),
    sql.Column("lease_until", sql.Double, nullable=False),
)

SCHEMA = sql.Table(
    "job_schema",
    METADATA,
    # one row
    sql.Column("version", sql.Integer, nullable=False),
    sql.Column("min_version", sql.Integer, nullable=False),
)
