"""Let MeshLab read a file."""

import pymeshlab
from stl import write_stl


def read(source, target):
    meshes = pymeshlab.MeshSet()
    meshes.load_new_mesh(source)
    meshes.generate_by_merging_visible_meshes()
    mesh = meshes.current_mesh()
    write_stl(target, [(mesh.vertex_matrix(), mesh.face_matrix().astype("i8"))])
