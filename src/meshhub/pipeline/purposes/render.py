"""Picture of one file, or of the scene before and after operations."""

from __future__ import annotations

from typing import cast

from msgspec import structs

from meshhub.errors import InvalidOption
from meshhub.model.capabilities import Format, Reader
from meshhub.model.chain import BUILT_IN, Render, Step
from meshhub.model.options import build_options
from meshhub.pipeline.declarations import Declarations, reference_of
from meshhub.pipeline.purpose import CheckedRequest, End, Options, Purpose
from meshhub.pipeline.steps import choose_options
from meshhub.toolkit.rendering.options import RenderOptions, parse_marks, parse_size, parse_views

_PNG = Format(id="png", label="PNG", extensions=(".png",), media_types=("image/png",))

_DRAW = Step(
    kind="render",
    id=_PNG.id,
    label=_PNG.label,
    because="a picture was requested",
    plugin="meshhub",
    run="meshhub.toolkit.rendering.picture:render",
    options_type=reference_of(RenderOptions),
    origin=BUILT_IN,
)
"""Step that no plug-in declares, without its options."""


class RenderPurpose(Purpose):
    """Draw the scene of a file."""

    options = RenderOptions
    output = _PNG
    # a picture does not show the feature table
    reads_features = False

    def check_options(self, options: Options) -> None:
        """Check the texts that have a form of their own."""
        picture = _build(options)
        parse_size(picture.size)
        parse_views(picture.view)
        parse_marks(picture.marks)

    def adapt_reading(self, declarations: Declarations, reader: Reader, options: Options) -> Options:
        """Add the options that make the reader color faces by surface, if the picture shows surfaces."""
        if _build(options).color_by != "surface":
            return options
        if "surfaces" not in reader.options_for:
            readers = (item.capability for item in declarations.readers)
            ids = sorted({other.format.id for other in readers if "surfaces" in other.options_for})
            listed = f" ({', '.join(ids)})" if ids else ""
            raise InvalidOption(
                f"option '{{color_by}}': surface needs a format with surfaces{listed}, and {reader.format.label} "
                "has only triangles; use part or model",
                options=("color_by",),
            )
        return {**options, **reader.options_for["surfaces"]}

    def make_end(self, checked: CheckedRequest, options: Options) -> End:
        """Draw the picture."""
        return (structs.replace(_DRAW, options=choose_options(RenderOptions, options)),), Render()


def _build(options: Options) -> RenderOptions:
    return cast(RenderOptions, build_options(RenderOptions, options))


PURPOSE = RenderPurpose("render")
