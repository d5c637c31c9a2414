"""Let Blender 4.5, whose reader of FBX is ufbx, read a file."""

import bpy
import numpy as np
from stl import place, write_stl


def read(source, target):
    bpy.ops.wm.read_factory_settings(use_empty=True)
    if source.lower().endswith(".dae"):
        bpy.ops.wm.collada_import(filepath=source)
    else:
        bpy.ops.wm.fbx_import(filepath=source, use_anim=False)
    parts = []
    for item in bpy.context.scene.objects:
        if item.type == "MESH":
            mesh = item.data
            mesh.calc_loop_triangles()
            points, faces = np.empty(3 * len(mesh.vertices)), np.empty(3 * len(mesh.loop_triangles), "i4")
            mesh.vertices.foreach_get("co", points)
            mesh.loop_triangles.foreach_get("vertices", faces)
            parts.append(place(points.reshape(-1, 3), faces.reshape(-1, 3).astype("i8"), np.array(item.matrix_world)))
    write_stl(target, parts)
