/** State of the 3D view that several parts of the page read. */

import { computed, signal } from "@preact/signals";

import { active } from "../state/items";
import type { DefectKind, Place } from "../types";
import { DEFECT_COLORS } from "../viewer/look";
import { INITIAL_OPTIONS, type MarkedPlace, type ViewOptions } from "../viewer/options";
import type { Orientation } from "../viewer/view-cube";
import type { Viewer } from "../viewer/viewer";

export const viewOptions = signal(INITIAL_OPTIONS);

export const viewer = signal<Viewer | null>(null);
/** How the camera is turned; null before the first picture. */
export const orientation = signal<Orientation | null>(null);
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
