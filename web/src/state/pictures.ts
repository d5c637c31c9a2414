/** Pictures of the models: a few are kept in memory, the others are read again from the kept answers. */

import { computed, effect } from "@preact/signals";

import { readOutput } from "./converting";
import { active, find, isTableShown, items, update } from "./items";
import { read } from "./reading";

/** Pictures that are kept; a user goes back and forth between a few models. */
const MAX_KEPT = 6;

/** Ids of the items that were shown, the last one at the end. */
let shown: number[] = [];

/** Id of the item that the view shows; null for the table. */
const shownId = computed(() => (isTableShown.value ? null : (active.value?.id ?? null)));

/** Keep the pictures of the models that were shown last, and bring back that of the active one. */
export function watchPictures(): void {
  effect(() => {
    const id = shownId.value;
    if (id === null) return;
    shown = [...shown.filter((other) => other !== id), id].slice(-MAX_KEPT);
    queueMicrotask(() => void bringBack(id));
  });
  effect(() => {
    const drawn = items.value.filter(({ picture, outputPicture }) => picture ?? outputPicture);
    // The last one that was shown is the last one to go.
    drawn.sort((a, b) => shown.indexOf(a.id) - shown.indexOf(b.id));
    for (const { id, picture, outputPicture } of drawn.slice(0, -MAX_KEPT)) {
      picture?.dispose();
      outputPicture?.dispose();
      update(id, { picture: null, outputPicture: null });
    }
  });
}

async function bringBack(id: number): Promise<void> {
  const item = find(id);
  if (item?.state === "ready" && !item.picture) await read(id);
  const current = find(id);
  if (current?.output && current.state === "ready" && !current.outputPicture && !current.outputError) {
    await readOutput(id, current.output);
  }
}
