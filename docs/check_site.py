"""Check the built site: `python docs/check_site.py SITE`. Pages and style sheets must not load from other hosts."""

from __future__ import annotations

import re
import sys
from pathlib import Path

_OTHER_HOST = r"(?:https?:)?//"

LOADING = {
    # links to other pages of the site have another rel
    ".html": re.compile(
        r"<(?:script|img|iframe|source|link(?![^>]*rel=\"?(?:canonical|next|prev))) "
        rf"[^>]*?(?:src|href)=\"?{_OTHER_HOST}[^\s\">]+"
    ),
    ".css": re.compile(rf"(?:url\(|@import)\s*[\"']?{_OTHER_HOST}[^\"')]+"),
}
"""Markup that makes a browser load an address of another host."""

site = Path(sys.argv[1])
pages = [path for path in site.rglob("*") if path.suffix in LOADING]
references = [
    f"{path.relative_to(site)}: {match[0]}"
    for path in pages
    for match in LOADING[path.suffix].finditer(path.read_text(encoding="utf-8"))
]
if references or not pages:
    sys.exit("\n".join(["the site loads from other hosts:", *references]) if pages else f"{site} has no pages")
