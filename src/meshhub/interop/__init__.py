"""Convert scenes from and to other libraries: numpy arrays, trimesh, meshio, PyVista, Open3D.

Each function imports its library when it is called; meshhub depends on none of them. Libraries without units receive
the coordinates unchanged: millimeters, Z up, for scenes from `Registry.read`.

| library | parts, names | transforms | vertex colors | texture, UV | unit |
| --- | --- | --- | --- | --- | --- |
| arrays | – | applied | – | – | – |
| trimesh | yes | yes | yes | yes | yes |
| meshio | – | applied | yes | – | – |
| PyVista | yes | applied | yes | yes | – |
| Open3D | yes | applied | yes | yes | – |
"""

from __future__ import annotations

from meshhub.interop.arrays import from_arrays as from_arrays
from meshhub.interop.arrays import to_arrays as to_arrays
from meshhub.interop.meshio import from_meshio as from_meshio
from meshhub.interop.meshio import to_meshio as to_meshio
from meshhub.interop.open3d import from_open3d as from_open3d
from meshhub.interop.open3d import to_open3d as to_open3d
from meshhub.interop.pyvista import from_pyvista as from_pyvista
from meshhub.interop.pyvista import to_pyvista as to_pyvista
from meshhub.interop.trimesh import from_trimesh as from_trimesh
from meshhub.interop.trimesh import to_trimesh as to_trimesh
