"""Write the generated pages of the documentation: `python docs/make_reference.py`. A test keeps them current."""

# why this way: docs/decisions/0021-documentation-site.md
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from reference_pages import (
    cli,
    decisions,
    errors,
    hooks,
    http,
    man,
    metrics,
    notes,
    options,
    plugin_formats,
    settings,
    typed_options,
)

DOCS = Path(__file__).parent

PAGES: dict[str, Callable[[], str]] = {
    "reference/options.md": options.page,
    "reference/cli.md": cli.page,
    "reference/http.md": http.page,
    "reference/errors.md": errors.page,
    "reference/notes.md": notes.page,
    "reference/settings.md": settings.page,
    "reference/metrics.md": metrics.page,
    "reference/hooks.md": hooks.page,
    "reference/plugin-formats.md": plugin_formats.page,
    "decisions/index.md": decisions.page,
    "../src/meshhub/model/convert_options.py": typed_options.page,
} | {f"man/{name}": (lambda text=text: text) for name, text in man.pages().items()}


def outdated() -> list[str]:
    """Return the pages whose files differ from the generated text."""
    return [
        name
        for name, page in PAGES.items()
        if not (DOCS / name).is_file() or (DOCS / name).read_text(encoding="utf-8") != page()
    ]


if __name__ == "__main__":
    (DOCS / "man").mkdir(exist_ok=True)
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")
