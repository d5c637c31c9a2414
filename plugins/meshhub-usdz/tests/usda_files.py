"""USDA layers with a brick."""

from __future__ import annotations

USDA = """#usda 1.0
(
    defaultPrim = "root"
    metersPerUnit = {unit}
    upAxis = "{up}"
)
{before}
def Xform "root"
{{
    def Mesh "brick" {api}
    {{
        uniform token subdivisionScheme = "none"
        int[] faceVertexCounts = [4, 4, 4, 4, 4, 4]
        int[] faceVertexIndices = [3, 2, 1, 0, 4, 5, 6, 7, 0, 1, 5, 4, 1, 2, 6, 5, 2, 3, 7, 6, 3, 0, 4, 7]
        point3f[] points = [(0, 0, 0), (10, 0, 0), (10, 20, 0), (0, 20, 0),
            (0, 0, 30), (10, 0, 30), (10, 20, 30), (0, 20, 30)]
        {inside}
    }}
    {after}
}}
"""


def usda(
    *, unit: str = "0.001", up: str = "Z", before: str = "", inside: str = "", after: str = "", api: str = ""
) -> bytes:
    """Return a layer with the brick; the arguments are inserted."""
    return USDA.format(unit=unit, up=up, before=before, inside=inside, after=after, api=api).encode()
