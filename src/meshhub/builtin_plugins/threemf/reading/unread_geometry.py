"""Geometry of 3MF extensions that is not read: slices, volumetric functions and others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from meshhub.builtin_plugins.threemf.reading.model_document import (
    BALLS,
    BEAM_LATTICE,
    CORE,
    MATERIAL,
    PRODUCTION,
    SLICE,
    ModelObject,
)
from meshhub.errors import UnreadableFile, quote
from meshhub.model.notes import note

_GEOMETRY_EXTENSIONS = {
    "beamlattice": "Beam Lattice",
    "booleanoperations": "Boolean Operations",
    "displacement": "Displacement",
    "implicit": "Implicit",
    "securecontent": "Secure Content",
    "volumetric": "Volumetric",
}
_SUPPORTED = CORE | {MATERIAL, PRODUCTION, SLICE, BEAM_LATTICE, BALLS}
_HARMLESS = ("/slice/", "/trianglesets/", "/production/")
_SLICES = "slices"


class UnreadGeometry:
    """Counts the objects with geometry that is not read, for one note for each kind."""

    def __init__(self) -> None:
        """Start without objects."""
        self._left_out: Counter[str] = Counter()
        self._beside: Counter[str] = Counter()
        self._coarse_count = 0

    def record(self, model_object: ModelObject, *, has_triangles: bool) -> None:
        """Count the geometry of an object; one without triangles is not read at all."""
        kinds = sorted({_name_extension(name) for name in model_object.foreign if _is_geometry(name)})
        if model_object.has_slices:
            kinds.append(_SLICES)
        if has_triangles:
            self._coarse_count += model_object.is_low_resolution
            self._beside.update(kinds)
        else:
            self._left_out.update(kinds[:1])

    def reject(self) -> None:
        """Reject a model without triangles whose objects have other geometry.

        Raises:
            UnreadableFile: An object was left out.
        """
        if self._left_out:
            kinds = " and ".join(map(_describe, sorted(self._left_out)))
            raise UnreadableFile(
                f"the model has no triangles, only {kinds}, which cannot be read; export it as triangles"
            )

    def note_losses(self) -> None:
        """Add a note for each kind of geometry that was not read."""
        if self._left_out:
            counts = ", ".join(f"{_describe(kind)}: {count}" for kind, count in sorted(self._left_out.items()))
            note(
                "objects_without_triangles",
                f"objects without triangles were left out ({counts}); export them as triangles",
            )
        if self._coarse_count:
            note(
                "low_resolution_mesh",
                "the file stores its fine shape as slices; only its coarse mesh was read; export a fine mesh",
            )
        for kind, count in sorted(self._beside.items()):
            objects = f"{count} object" + "s" * (count != 1)
            if kind != _SLICES:
                note(
                    "extension_ignored",
                    f"{_describe(kind)} beside the triangles of {objects} was not read; export it as triangles, too",
                )
            elif not self._coarse_count:
                note(
                    "slices_ignored",
                    f"slices of {objects} were not read, only the triangles; "
                    "if the slices have more details, export a finer mesh",
                )


def note_required_extensions(required: Mapping[str, str]) -> None:
    """Add a note for each unsupported extension that a file requires; its triangles are read.

    Args:
        required: Namespace of each required extension, by prefix.
    """
    for prefix, namespace in sorted(required.items()):
        if namespace not in _SUPPORTED and not any(part in namespace for part in _HARMLESS):
            note(
                "unknown_required_extension",
                f"the file requires the unsupported 3MF extension {_name_extension(namespace)} "
                f"({quote(prefix)}); only its plain triangles were read",
                name=quote(prefix),
            )


def _describe(kind: str) -> str:
    return kind if kind == _SLICES else f"{kind} geometry"


def _is_geometry(namespace: str) -> bool:
    return any(f"/{key}/" in namespace for key in _GEOMETRY_EXTENSIONS)


def _name_extension(namespace: str) -> str:
    """Return the name of an extension, or its quoted namespace."""
    labels = (label for key, label in _GEOMETRY_EXTENSIONS.items() if f"/{key}/" in namespace)
    return next(labels, None) or repr(namespace[-80:])
