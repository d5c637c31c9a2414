"""Completions of arguments: files, and the names of formats, plans and recipes.

`meshhub completion` prints the scripts.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from meshhub.cli.loading import load_registry

if TYPE_CHECKING:
    # imported only when a shell asks for completions, because it would make each command start later
    from click.shell_completion import CompletionItem


def complete_files(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Let the shell complete the names of files."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def complete_targets(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the formats that can be written."""
    writers = load_registry().declarations.writers
    return list_matches({writer.capability.format.id for writer in writers}, incomplete)


def complete_sources(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the formats that can be read."""
    readers = load_registry().declarations.readers
    return list_matches({reader.capability.format.id for reader in readers}, incomplete)


def complete_paths(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Let the shell complete files; after the first path, return the formats that match instead of a file."""
    is_second = bool(ctx.params.get("paths") or ctx.params.get("source"))
    if is_second and incomplete.isalnum() and not any(Path().glob(f"{incomplete}*")):
        formats = complete_targets(ctx, param, incomplete)
        if formats:
            return formats
    return complete_files(ctx, param, incomplete)


def complete_plans(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the ids of the plans."""
    return list_matches(set(load_registry().plans), incomplete)


def complete_recipes(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the names of the recipes; let the shell complete files if none matches."""
    recipes = list_matches(set(load_registry().recipes), incomplete)
    return recipes or complete_files(ctx, param, incomplete)


def list_matches(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    """Return the names that begin with the incomplete word."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(name) for name in sorted(names) if name.startswith(incomplete.lower())]
