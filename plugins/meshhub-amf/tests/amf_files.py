"""AMF files of a brick, laid out as by hand."""

from __future__ import annotations

CORNERS = [(x, y, z) for z in (0, 30) for x, y in ((0, 0), (10, 0), (10, 20), (0, 20))]
SIDES = ((3, 2, 1, 0), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7))


def amf(*, unit: str = "millimeter", before: str = "", after: str = "", vertex: str = "", triangle: str = "") -> bytes:
    """Return a file of the brick, laid out as by hand; the arguments are inserted."""
    vertices = "\n".join(
        f"<vertex>{vertex}<coordinates>\n <x>{x}</x>\n <y> {y} </y>\n <z>{z}.0</z>\n</coordinates></vertex>"
        for x, y, z in CORNERS
    )
    triangles = "".join(
        f"<triangle>{triangle}<v1>{a}</v1><v2>{b}</v2><v3>{c}</v3></triangle>\n"
        for side in SIDES
        for a, b, c in (side[:3], (side[0], *side[2:]))
    )
    return (
        f'<?xml version="1.0" encoding="utf-8"?>\n<!-- a > b --><amf unit="{unit}">{before}'
        f'<object id="1"><mesh><vertices>'
        f"{vertices}</vertices><volume>{triangles}</volume></mesh></object>{after}</amf>"
    ).encode()


GROUPS = """<constellation id="8"><metadata type="name">lid</metadata><instance objectid="1"/></constellation>
<constellation id="9"><metadata type="name">box</metadata><instance objectid="8"/><instance objectid="1"/>
</constellation>"""
