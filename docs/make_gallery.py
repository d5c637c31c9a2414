"""Draw the gallery and write its page: `MESHHUB_CORPUS=FOLDER python docs/make_gallery.py [NAME…]`.

`gallery.toml` lists the pictures. The models are open files, whose list with licenses is `INDEX.csv` in the folder, and
those of the examples. It needs Pillow and the extra `step`.
"""

from __future__ import annotations

import csv
import html
import io
import os
import shlex
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from PIL import Image

from meshhub import Registry
from meshhub.model.options import flag_of

HERE = Path(__file__).parent
FOLDER = HERE / "images" / "gallery"
EXAMPLES = HERE.parent / "examples"

SIZE = "400x300"
"""Pixels of a picture, as they are, so that legends can be read."""

QUALITY = 82
"""Of WebP: pictures have 3 to 13 kB, and no visible blocks."""

INTRODUCTION = """\
# Gallery

Every picture is drawn by `meshhub render` with the command below it. The files are open models of other projects, which
meshhub's tests read, too. `docs/make_gallery.py` draws the pictures and writes this page.
"""


def draw(registry: Registry, shot: Mapping[str, Any], corpus: Path) -> Image.Image:
    """Draw one picture."""
    content = io.BytesIO()
    model = (corpus if "/" in shot["file"] else EXAMPLES) / shot["file"]
    options = {"size": SIZE, "background": "light", **shot.get("options", {})}
    registry.render(model, content, options=options)
    return Image.open(content).convert("RGB")


def describe(shot: Mapping[str, Any], index: Mapping[str, Mapping[str, str]]) -> str:
    """Return a picture with its command, and the source of its model, as HTML."""
    name, title, options = shot["name"], html.escape(shot["title"]), shot.get("options", {})
    flags = [
        text
        for key, value in options.items()
        for text in ([flag_of(key)] if value is True else [flag_of(key), str(value)])
    ]
    model, credit = f"examples/{shot['file']}", ""
    if row := index.get(shot["file"]):
        model, credit = Path(row["repo_path"]).name, f" <small>{row['source']}, {row['licence']}</small>"
    command = html.escape(shlex.join(["meshhub", "render", model, f"{name}.png", *flags]))
    image = f'<img src="images/gallery/{name}.webp" alt="{title}" width="400" height="300" loading="lazy">'
    return f"<figure>{image}<figcaption>{title}.{credit}<br><code>{command}</code></figcaption></figure>"


def write_page(sections: list[dict[str, Any]], corpus: Path) -> Iterator[str]:
    """Yield the parts of the page with all pictures."""
    with (corpus / "INDEX.csv").open(encoding="utf-8", newline="") as rows:
        index = {row["file"]: row for row in csv.DictReader(rows)}
    yield INTRODUCTION
    for section in sections:
        yield f'\n## {section["title"]}\n\n<div class="gallery">\n'
        yield from (f"{describe(shot, index)}\n" for shot in section["pictures"])
        yield "</div>\n"


def main() -> None:
    """Draw the pictures with the names of the arguments, or all; write the page."""
    corpus = Path(os.environ.get("MESHHUB_CORPUS", ""))
    if not (corpus / "INDEX.csv").is_file():
        sys.exit("set MESHHUB_CORPUS to the folder of the open models")
    sections = tomllib.loads((HERE / "gallery.toml").read_text(encoding="utf-8"))["section"]
    shots = {shot["name"]: shot for section in sections for shot in section["pictures"]}
    FOLDER.mkdir(parents=True, exist_ok=True)
    with Registry(entry_points=False) as registry:
        for name in sys.argv[1:] or shots:
            target = FOLDER / f"{name}.webp"
            draw(registry, shots[name], corpus).save(target, quality=QUALITY, method=6)
            print(f"{name}: {target.stat().st_size} bytes")
    (HERE / "gallery.md").write_text("".join(write_page(sections, corpus)), encoding="utf-8")


if __name__ == "__main__":
    main()
