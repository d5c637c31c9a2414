"""Which open shells are sheets, such as a terrain or a label, and which are bodies with missing faces."""

# why this way: docs/decisions/0012-sheets-and-cavities.md
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshhub.builtin_plugins.repair.loops import Loops, Patches
from meshhub.builtin_plugins.repair.planar import FLATNESS_RATIO, fit_planes
from meshhub.builtin_plugins.repair.welded_mesh import WeldedMesh
from meshhub.model.scene import Float64
from meshhub.toolkit import topology
from meshhub.toolkit.geometry import face_normals, unit_vectors
from meshhub.toolkit.sheets import MAX_SHARP_COSINE, find_rolls

MAJORITY = 0.8
"""Share of a whole at which a rule holds for it: sheets of a part, a rim at an angle, patches in planes of a tube.
The rest may be chamfers, notches and small holes. Patches with this share of a shell's area may enclose nothing.
"""

MIN_HEIGHT_FIELD_RATIO = 0.5
"""Area of the patches per area of a height field: slopes of 60° on average."""

MIN_RELIEF_FACES = 32
"""Faces of a height field; with fewer, ridges and valleys are those of a box with a notch."""

MINOR_SHARE = 0.25
"""Two limits of a height field. With a hole that is larger than this share of the rim, it is a band around something.
With fewer ridges or valleys among its bends, it is not a relief: a dome has only ridges.
"""

UNEVENNESS = 0.02
"""Deviation of a scan from a plane: of the rim per its size, of unit normals (1°), and of the share of the area that
folds over the rest, seen along the normal.
"""

MAX_UPRIGHT_COSINE = 0.55
"""Cosine of the angle between a face at the rim and its patch; a wall stands upright, within 33°."""

MIN_FOLDED_COSINE = -0.87
"""Cosine below which a patch lies on its neighbor, within 30°: the flat rim of a relief."""

MIN_FILLING_RATIO = 0.85
"""Volume of the closed shell per area and depth of its opening: 1 for a tray, 0.7 for an arch, 0.5 for a dome."""

MAX_PLANES = 3
"""Planes of the missing faces of a body: a tray without its top and two of its walls."""

MIN_PLANAR_SHARE = 0.95
"""Share of the area of the patches that is in these planes."""

MIN_SHARP_RATIO = 0.6
"""Length of sharp edges per length of the rim; 0.7 for a tray without top and wall, at most 0.5 for a bent sheet."""

MIN_PATCH_RATIO = 1e-6
"""Twice the area of a patch per square of its edge at the rim, from which its normal is known."""


class Bends(NamedTuple):
    """Edges between the faces of a shell.

    length:    (k,) length
    cosine:    (k,) cosine of the angle between the normals
    is_valley: (k,) whether the edge is concave, seen from outside
    """

    length: Float64
    cosine: Float64
    is_valley: NDArray[np.bool_]


class Shells:
    """Open shells of a mesh, and the patches that would close them.

    rim:       (n,) length of the edge that begins at each position of the loops; 0 if its angle to the patch is unknown
    rim_shell: (n,) its shell
    cosine:    (n,) cosine of the angle between its face and its patch; 1 where the patch continues the face
    """

    def __init__(self, surface: WeldedMesh, loops: Loops, patches: Patches, flatness: float) -> None:
        self.surface, self.loops = surface, loops
        self.normal = face_normals(surface.points, surface.faces)
        self.points: Float64 = surface.points[loops.point]
        plane_normal, _, self.is_flat = fit_planes(self.points, loops.begin, flatness)
        self.loop = np.repeat(np.arange(len(loops.begin) - 1), np.diff(loops.begin))
        self.loop_shell = surface.shell[loops.neighbor[loops.begin[:-1]]]
        self.rim_shell = self.loop_shell[self.loop]
        after = np.arange(len(self.points)) + 1
        after[loops.begin[1:] - 1] = loops.begin[:-1]
        self.rim = np.linalg.norm(self.points[after] - self.points, axis=1)
        corners = self.points[patches.triangle]
        self.patch_normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        self.patch_shell = surface.shell[loops.neighbor[patches.triangle[:, 0]]]
        owner = np.full(len(self.points), -1, np.intp)
        for corner in range(3):
            begin, end = patches.triangle[:, corner], patches.triangle[:, (corner + 1) % 3]
            at_rim = np.flatnonzero(after[begin] == end)
            owner[begin[at_rim]] = at_rim
        area_normal = self.patch_normal[owner] * (owner >= 0)[:, None]
        # in an uneven rim, and between points on a line, the triangles at the rim face anywhere
        plane = plane_normal[self.loop]
        side = np.sign(np.bincount(self.loop, np.einsum("ij,ij->i", area_normal, plane)))[self.loop]
        is_flat = self.is_flat[self.loop]
        normal = np.where(is_flat[:, None], plane * side[:, None], unit_vectors(area_normal))
        is_thin = np.linalg.norm(area_normal, axis=1) <= MIN_PATCH_RATIO * self.rim**2
        self.rim[is_thin & ~is_flat] = 0
        self.cosine = np.einsum("ij,ij->i", unit_vectors(self.normal[loops.neighbor]), normal)


