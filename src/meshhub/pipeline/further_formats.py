"""Formats that distributions of this repository read, for the error of a file that nothing here reads."""

from __future__ import annotations

_EXTENSIONS = {
    "meshhub-amf": ".amf",
    "meshhub-assimp": ".3ds .ac .ac3d .b3d .fbx .lwo .lxo .ms3d .x",
    "meshhub-cad": ".brep .brp .dxf .iges .igs .svg",
    "meshhub-collada": ".dae .zae",
    "meshhub-gcode": ".bgcode .g .gco .gcode",
    "meshhub-ifc": ".ifc",
    "meshhub-meshio": ".avs .bdf .ele .f3grid .inp .med .mesh .msh .su2 .vol .vtk .vtu .xdmf",
    "meshhub-off": ".off",
    "meshhub-rhino": ".3dm",
    "meshhub-usdz": ".usd .usda .usdc .usdz",
    "meshhub-x3d": ".wrl .wrz .x3d .x3dv .x3dvz .x3dz",
}
"""Extensions by distribution."""

DISTRIBUTIONS = {extension: name for name, extensions in _EXTENSIONS.items() for extension in extensions.split()}
"""Name of the distribution by extension."""
