"""`meshhub migrate`: create the tables of the service."""

from __future__ import annotations

import contextlib

import click

from meshhub.cli import terminal
from meshhub.cli.job_store import open_store as open_job_store
from meshhub.cli.keys import open_store as open_key_store
from meshhub.cli.texts import tr
from meshhub.cli.verbosity import verbosity


@click.command()
@verbosity
def migrate() -> None:
    """Create the tables of jobs and API keys where they are missing.

    The settings jobs_database_url and database_url name the databases (default: files in your data folder). Otherwise,
    each service creates them at its first use. Run this before you start the first service if the services may not
    create tables, with a user of the database who may.
    """
    with contextlib.closing(open_job_store()) as jobs:
        jobs.migrate()
    with contextlib.closing(open_key_store()) as keys:
        # adds its table to those of the keys
        import meshhub.service.webhook_secrets  # noqa: F401

        keys.create_tables()
    terminal.inform(tr("the tables of jobs and API keys are up to date"))
