"""COLLADA reader: the scene that the document instantiates."""

from __future__ import annotations

from meshhub import EmptyModel, NoOptions, Scene, Source
from meshhub.toolkit.names import single_line
from meshhub_collada.appearance import Appearance
from meshhub_collada.document import Document
from meshhub_collada.nodes import SceneBuilder

_METADATA = {
    "title": "title",
    "subject": "subject",
    "author": "contributor/author",
    "copyright": "contributor/copyright",
}
_MAX_TEXT_CHARACTERS_COUNT = 10_000
"""Maximum characters of a metadata value; copyright notices are shorter."""


def read(source: Source, options: NoOptions) -> Scene:  # noqa: ARG001
    """Read a COLLADA file, plain or in a ZIP archive.

    Returns:
        Scene in the unit and with the up axis of the file; X up becomes Y up.
    Raises:
        UnreadableFile: The file is damaged, or not COLLADA.
        UnsafeArchive: The archive exceeds a limit.
        EmptyModel: The scene has no triangles.
        ModelTooComplex: The scene has too many nodes, or the document too many elements.
    """
    document = Document(source)
    frame, matrix = document.frame()
    appearance = Appearance(document)
    builder = SceneBuilder(document, appearance)
    builder.build(matrix)
    if not builder.parts:
        raise EmptyModel("the scene of the file has no triangles; export the model again")
    asset = document.root.find("asset")
    texts = {key: "" if asset is None else asset.findtext(path) or "" for key, path in _METADATA.items()}
    metadata = {key: single_line(text[:_MAX_TEXT_CHARACTERS_COUNT]) for key, text in texts.items() if text.strip()}
    return Scene(
        tuple(builder.meshes),
        tuple(builder.parts),
        materials=tuple(appearance.materials),
        images=tuple(appearance.images),
        frame=frame,
        name=metadata.pop("title", ""),
        metadata=metadata,
    )
