/** State of the 3D view that several parts of the page read. */

import { computed, signal } from "@preact/signals";

import { active } from "../store";
import type { DefectKind, Place } from "../types";
import type { Viewer, ViewOptions } from "../viewer/viewer";

export const viewOptions = signal<ViewOptions>({
  mode: "before",
  slider: 0.5,
  wireframe: false,
  textures: true,
  defects: true,
  changes: true,
  box: false,
  bed: null,
  section: null,
  isOrthographic: false,
  tool: null,
});

export const viewer = signal<Viewer | null>(null);
/** Whether this browser can draw in 3D. */
export const hasWebGl = signal(true);
/** The place of a problem that the view shows. */
export const shownPlace = signal<{ kind: DefectKind; index: number } | null>(null);

export function changeView(change: Partial<ViewOptions>): void {
  viewOptions.value = { ...viewOptions.value, ...change };
}

export function showPlace(kind: DefectKind, index: number, place: Place): void {
  shownPlace.value = { kind, index };
  changeView({ defects: true, mode: viewOptions.value.mode === "after" ? "before" : viewOptions.value.mode });
  viewer.value?.flyTo(place);
}

export const findings = computed(() => active.value?.facts?.inspection.model.findings ?? []);
