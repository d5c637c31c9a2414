"""Write the generated pages and tables: `python docs/make_reference.py`. A test keeps them current."""

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
    page_constants,
    page_texts,
    plugin_formats,
    settings,
    synchronous_client,
    typed_options,
)
from reference_pages.blocks import fill_blocks, has_blocks

DOCS = Path(__file__).parent


def _pages_with_blocks() -> dict[str, Callable[[], str]]:
    pages = {"../README.md": DOCS.parent / "README.md"}
    pages |= {str(path.relative_to(DOCS)): path for path in sorted(DOCS.rglob("*.md"))}
    texts = {name: path.read_text(encoding="utf-8") for name, path in pages.items()}
    return {name: (lambda text=text: fill_blocks(text)) for name, text in texts.items() if has_blocks(text)}


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
    "../src/meshhub/client/synchronous.py": synchronous_client.page,
    "../src/meshhub/model/convert_options.py": typed_options.page,
    "../web/src/constants.json": page_constants.page,
    **{f"../web/src/i18n/plugins/{name}": page for name, page in page_texts.pages().items()},
    **{f"man/{name}": (lambda text=text: text) for name, text in man.pages().items()},
    **_pages_with_blocks(),
}


def outdated() -> list[str]:
    """Return the pages whose files differ from the generated text."""
    return [
        name
        for name, page in PAGES.items()
        if not (DOCS / name).is_file() or (DOCS / name).read_text(encoding="utf-8") != page()
    ]


if __name__ == "__main__":
    changed = outdated()
    for name in changed:
        (DOCS / name).parent.mkdir(exist_ok=True)
        (DOCS / name).write_text(PAGES[name](), encoding="utf-8")
    if any(name.startswith("../web/") for name in changed):
        print("sources of the page changed; build it as described in web/README.md")
