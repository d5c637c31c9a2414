/** The part that the user has selected, and which parts the view shows. */

import { computed, signal } from "@preact/signals";

import { listIsolated } from "../parts";
import { active } from "../state/items";
import type { PartNode, Picture } from "../viewer/picture";
import { standIns } from "./drafts";
import { viewer } from "./view-state";

const selection = signal<{ picture: Picture; index: number } | null>(null);
/** Number of changes of what is shown; lists of parts follow it. */
const changeCount = signal(0);

const picture = computed(() => active.value?.picture ?? null);
/** Parts of the active model. */
export const parts = computed((): readonly PartNode[] =>
  changeCount.value >= 0 && picture.value ? [...picture.value.parts] : [],
);
/** Number of the selected part; null without one. */
export const selected = computed(() => {
  const chosen = selection.value;
  return chosen && chosen.picture === picture.value ? chosen.index : null;
});

/** Select a part; null selects none. A model of one part has nothing to select. */
export function select(index: number | null): void {
  const shown = picture.peek();
  selection.value = index === null || !shown || shown.parts.length < 2 ? null : { picture: shown, index };
}

function show(choose: (part: PartNode, index: number) => boolean): void {
  parts.peek().forEach((part, index) => (part.object.visible = choose(part, index)));
  const shown = picture.peek();
  if (shown) standIns.peek()[0]?.copyVisibility(shown);
  changeCount.value++;
  viewer.peek()?.redraw();
}

export function setShown(chosen: number, isShown: boolean): void {
  show(({ object }, index) => (index === chosen ? isShown : object.visible));
}

export function isolate(chosen: number): void {
  const depths = parts.peek().map(({ depth }) => depth);
  const shown = listIsolated(depths, chosen);
  show((_, index) => shown[index] ?? true);
}

export function showAll(): void {
  show(() => true);
}

/** Hide, isolate or show parts by a key in the view. Returns whether the key does so. */
export function pressPartKey(key: string): boolean {
  const chosen = selected.peek();
  if (key === "a" && parts.peek().length > 1) showAll();
  else if (chosen === null) return false;
  else if (key === "h") setShown(chosen, false);
  else if (key === "i") isolate(chosen);
  else if (key === "escape") select(null);
  else return false;
  return true;
}