def find_sheets(surface: WeldedMesh, loops: Loops, patches: Patches) -> NDArray[np.bool_]:
    """Return which shells stay open because they are sheets: their patches are large, and they are no body with a hole.

    A shell may enclose nothing if its patches are as large as the shell itself. So may a height field over a free rim;
    its patches are smaller than the shell, because its slopes are steep. The same applies to a rolled strip.
    """
    # a thin tray without top and wall has a rim that is nearly flat, but not as that of a scan
    views = [Shells(surface, loops, patches, flatness) for flatness in (FLATNESS_RATIO, UNEVENNESS)]
    shells = views[0]
    count = surface.shell_count
    own_area = np.bincount(surface.shell, np.linalg.norm(shells.normal, axis=1), minlength=count)
    patch_area = np.bincount(shells.patch_shell, np.linalg.norm(shells.patch_normal, axis=1), minlength=count)
    is_sheet = (patch_area > MIN_HEIGHT_FIELD_RATIO * own_area) & (own_area > 0)
    for shell in np.flatnonzero(is_sheet).tolist():
        is_large = patch_area[shell] > MAJORITY * own_area[shell]
        is_sheet[shell] = (is_large or _is_height_field(shells, shell)) and not any(
            _is_body(view, shell) for view in views
        )
    is_sheet |= find_rolls(surface.points, surface.faces, surface.shell, count)
    if own_area[is_sheet].sum() <= MAJORITY * own_area.sum():
        is_sheet[:] = False
    return is_sheet


def _is_body(shells: Shells, shell: int) -> bool:
    """Return whether a shell is a body with missing faces: upright walls are around a cavity, or it is equally deep.

    The missing faces are flat: they are in the planes of the loops, or in a few planes, as those of a tray without its
    top and a wall. A tube has openings in several planes. A label that is bent to half a tube also has an upright rim,
    but it has no sharp edges.
    """
    of_rim = shells.rim_shell == shell
    rim = shells.rim[of_rim]
    cosine = shells.cosine[of_rim]
    needed = MAJORITY * float(rim.sum())
    is_upright = float(rim[np.abs(cosine) <= MAX_UPRIGHT_COSINE].sum()) >= needed
    if float(rim[shells.is_flat[shells.loop[of_rim]]].sum()) >= needed:
        is_folded = float(rim[cosine >= MIN_FOLDED_COSINE].sum()) < needed
        is_tube = _count_planes(shells, shell, MAJORITY) > 1
        return is_upright or (not is_folded and (is_tube or _measure_filling(shells, shell) >= MIN_FILLING_RATIO))
    if not is_upright or _count_planes(shells, shell, MIN_PLANAR_SHARE) > MAX_PLANES:
        return False
    return _measure_sharp_edges(shells, shell) >= MIN_SHARP_RATIO * float(rim.sum())


