"""Figures, notes and errors about written products."""

from __future__ import annotations

from typing import NamedTuple

from meshhub.builtin_plugins.step.draft import Rejections
from meshhub.builtin_plugins.step.kernel.kernel_check import FaceCorners
from meshhub.builtin_plugins.step.kernel.kernel_comparison import GAPS, ExpectedBody
from meshhub.builtin_plugins.step.part21.document import ProductIds
from meshhub.errors import ConversionFailed
from meshhub.model.notes import advise_reduction, did, note

DEVIATION, HAUSDORFF, RMS = "max_deviation_mm", "hausdorff_mm", "rms_mm"
_MAX_REASONS_COUNT = 2
"""Reasons in a note; a third one is rare."""
_MANY_TIMES_RATIO = 3.0
"""Faces over those with all recognized surfaces, above which the note states both."""
_MAX_GAINED_RATIO = 0.005
"""Share of the volume of a mesh by which that of its file may differ without a note; a ring of 36 facets gains it."""
_MAX_FREEFORM_GAINED_RATIO = 0.0005
"""The same if the file has free-form faces, because only the facets around them determine their curvature."""
MANY_FACES_COUNT = 20_000
"""Faces beyond which CAD programs are slow: OpenCASCADE takes about a millisecond and 20 KB to read each."""


class WrittenProduct(NamedTuple):
    """A product in the file.

    name:        for notes
    ids:         of the product
    uses:        number of its instances
    bodies:      its solids in file order, then its open shells
    shell_count: shells of its mesh
    figures:     for the report; they count every instance, except for faces
    rejected:    curved surfaces that were given up
    flat_count:  facets of these that are flat
    noise_mm:    mm, deviation of the noise that was smoothed; zero where it was not
    triangles:   number of triangles of its mesh
    facets:      those that are faces by themselves, see `beginnings.count_facets`
    is_searched: whether surfaces were fitted to its smooth regions
    """

    name: str
    ids: ProductIds
    uses: int
    bodies: list[ExpectedBody]
    shell_count: int
    figures: dict[str, int | float]
    rejected: Rejections
    flat_count: int
    noise_mm: float
    triangles: int
    facets: int
    is_searched: bool

    @property
    def volumes(self) -> list[float]:
        """Expected volumes of its solids, mm³."""
        return [body.volume_mm3 for body in self.bodies if body.volume_mm3 is not None]


class Fault(NamedTuple):
    """A body that OpenCASCADE rejects, or that fails the check without it.

    shape:  index of its shape
    faulty: corners of each face that OpenCASCADE finds invalid
    """

    shape: int
    body: ExpectedBody
    reason: str
    faulty: tuple[FaceCorners, ...] = ()

    @property
    def is_invalid(self) -> bool:
        """Whether the body is invalid; a valid one may leave gaps when it becomes triangles."""
        return self.reason != GAPS


def report_products(written: list[WrittenProduct]) -> None:
    """Report figures, open shells, changed volumes and many faces."""
    # the figures of several products are added, except for distances
    areas = [product.figures["mesh_area_mm2"] for product in written]
    squares = sum(area * product.figures[RMS] ** 2 for area, product in zip(areas, written, strict=True))
    did(**{name: max(product.figures[name] for product in written) for name in (DEVIATION, HAUSDORFF)})
    did(**{RMS: (squares / sum(areas)) ** 0.5})
    for product in written:
        did(**{name: value for name, value in product.figures.items() if name not in (DEVIATION, HAUSDORFF, RMS)})
        sheets, faces = product.figures["open_shells"] // product.uses, product.figures["faces"]
        if sheets:
            note(
                "open_surface",
                f"{sheets} of {product.shell_count} shells are open or have no volume and became surfaces, not solids; "
                "{repair} closes holes",
                options=("repair",),
            )
        _note_gain(product)
        if faces > MANY_FACES_COUNT:
            advice, options = advise_reduction()
            note(
                "many_faces",
                f"the STEP file has {faces} faces, which makes CAD programs slow; {advice}",
                options=options,
                count=faces,
            )


