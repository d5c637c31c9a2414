"""Preview of one file: a GLB with few triangles, its defects and its facts."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, structs

from meshhub.model.chain import BUILT_IN, Preview, Step
from meshhub.model.plans import Caller
from meshhub.pipeline.declarations import Declarations, reference_of
from meshhub.pipeline.purpose import CheckedRequest, End, Options, Purpose, Writers
from meshhub.pipeline.steps import choose_options, find_writer, make_step, make_write
from meshhub.toolkit.rendering.options import Limit

_FORMAT = "glb"
"""Id of the format that previews have."""


class PreviewOptions(Struct, frozen=True, kw_only=True):
    """Options of a preview."""

    max_triangles: Annotated[
        int,
        Meta(
            title="Most triangles",
            description="A model with more is reduced to this number by merging vertices that are close together.",
            ge=1000,
            le=2_000_000,
        ),
    ] = 100_000

    color_by: Annotated[
        Literal["model", "thickness", "overhang"],
        Meta(
            title="Colors",
            description=(
                "model shows the colors, materials and textures of the file; thickness of walls and overhang are "
                "scales, which the facts describe."
            ),
        ),
    ] = "model"

    color_limit: Limit | None = None


_REDUCE = Step(
    kind="preview",
    id="preview",
    label="preview",
    because="a preview was requested",
    plugin="meshhub",
    run="meshhub.pipeline.preview:reduce_scene",
    options_type=reference_of(PreviewOptions),
    origin=BUILT_IN,
)
"""Step that no plug-in declares, without its options."""


class PreviewPurpose(Purpose):
    """Write a reduced scene with its defects, after the operations."""

    options = PreviewOptions
    target_field = "optional"

    def choose_writers(self, declarations: Declarations, target: str, caller: Caller) -> Writers:
        """Return the writer of previews, and that of the target, whose file is measured."""
        writer = find_writer(declarations, _FORMAT, caller)
        return writer, find_writer(declarations, target, caller) if target else None

    def make_end(self, checked: CheckedRequest, options: Options) -> End:
        """Write the file of the target, if it is measured; reduce the scene, and write it."""
        assert checked.writer is not None
        reduce = structs.replace(_REDUCE, options=choose_options(PreviewOptions, options))
        show = make_step("write", checked.writer, _REDUCE.because, options)
        if checked.measured is None:
            return (reduce, show), Preview()
        write, file = make_write(checked.target, checked.measured, options)
        return (write, reduce, show), Preview(file)


PURPOSE = PreviewPurpose("preview")
