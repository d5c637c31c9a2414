"""Built files of the page, in memory, with their compressed copies and headers."""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from meshhub.http.responses.encodings import COMPRESSORS

FOLDER = Path(__file__).parent.parent / "page"
"""Folder of the built page in this package."""

INDEX = "index.html"

_HASHED = "assets/"
"""Folder of the files whose names change with their content."""

FOREVER = "public, max-age=31536000, immutable"
"""Cache-Control of files whose addresses change with their content."""

_REVALIDATE = "no-cache"

_COPIES = {".br": "br", ".gz": "gzip"}
"""Encodings of compressed copies by suffix, the smaller first."""

_TYPES = {".js": "text/javascript", ".wasm": "application/wasm", ".webmanifest": "application/manifest+json"}
"""Media types that the table of the system may lack or define differently."""

_INCOMPRESSIBLE = (".png", ".jpg", ".webp", ".woff2")


@dataclass(frozen=True)
class PageFile:
    """File of the page.

    Attributes:
        media_type: Media type; the framework adds the charset of text.
        contents: Content by encoding, "" for the plain file; the preferred encoding first.
        headers: Headers of the response.
    """

    media_type: str
    contents: Mapping[str, bytes]
    headers: Mapping[str, str]


def load_page(folder: Path, headers: Mapping[str, str]) -> dict[str, PageFile]:
    """Return the files of a built page by path, "/" for its index; empty if no page is built there.

    Args:
        headers: Headers of every file.
    """
    if not (folder / INDEX).is_file():
        return {}
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix not in _COPIES and not path.name.startswith("."):
            name = path.relative_to(folder).as_posix()
            cache = FOREVER if name.startswith(_HASHED) else _REVALIDATE
            files["/" if name == INDEX else f"/{name}"] = load_file(path, {**headers, "Cache-Control": cache})
    return files


def page_headers(frame_ancestors: Iterable[str], model_origins: Iterable[str]) -> dict[str, str]:
    """Return the security headers of every file of the page.

    Args:
        frame_ancestors: Origins whose pages may embed the page.
        model_origins: Origins from which the page may load models.
    """
    ancestors = " ".join(frame_ancestors) or "'none'"
    sources = " ".join(["'self'", "blob:", *model_origins])
    policy = (
        "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' blob: data:; "
        f"connect-src {sources}; worker-src 'self' blob:; font-src 'self'; manifest-src 'self'; base-uri 'none'; "
        f"form-action 'none'; frame-ancestors {ancestors}"
    )
    return {"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}


def load_file(path: Path, headers: Mapping[str, str]) -> PageFile:
    """Return a file with its compressed copies; text without copies is compressed here.

    Args:
        headers: Headers of its responses; default of Cache-Control: revalidate each time.
    """
    content = path.read_bytes()
    copies = {
        encoding: path.with_name(path.name + suffix).read_bytes()
        for suffix, encoding in _COPIES.items()
        if path.with_name(path.name + suffix).is_file()
    }
    if not copies and path.suffix not in _INCOMPRESSIBLE:
        copies = {encoding: compress(content) for encoding, compress in COMPRESSORS.items()}
    media_type = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    headers = {
        "Cache-Control": _REVALIDATE,
        **headers,
        "ETag": f'W/"{hashlib.sha256(content).hexdigest()[:32]}"',
        "Vary": "Accept-Encoding",
    }
    return PageFile(media_type, {**copies, "": content}, headers)
