"""Building models as text, in the layout of exporters."""

from __future__ import annotations

from meshhub import Source

_BEGIN = """ISO-10303-21;
HEADER;
FILE_DESCRIPTION(('ViewDefinition [DesignTransferView]'),'2;1');
FILE_NAME('house.ifc','2026-01-01T00:00:00',(''),(''),'','','');
FILE_SCHEMA(('IFC4'));
ENDSEC;
DATA;
#1=IFCCARTESIANPOINT((0.,0.,0.));
#2=IFCAXIS2PLACEMENT3D(#1,$,$);
#3=IFCGEOMETRICREPRESENTATIONCONTEXT($,'Model',3,1.E-5,#2,$);
#4=IFCSIUNIT(*,.LENGTHUNIT.,.MILLI.,.METRE.);
#5=IFCUNITASSIGNMENT((#4));
#6=IFCPROJECT('0aaaaaaaaaaaaaaaaaaaa1',$,'Project',$,$,$,$,(#3),#5);
#7=IFCLOCALPLACEMENT($,#2);
#8=IFCBUILDINGSTOREY('0aaaaaaaaaaaaaaaaaaaa2',$,'Ground floor',$,$,#7,$,$,.ELEMENT.,0.);
#9=IFCRELAGGREGATES('0aaaaaaaaaaaaaaaaaaaa3',$,$,$,#6,(#8));
#10=IFCDIRECTION((0.,0.,1.));
"""
_END = "ENDSEC;\nEND-ISO-10303-21;\n"


def box(first: int, x: float, y: float, z: float, corner: tuple[float, float, float] = (0, 0, 0)) -> str:
    """Return a body of a size at a corner; its solid has the number `first` + 5, its shape `first` + 7."""
    center = f"({corner[0] + x / 2:.3f},{corner[1] + y / 2:.3f})"
    return f"""#{first}=IFCCARTESIANPOINT({center});
#{first + 1}=IFCAXIS2PLACEMENT2D(#{first},$);
#{first + 2}=IFCRECTANGLEPROFILEDEF(.AREA.,$,#{first + 1},{x:.3f},{y:.3f});
#{first + 3}=IFCCARTESIANPOINT((0.,0.,{corner[2]:.3f}));
#{first + 4}=IFCAXIS2PLACEMENT3D(#{first + 3},$,$);
#{first + 5}=IFCEXTRUDEDAREASOLID(#{first + 2},#{first + 4},#10,{z:.3f});
#{first + 6}=IFCSHAPEREPRESENTATION(#3,'Body','SweptSolid',(#{first + 5}));
#{first + 7}=IFCPRODUCTDEFINITIONSHAPE($,$,(#{first + 6}));
"""


def product(number: int, kind: str, name: str, shape: int, more: str, placement: int = 7) -> str:
    return f"#{number}={kind}('0bbbbbbbbbbbbbbbbbb{number:03}',$,{name},$,$,#{placement},#{shape}{more});\n"


def paint(first: int, solid: int, name: str, color: str, transparency: float = 0) -> str:
    return f"""#{first}=IFCCOLOURRGB($,{color});
#{first + 1}=IFCSURFACESTYLERENDERING(#{first},{transparency:.3f},$,$,$,$,$,$,.NOTDEFINED.);
#{first + 2}=IFCSURFACESTYLE('{name}',.BOTH.,(#{first + 1}));
#{first + 3}=IFCSTYLEDITEM(#{solid},(#{first + 2}),$);
"""


def contain(number: int, *products: int) -> str:
    listed = ",".join(f"#{each}" for each in products)
    return f"#{number}=IFCRELCONTAINEDINSPATIALSTRUCTURE('0cccccccccccccccccc{number:03}',$,$,$,({listed}),#8);\n"


def house(*entities: str) -> Source:
    return Source.from_bytes((_BEGIN + "".join(entities) + _END).encode(), "house.ifc")


WALL = ",$,.STANDARD."
SLAB = ",$,.FLOOR."

BRICK = house(
    box(20, 10, 20, 30),
    product(30, "IFCWALL", "'brick'", 27, WALL),
    paint(40, 25, "red", "1.,0.,0.", 0.25),
    contain(50, 30),
)

TWICE = house(
    box(20, 10, 20, 30),
    "#60=IFCREPRESENTATIONMAP(#2,#26);\n",
    "#61=IFCCARTESIANTRANSFORMATIONOPERATOR3D($,$,#1,$,$);\n#62=IFCMAPPEDITEM(#60,#61);\n",
    "#63=IFCSHAPEREPRESENTATION(#3,'Body','MappedRepresentation',(#62));\n#64=IFCPRODUCTDEFINITIONSHAPE($,$,(#63));\n",
    "#65=IFCSHAPEREPRESENTATION(#3,'Body','MappedRepresentation',(#62));\n#66=IFCPRODUCTDEFINITIONSHAPE($,$,(#65));\n",
    "#67=IFCCARTESIANPOINT((100.,0.,0.));\n#68=IFCAXIS2PLACEMENT3D(#67,$,$);\n#69=IFCLOCALPLACEMENT(#7,#68);\n",
    product(30, "IFCWALL", "'one'", 64, WALL),
    product(31, "IFCWALL", "$", 66, WALL, 69),
    contain(50, 30, 31),
)

WITH_OPENING = house(
    box(20, 1000, 100, 500),
    product(30, "IFCWALL", "'wall'", 27, WALL),
    box(70, 200, 300, 200, (400, -100, 100)),
    product(80, "IFCOPENINGELEMENT", "'hole'", 77, ",$,.OPENING."),
    "#81=IFCRELVOIDSELEMENT('0ddddddddddddddddddd81',$,$,$,#30,#80);\n",
    box(90, 800, 800, 500, (100, 100, 0)),
    product(98, "IFCSPACE", "'room'", 97, ",$,.ELEMENT.,.SPACE.,$"),
    contain(50, 30),
)
