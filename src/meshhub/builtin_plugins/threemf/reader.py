"""Reading 3MF: from the package to a scene of the parts that are built."""

from __future__ import annotations

from meshhub.builtin_plugins.threemf.reading.assemble import Assembly
from meshhub.builtin_plugins.threemf.reading.package import Package, is_sliced, no_model
from meshhub.model.capabilities import Frame, NoOptions
from meshhub.model.scene import Scene
from meshhub.model.source import Source


def read(source: Source, _options: NoOptions) -> Scene:
    """The printable objects of a 3MF file where the build places them, in the file's own unit.

    Raises UnreadableFile, UnsafeArchive, EmptyModel, ModelTooComplex.
    """
    with Package(source) as package:
        assembly = Assembly(package, package.model())
        root = assembly.root
        if not root.items and not root.objects and is_sliced(package.names):
            raise no_model(package.names)
        meshes, parts = assembly.build()
        return Scene(
            meshes,
            parts,
            materials=tuple(assembly.surfaces.materials),
            images=tuple(assembly.surfaces.images),
            frame=Frame(root.unit, "z"),
            name=root.metadata.get("Title", ""),
            metadata=root.metadata,
        )
