/** State of the 3D view that several parts of the page read. */

import { computed, signal } from "@preact/signals";

import type { Span } from "../cut-planes";
import { readPose } from "../pose";
import { baseline } from "../state/comparing";
import { isFresh, settings } from "../state/form";
import { active } from "../state/items";
import { supported } from "../state/service";
import type { DefectKind, Place, Triple } from "../types";
import { DEFECT_COLORS } from "../viewer/look";
import { INITIAL_OPTIONS, type MarkedPlace, type ViewOptions } from "../viewer/options";
import type { Orientation } from "../viewer/view-cube";
import type { Viewer } from "../viewer/viewer";

export const viewOptions = signal(INITIAL_OPTIONS);

export const viewer = signal<Viewer | null>(null);
/** How the camera is turned; null before the first picture. */
export const orientation = signal<Orientation | null>(null);
/** Box of the model in the view, and what leads from there to the millimeters of the result. */
export interface Posed {
  min: Triple;
  max: Triple;
  offset: Triple;
  /** Millimeters in the view per millimeter of the model that was read. */
  scale: number;
}

/** Where the view shows the model; null without one. */
export const posed = signal<Posed | null>(null);
/** Whether this browser can draw in 3D. */
export const hasWebGl = signal(true);
/** The place of a problem that the view shows. A defect is highlighted as it is, a finding needs a mark. */
export const shownPlace = signal<{ kind: string; index: number; mark?: MarkedPlace } | null>(null);

export function changeView(change: Partial<ViewOptions>): void {
  viewOptions.value = { ...viewOptions.value, ...change };
}

export function showPlace(kind: DefectKind, index: number, place: Place): void {
  shownPlace.value = { kind, index, mark: { position_mm: place.position_mm, color: DEFECT_COLORS[kind], label: "" } };
  changeView({ defects: true, mode: viewOptions.value.mode === "after" ? "before" : viewOptions.value.mode });
  viewer.value?.flyTo(place);
}

/** Mark a place of a finding in one of both pictures: the model that was read, or the result of its conversion. */
export function showMark(
  kind: string,
  index: number,
  mark: MarkedPlace,
  size: number,
  picture: "before" | "after",
): void {
  shownPlace.value = { kind, index, mark };
  if (picture === "after" || viewOptions.value.mode === "after") changeView({ mode: picture });
  // A change of the panes fits the model, so it comes before the flight.
  viewer.value?.setOptions(viewOptions.value);
  viewer.value?.flyTo({ position_mm: mark.position_mm, size_mm: size });
}

export const findings = computed(() => active.value?.facts?.inspection.model.findings ?? []);

/** How the settings turn and scale the model, where the view shows what the next conversion does; null elsewhere. */
export const plannedPose = computed(() => {
  const { mode, tool } = viewOptions.value;
  const isPlanned = tool === "lay-flat" || !((active.value?.output && isFresh.value) || baseline.value);
  return mode === "before" && isPlanned ? readPose(settings.value.options, supported.value?.printers) : null;
});

/** Return the extent of the model along an axis, 0 to 2. */
export function spanOf({ min, max, offset }: Posed, axis: number): Span {
  return { min: min[axis] ?? 0, max: max[axis] ?? 0, offset: offset[axis] ?? 0 };
}

/** Whether the side that was clicked last cannot lie on the bed, because parts of the model are beyond it. */
export const isSideInner = signal(false);

/** Whether the service turns models, and the plan allows it. */
export const canTurn = computed(() => isOffered("rotate_x_deg"));

export function isOffered(option: string): boolean {
  return (supported.value?.operations ?? []).some(
    ({ allowed, available, options }) => allowed && available && option in options.properties,
  );
}
