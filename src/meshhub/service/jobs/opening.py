"""Store and files of jobs that the settings name."""

from __future__ import annotations

import os
from pathlib import Path

from meshhub.errors import InvalidSettings, describe_missing
from meshhub.model.installing import describe_install
from meshhub.service.jobs.files import JobFiles, LocalJobFiles
from meshhub.service.jobs.sqlite import SqliteJobStore
from meshhub.service.jobs.store import JobStore
from meshhub.service.key_database import data_folder
from meshhub.service.settings import Settings

EXTRA = "meshhub[cluster]"
"""Requirement of the stores of a cluster."""
"""Command that installs the packages of a cluster."""


def open_store(settings: Settings) -> JobStore:
    """Return the store of jobs, to which the first use connects. Raises InvalidSettings."""
    if settings.jobs_database_url is None:
        return SqliteJobStore(_folder(settings) / "jobs.sqlite3", root_path=settings.root_path)
    try:
        from meshhub.service.jobs.postgres import PostgresJobStore

        return PostgresJobStore(settings.jobs_database_url, root_path=settings.root_path)
    except ImportError as error:
        package = error.name or "psycopg"
        raise InvalidSettings(
            f"jobs_database_url: {describe_missing('PostgreSQL', [package], describe_install(EXTRA))}"
        ) from error
    except ValueError as error:
        raise InvalidSettings(f"jobs_database_url: {error}") from error


def open_files(settings: Settings) -> JobFiles:
    """Return the files of jobs, to whose store the first use connects. Raises InvalidSettings."""
    if settings.jobs_storage_url is not None:
        try:
            from meshhub.service.jobs.object_files import ObjectJobFiles

            return ObjectJobFiles(settings.jobs_storage_url)
        except ImportError as error:
            package = error.name or "obstore"
            raise InvalidSettings(
                f"jobs_storage_url: {describe_missing('S3', [package], describe_install(EXTRA))}"
            ) from error
        except ValueError as error:
            raise InvalidSettings(f"jobs_storage_url: {error}") from error
    return LocalJobFiles(_folder(settings))


def _folder(settings: Settings) -> Path:
    """Return the folder of the jobs, which the first use creates. Raises InvalidSettings."""
    folder = Path(settings.jobs_folder) if settings.jobs_folder else data_folder() / "jobs"
    # a copy that another user restored would fail at the first job
    for path in (folder, *(folder / name for name in ("jobs.sqlite3", "in", "out", "work"))):
        if os.access(path, os.F_OK) and not os.access(path, os.W_OK):
            raise InvalidSettings(f"jobs_folder: this user may not write {os.fspath(path)!r}; change its owner")
    if os.access(folder, os.F_OK) and not folder.is_dir():
        raise InvalidSettings(f"jobs_folder: {os.fspath(folder)!r} is not a folder")
    return folder
