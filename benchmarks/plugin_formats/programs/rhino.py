"""Let rhino3dm list the meshes of a file, and place those of blocks."""

import numpy as np
import rhino3dm
from stl import place, write_stl


def read(source, target):
    model = rhino3dm.File3dm.Read(source)
    items = {str(item.Attributes.Id): item for item in model.Objects}
    definitions = {str(each.Id): [str(number) for number in each.GetObjectIds()] for each in model.InstanceDefinitions}
    inside = {number for numbers in definitions.values() for number in numbers}
    parts = []

    def collect(item, matrix):
        if isinstance(item.Geometry, rhino3dm.InstanceReference):
            rows = np.array(item.Geometry.Xform.ToFloatArray(True)).reshape(4, 4)
            for number in definitions[str(item.Geometry.ParentIdefId)]:
                collect(items[number], matrix @ rows)
        else:
            parts.extend(place(*split_mesh(mesh), matrix) for mesh in find_meshes(item.Geometry) if mesh is not None)

    for number, item in items.items():
        layer = item.Attributes.LayerIndex
        is_shown = not 0 <= layer < len(model.Layers) or model.Layers[layer].Visible
        if number not in inside and item.Attributes.Visible and is_shown:
            collect(item, np.eye(4))
    write_stl(target, parts)


def find_meshes(geometry):
    if isinstance(geometry, rhino3dm.Brep):
        return [geometry.Faces[k].GetMesh(rhino3dm.MeshType.Any) for k in range(len(geometry.Faces))]
    if isinstance(geometry, rhino3dm.Extrusion):
        return [geometry.GetMesh(rhino3dm.MeshType.Any)]
    return [geometry] if isinstance(geometry, rhino3dm.Mesh) else []


def split_mesh(mesh):
    points = np.array([(each.X, each.Y, each.Z) for each in mesh.Vertices]).reshape(-1, 3)
    quads = np.array([mesh.Faces[k] for k in range(len(mesh.Faces))], "i8").reshape(-1, 4)
    return points, np.concatenate([quads[:, :3], quads[quads[:, 2] != quads[:, 3]][:, [0, 2, 3]]])
