"""Read 3MF: a scene of the parts that the build section places."""

from __future__ import annotations

from meshhub.builtin_plugins.threemf import THREEMF, ThreeMFReadOptions
from meshhub.builtin_plugins.threemf.reading.filaments import PaintMode
from meshhub.builtin_plugins.threemf.reading.package import Package, is_sliced, missing_model_error
from meshhub.builtin_plugins.threemf.reading.remapping import parse_mapping, remap_filaments
from meshhub.builtin_plugins.threemf.reading.scene_builder import SceneBuilder
from meshhub.builtin_plugins.threemf.reading.slicer_project import find_project_kinds
from meshhub.model.capabilities import Frame
from meshhub.model.destination import get_destination
from meshhub.model.notes import collecting, repeat
from meshhub.model.scene import Project, Scene
from meshhub.model.source import Source


def read(source: Source, options: ThreeMFReadOptions) -> Scene:
    """Read the printable objects of a 3MF file, in the unit of the file, where the build section places them.

    The filaments of a slicer's project become materials. Notes of a project apply only if the writer does not keep it.

    Raises:
        UnreadableFile: The file is damaged, encrypted, or made of an unsupported kind of geometry.
        UnsafeArchive: The archive exceeds a limit.
        EmptyModel: The build section places nothing that is printed.
        ModelTooComplex: The model has too many parts.
        InvalidOption: The filaments of the file cannot be renumbered as requested.
    """
    if options.threemf_remap_filaments:
        with Package(source) as package:
            source = remap_filaments(package, source.name, parse_mapping(options.threemf_remap_filaments))
    with Package(source) as package:
        root = package.find_model()
        with collecting(THREEMF.id) as remarks:
            # slicers paint inside triangles, other programs would get many more triangles
            default: PaintMode = "dominant" if get_destination().max_colors is None else "auto"
            builder = SceneBuilder(package, root, options.threemf_paint or default)
            scene = _build_scene(builder, package)
        kinds = find_project_kinds(package, scene.metadata)
    if kinds:
        return scene.with_project(Project(THREEMF.id, kinds, source, tuple(remarks.notes)))
    repeat(remarks.notes)
    return scene


def _build_scene(builder: SceneBuilder, package: Package) -> Scene:
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