def _measure_filling(shells: Shells, shell: int) -> float:
    """Return the volume of a closed shell per area and depth of its opening, if that is in one plane; otherwise 0."""
    normal = shells.patch_normal[shells.patch_shell == shell]
    doubled = float(np.linalg.norm(normal, axis=1).sum())
    total = normal.sum(axis=0)
    length = float(np.linalg.norm(total))
    if length < (1 - UNEVENNESS) * doubled or length == 0:
        return 0.0
    chosen = shells.surface.shell == shell
    corners = shells.surface.points[shells.surface.faces[chosen]]
    corners = corners - shells.points[shells.rim_shell == shell].mean(axis=0)
    volume = abs(float(np.einsum("ij,ij->i", corners[:, 0], shells.normal[chosen]).sum())) / 6
    depth = float(np.abs(corners @ (total / length)).max())
    return volume / (depth * length / 2) if depth > 0 else 0.0


def _count_planes(shells: Shells, shell: int, share: float) -> int:
    """Return the least number of planes that hold a share of the area of the patches of a shell."""
    normal = shells.patch_normal[shells.patch_shell == shell]
    doubled = np.linalg.norm(normal, axis=1)
    _, plane = np.unique(np.round(unit_vectors(normal) / UNEVENNESS), axis=0, return_inverse=True)
    areas = np.sort(np.bincount(plane.reshape(-1), doubled))[::-1]
    return int(np.searchsorted(np.cumsum(areas), share * doubled.sum())) + 1


def _measure_sharp_edges(shells: Shells, shell: int) -> float:
    """Return the length of the sharp edges of a shell."""
    bends = _list_bends(shells, shell)
    return float(bends.length[bends.cosine < MAX_SHARP_COSINE].sum())


def _is_height_field(shells: Shells, shell: int) -> bool:
    """Return whether a shell is a relief over a plane: seen from one side without overlap, with one large border.

    A dome, a bowl and half a box also look like this, but they curve one way only, or are upright at the rim.
    """
    chosen = shells.surface.shell == shell
    if chosen.sum() < MIN_RELIEF_FACES:
        return False
    total = shells.normal[chosen].sum(axis=0)
    length = float(np.linalg.norm(total))
    if length < (1 - UNEVENNESS) * np.abs(shells.normal[chosen] @ total / max(length, 1e-300)).sum():
        return False
    at_rim = shells.rim_shell == shell
    slope = unit_vectors(shells.normal[shells.loops.neighbor[at_rim]]) @ total
    rim = shells.rim[at_rim]
    if rim[np.abs(slope) <= MAX_UPRIGHT_COSINE * length].sum() >= MAJORITY * rim.sum():
        return False
    begin = shells.loops.begin
    extents = np.array(
        [
            np.linalg.norm(np.ptp(shells.points[begin[loop] : begin[loop + 1]], axis=0))
            for loop in np.flatnonzero(shells.loop_shell == shell)
        ]
    )
    largest = int(extents.argmax())
    if (np.delete(extents, largest) > MINOR_SHARE * extents[largest]).any():
        return False
    return _curves_both_ways(shells, shell)


def _curves_both_ways(shells: Shells, shell: int) -> bool:
    """Return whether both ridges and valleys are a large share of a shell's bends."""
    bends = _list_bends(shells, shell)
    bend = np.sqrt(np.maximum(1 - bends.cosine**2, 0)) * bends.length
    share = float(bend[bends.is_valley].sum()) / max(float(bend.sum()), 1e-300)
    return MINOR_SHARE < share < 1 - MINOR_SHARE


def _list_bends(shells: Shells, shell: int) -> Bends:
    surface = shells.surface
    half_a, half_b = topology.edges(surface.faces).pairs()
    kept = surface.shell[half_a // 3] == shell
    half_a, half_b = half_a[kept], half_b[kept]
    begin, end = (surface.points[points[half_a]] for points in topology.half_edges(surface.faces))
    unit = unit_vectors(shells.normal)
    across = surface.points[surface.faces.ravel()[topology.preceding(half_b)]] - begin
    return Bends(
        np.linalg.norm(end - begin, axis=1),
        np.einsum("ij,ij->i", unit[half_a // 3], unit[half_b // 3]),
        np.einsum("ij,ij->i", across, unit[half_a // 3]) > 0,
    )
