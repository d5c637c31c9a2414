/** Planes at which the next conversion cuts the model. */

import { computed } from "@preact/signals";

import { fitsIn, isBesideTooLarge, needsFurtherCuts, planCuts, readBed, type Spans } from "../bed-cuts";
import { isDividedBefore } from "../chain";
import { readPlanes, toPosition, writePlanes, type CutPlane } from "../cut-planes";
import { formatNumber } from "../i18n";
import { isPoseKnown, readPose } from "../pose";
import { isSet } from "../settings";
import { setOptions, settings } from "../state/form";
import { active } from "../state/items";
import { supported } from "../state/service";
import type { Cut } from "../viewer/marks";
import { plannedPose, posed, spanOf, viewOptions } from "./view-state";

export const BED_CUTS = "split_for_bed_cuts";

export interface Cuts {
  planes: readonly CutPlane[];
  /** Whether the service chooses them. */
  isPlanned: boolean;
}

/** Planes of one option. */
export interface CutGroup extends Cuts {
  option: string;
  /** Planes beside a piece that is larger than the bed. */
  warned: ReadonlySet<CutPlane>;
}

/** Extents of the model that is cut; null where the view shows it in another pose. */
export const spans = computed((): Spans | null => {
  const { options } = settings.value;
  const shown = posed.value;
  const isInPose =
    plannedPose.value !== null || (isPoseKnown(options) && readPose(options, supported.value?.printers) === null);
  if (!shown || viewOptions.value.mode !== "before" || !isInPose) return null;
  return [spanOf(shown, 0), spanOf(shown, 1), spanOf(shown, 2)];
});

/** Whether the model is one body, so that its extents are those of what is cut. */
const isOneBody = computed(() => {
  const model = active.value?.facts?.inspection.model;
  const capabilities = supported.value;
  const isOne = model?.parts === 1 && model.bodies === 1;
  return isOne && capabilities !== null && !isDividedBefore(BED_CUTS, settings.value, capabilities);
});

/** Cuts for the bed of the settings; null without a bed. */
export const bedCuts = computed(() => {
  const { options } = settings.value;
  const bed = readBed(options, supported.value?.printers);
  if (!bed) return null;
  const extents = isOneBody.value ? spans.value : null;
  const isPlanned = !isSet(options[BED_CUTS]);
  const requested = readPlanes(String(options[BED_CUTS] ?? ""));
  const planes = isPlanned && extents ? planCuts(bed, extents) : requested;
  return {
    planes,
    isPlanned,
    fits: extents !== null && fitsIn(bed, extents),
    // The service rejects a text that cannot be read, and cuts nothing.
    needsMore: !isPlanned && planes.length > 0 && extents !== null && needsFurtherCuts(planes, bed, extents),
    warned: new Set(extents ? planes.filter((plane) => isBesideTooLarge(plane, planes, bed, extents)) : []),
  };
});

/** Planes that the view shows, by option. */
export const cutGroups = computed((): CutGroup[] => {
  if (!spans.value) return [];
  const planes = readPlanes(String(settings.value.options["cut_plane"] ?? ""));
  const scene: CutGroup = { option: "cut_plane", planes, isPlanned: false, warned: new Set() };
  const forBed = bedCuts.value;
  return forBed && !forBed.fits ? [scene, { option: BED_CUTS, ...forBed }] : [scene];
});

/** The same as the view draws them. */
export const shownCuts = computed((): Cut[] =>
  cutGroups.value.flatMap(({ planes }) =>
    planes.flatMap((plane) => {
      const span = spans.value?.["xyz".indexOf(plane.axis)];
      return span ? { axis: plane.axis, at: toPosition(plane, span) } : [];
    }),
  ),
);

/** Return the position of a plane as text. */
export function describeCut({ axis, value, isPercent }: CutPlane): string {
  return `${axis.toUpperCase()} ${formatNumber(value, 1)} ${isPercent ? "%" : "mm"}`;
}

/** Set the cuts for the bed, in a step of its own of the history; without any, the service plans them. */
export function setBedCuts(planes: readonly CutPlane[]): void {
  setOptions({ [BED_CUTS]: planes.length > 0 ? writePlanes(planes) : undefined });
}

/** Return whether one of the cuts can be removed: the service plans at least one. */
export function canRemoveCut({ planes, isPlanned }: Cuts): boolean {
  return !isPlanned || planes.length > 1;
}

export function removeBedCut({ planes }: Cuts, index: number): void {
  setBedCuts(planes.filter((_, place) => place !== index));
}
