"""COLLADA files of a brick."""

from __future__ import annotations

POSITIONS = "0 0 0 10 0 0 10 20 0 0 20 0 0 0 30 10 0 30 10 20 30 0 20 30"
POLYLIST = (
    '<polylist material="paint" count="6"><input semantic="VERTEX" source="#v" offset="0"/>'
    "<vcount>4 4 4 4 4 4</vcount><p>3 2 1 0 4 5 6 7 0 1 5 4 1 2 6 5 2 3 7 6 3 0 4 7</p></polylist>"
)


def dae(
    *,
    asset: str = '<unit meter="0.001"/><up_axis>Z_UP</up_axis>',
    mesh: str = POLYLIST,
    sources: str = "",
    node: str = '<instance_geometry url="#g"/>',
    libraries: str = "",
) -> bytes:
    """Return a file of the brick; the arguments replace or add elements."""
    return f"""<?xml version="1.0" encoding="utf-8"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1"><asset>{asset}</asset>{libraries}
<library_geometries><geometry id="g" name="brick"><mesh>
<source id="s"><float_array id="a" count="24">{POSITIONS}</float_array><technique_common>
<accessor source="#a" count="8" stride="3"><param name="X"/><param name="Y"/><param name="Z"/></accessor>
</technique_common></source>{sources}
<vertices id="v"><input semantic="POSITION" source="#s"/></vertices>{mesh}</mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="scene"><node id="n" name="part">{node}</node></visual_scene>
</library_visual_scenes><scene><instance_visual_scene url="#scene"/></scene></COLLADA>""".encode()
