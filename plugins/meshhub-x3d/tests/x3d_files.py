"""X3D and VRML files, in the layouts of exporters."""

from __future__ import annotations

from meshhub.testing import sample_scenes

POINTS = "0 0 0, 10 0 0, 10 0 -20, 0 0 -20, 0 30 0, 10 30 0, 10 30 -20, 0 30 -20"
"""Corners of a box of 10 × 20 × 30 mm, with 30 mm along Y, which is up."""

SIDES = "3 2 1 0 -1 4 5 6 7 -1 0 1 5 4 -1 1 2 6 5 -1 2 3 7 6 -1 3 0 4 7 -1"

MILLIMETERS = '<unit category="length" name="millimeter" conversionFactor="0.001"/>'

DOCTYPE = '<!DOCTYPE X3D PUBLIC "ISO//Web3D//DTD X3D 3.3//EN" "http://www.web3d.org/specifications/x3d-3.3.dtd">'


def x3d(scene: str, head: str = MILLIMETERS, doctype: str = DOCTYPE) -> bytes:
    """Return an XML file."""
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n{doctype}\n<X3D profile="Immersive" version="3.3"><head>{head}</head>'
        f"<Scene>{scene}</Scene></X3D>"
    ).encode()


def shape(geometry: str, appearance: str = "") -> str:
    """Return a shape."""
    return f"<Shape>{appearance}{geometry}</Shape>"


def faces(attributes: str = "", children: str = "", sides: str = SIDES) -> str:
    """Return the box as a face set, with more attributes and nodes."""
    return (
        f'<IndexedFaceSet coordIndex="{sides}" {attributes}><Coordinate point="{POINTS}"/>{children}</IndexedFaceSet>'
    )


def vrml(scene: str) -> bytes:
    """Return a VRML file of version 2.0."""
    return f"#VRML V2.0 utf8\n{scene}\n".encode()


BRICK = x3d(shape(faces()))

VRML_BRICK = vrml(
    "Transform { scale 0.001 0.001 0.001 children Shape { geometry IndexedFaceSet { "
    f"coord Coordinate {{ point [ {POINTS} ] }} coordIndex [ {SIDES} ] }} }} }}"
)

_FULL_FACES = faces(
    'colorPerVertex="false" normalPerVertex="false"',
    f'<Color color="{"1 0 0 " * 5}0 0 1"/><Normal vector="0 0 -1 0 0 1 0 -1 0 1 0 0 0 1 0 -1 0 0"/>'
    '<TextureCoordinate point="0 0 1 0 1 1 0 1 0 0 1 0 1 1 0 1"/>',
)
FULL = x3d(
    '<Transform DEF="group"><Transform DEF="brick">'
    '<Shape DEF="shape"><Appearance><Material DEF="red" diffuseColor="1 0 0"/>'
    f'<ImageTexture url=\'"paint.png" "b.png"\'/></Appearance>{_FULL_FACES}</Shape>'
    '</Transform></Transform><Transform translation="100 0 0"><Transform USE="brick"/></Transform>',
    MILLIMETERS + '<meta name="title" content="A brick"/><meta name="author" content="Ann"/>',
)
"""File with all features."""

FULL_VRML = vrml(
    """
# a comment with "one quote
WorldInfo { title "A brick" info [ "author: Ann" ] }
PROTO Red [ field SFColor color 1 0 0 exposedField MFNode children [ ] ] { Material { diffuseColor IS color } }
DEF Clock TimeSensor { loop TRUE }
DEF group Transform { scale 0.01 0.02 0.03 children [
  DEF brick Transform { children Shape {
    appearance DEF look Appearance {
      material DEF red Red { }
      texture ImageTexture { url ["paint.png", "b.png"] repeatS FALSE }
    }
    geometry IndexedFaceSet {
      ccw TRUE, solid TRUE
      coord Coordinate { point [0 0 0,1 0 0,1 1 0, 0 1 0 # a comment
        0 0 1, 1 0 1, 1 1 1, 0 1 1] }
      coordIndex [3,2,1,0,-1, 4 5 6 7 -1, 0 1 5 4 -1 1 2 6 5 -1 2 3 7 6 -1 3 0 4 7 -1]
      color Color { color [ 1 0 0 0 1 0 ] } colorIndex [ 0 0 0 0 1 1 ] colorPerVertex FALSE
      normal Normal { vector [ 0 0 -1 0 0 1 0 -1 0 1 0 0 0 1 0 -1 0 0 ] } normalPerVertex FALSE
      texCoord TextureCoordinate { point [0 0, 1 0, 1 1, 0 1, 0 0, 1 0, 1 1, 0 1] }
    } } }
  Transform { translation 2 0 0 children USE brick }
] }
Script { url "javascript: function f() { }" field SFInt32 a 1 }
ROUTE Clock.fraction_changed TO brick.set_scale
"""
)
"""VRML file with all features."""

COMPANIONS = {"paint.png": sample_scenes.png()}
