"""Parts of every 3MF package: the types of its files, and relationships."""

from __future__ import annotations

MODEL_PART = "3D/3dmodel.model"
MODEL_RELATIONSHIP = "http://schemas.microsoft.com/3dmanufacturing/2013/01/3dmodel"

CONTENT_TYPES = b"""<?xml version="1.0" encoding="UTF-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
<Default Extension="model" ContentType="application/vnd.ms-package.3dmanufacturing-3dmodel+xml"/>
<Default Extension="png" ContentType="image/png"/>
<Default Extension="jpg" ContentType="image/jpeg"/>
</Types>
"""


def format_relationships(links: list[tuple[str, str]]) -> bytes:
    """Return a relationships part from pairs of target and type."""
    rows = [
        f'<Relationship Target="{target}" Id="rel{number}" Type="{kind}"/>\n'
        for number, (target, kind) in enumerate(links, 1)
    ]
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">\n'
        + "".join(rows)
        + "</Relationships>\n"
    ).encode()