def reject_invalid(products: list[WrittenProduct | None], faults: list[Fault]) -> None:
    """Raise an error if a solid is invalid; open shells are not solids."""
    invalid = [fault for fault in faults if fault.is_invalid and fault.body.volume_mm3 is not None]
    if invalid:
        count = sum(body.volume_mm3 is not None for product in products if product for body in product.bodies)
        raise ConversionFailed(
            f"{len(invalid)} of {count} bodies are not valid solids in STEP ({invalid[0].body.name}: "
            f"{invalid[0].reason}); use {{repair}}, or set {{step_invalid=keep}}",
            error_code="invalid_solid",
            options=("repair", "step_invalid"),
        )


def note_rejected(product: WrittenProduct) -> None:
    """Report the curved surfaces that were recognized, but not written, and the most frequent reasons."""
    rejected, faces = product.rejected, int(product.figures["faces"])
    lost, kept = rejected.reasons.total(), faces - int(product.figures["planes"])
    if not lost:
        return
    total = lost + kept - min(rejected.pieces_count, kept)
    listed = ", ".join(f"{count} ({reason})" for reason, count in rejected.reasons.most_common(_MAX_REASONS_COUNT))
    expected = faces - product.flat_count + lost
    message = f"{product.name!r} has simpler faces in place of {lost} of {total} curved ones: {listed}"
    if product.flat_count:
        message += f", flat facets: {product.flat_count}"
    if faces > _MANY_TIMES_RATIO * expected:
        message += f", {faces} faces instead of about {expected}"
    note("flat_faces", message, name=repr(product.name), count=lost, total=total, facets=product.flat_count)


def note_smoothed(product: WrittenProduct) -> None:
    """Report that the surfaces of a product were fitted to a noisy mesh."""
    if product.noise_mm:
        note(
            "noise_smoothed",
            f"{product.name!r} is noisy, or triangulated irregularly, by about {product.noise_mm:.2g} mm: surfaces "
            "were fitted to its smooth regions, and radii and angles rounded within this noise; set "
            "{step_surfaces=planar} to keep the triangles",
            options=("step_surfaces",),
            name=repr(product.name),
            noise=product.noise_mm,
        )


def note_facets(product: WrittenProduct) -> None:
    """Report that most of a product has no surfaces, and why."""
    # rejected surfaces have a note of their own
    if not product.facets or product.rejected.reasons:
        return
    facets = f"{product.facets} of {product.triangles} triangles of {product.name!r} stay flat facets"
    if product.is_searched:
        note(
            "free_form_facets",
            f"{facets}: no surface fits them; the model is free-form, or noisier than its features",
            count=product.facets,
            total=product.triangles,
            name=repr(product.name),
        )
    else:
        advice, options = advise_reduction()
        note(
            "unsearched_facets",
            f"{facets}: the mesh is too large, or the time too short, for the search in noisy meshes; {advice}",
            options=options,
            count=product.facets,
            total=product.triangles,
            name=repr(product.name),
        )


def note_faults(faults: list[Fault]) -> None:
    """Report bodies that are invalid, or that leave gaps as triangles."""
    for fault in faults:
        if fault.is_invalid:
            note(
                "invalid_solid",
                f"{fault.body.name} is invalid in the STEP file: {fault.reason}; use {{repair}}",
                options=("repair",),
                name=fault.body.name,
            )
        else:
            note(
                "gaps_as_triangles",
                f"{fault.body.name} is a valid solid in the STEP file, but {fault.reason}: slicers may show holes; "
                "set {step_surfaces=planar} if they do",
                options=("step_surfaces",),
                name=fault.body.name,
            )


def _note_gain(product: WrittenProduct) -> None:
    """Report a volume that differs from that of the mesh."""
    gained, volume = product.figures["volume_gained_mm3"], product.figures["mesh_volume_mm3"]
    allowed = _MAX_FREEFORM_GAINED_RATIO if product.figures.get("bsplines") else _MAX_GAINED_RATIO
    if abs(gained) > allowed * abs(volume):
        percent = f" ({gained / volume:+.2%})" if volume else ""
        note(
            "volume_changed",
            f"round surfaces change the volume of {product.name!r} by {gained / product.uses:+.4g} mm³{percent}; "
            "set {step_surfaces=planar} to keep the facets",
            options=("step_surfaces",),
            name=repr(product.name),
            volume=gained / product.uses,
        )
