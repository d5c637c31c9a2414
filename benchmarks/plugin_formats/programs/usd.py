"""Let LightUSD, which shares no code with OpenUSD, extract what a stage shows."""

import lightusd
import numpy as np
from lightusd import tydra
from stl import place, write_stl


def read(source, target):
    stage = lightusd.load(source)
    scene = tydra.to_render_scene(stage)
    # classes are prototypes, which a renderer does not show
    classes = tuple(f"{node.prim_path}/" for node in scene.nodes if stage.prim_at(node.prim_path).specifier == "class")
    parts = []
    for node in scene.nodes:
        if node.type == "mesh" and node.visible and not node.prim_path.startswith(classes):
            mesh = scene.meshes[node.data_id]
            faces = np.asarray(mesh.triangulated_indices).reshape(-1, 3).astype("i8")
            parts.append(place(np.asarray(mesh.points, float), faces, np.array(node.world_transform).T))
    write_stl(target, parts)
