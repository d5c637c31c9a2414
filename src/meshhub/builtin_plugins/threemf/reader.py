"""Read 3MF: a scene of the parts that the build section places."""

from __future__ import annotations

from meshhub.builtin_plugins.threemf import ThreeMFReadOptions
from meshhub.builtin_plugins.threemf.reading.package import Package, is_sliced, missing_model_error
from meshhub.builtin_plugins.threemf.reading.scene_builder import SceneBuilder
from meshhub.model.capabilities import Frame
from meshhub.model.scene import Scene
from meshhub.model.source import Source


def read(source: Source, options: ThreeMFReadOptions) -> Scene:
    """Read the printable objects of a 3MF file, in the unit of the file, where the build section places them.

    The filaments of a slicer's project become materials.

    Raises:
        UnreadableFile: The file is damaged, encrypted, or made of an unsupported kind of geometry.
        UnsafeArchive: The archive exceeds a limit.
        EmptyModel: The build section places nothing that is printed.
        ModelTooComplex: The model has too many parts.
    """
    with Package(source) as package:
        builder = SceneBuilder(package, package.find_model(), options.threemf_paint)
        root = builder.root
        if not root.items and not root.objects and is_sliced(package.names):
            raise missing_model_error(package.names)
        meshes, parts = builder.build()
        return Scene(
            meshes,
            parts,
            materials=tuple(builder.properties.materials),
            images=tuple(builder.properties.images),
            frame=Frame(root.unit, "z"),
            name=root.metadata.get("Title", ""),
            metadata=root.metadata,
        )
