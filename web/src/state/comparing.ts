/** Comparison of a result with an earlier one of the session, which the view shows in place of the model. */

import { computed, effect, signal } from "@preact/signals";

import type { Picture } from "../viewer/picture";
import { drawPreview, markResult } from "./converting";
import { active, find, items } from "./items";
import { fetchResult } from "./results";

export interface Baseline {
  /** Id of the job of the earlier result. */
  job: string;
  name: string;
  bytes: number;
  picture: Picture;
}

/** The earlier result, and the picture of the result that is compared with it. */
const comparison = signal<{ baseline: Baseline; after: Picture } | null>(null);

/** The earlier result with which that of the active model is compared; null for the model itself. */
export const baseline = computed(() => {
  const { value } = comparison;
  return value && value.after === active.value?.outputPicture ? value.baseline : null;
});

/** Compare the result of the active model with an earlier one; null: with the model. Throws ApiError. */
export async function compareWith(job: string | null): Promise<void> {
  const item = active.peek();
  const after = item?.outputPicture;
  if (!item || !after) return;
  if (job === null) {
    await end();
    return;
  }
  const { model, file } = await fetchResult(job);
  const picture = await drawPreview(model, new AbortController().signal);
  await end();
  if (find(item.id)?.outputPicture !== after) {
    picture.dispose();
    return;
  }
  // Both are results: no report leads from one to the other.
  await markResult(picture, after, null);
  comparison.value = { baseline: { job, name: file.name, bytes: file.size, picture }, after };
}

/** Compare the result with its model again. */
async function end(): Promise<void> {
  const ended = comparison.peek();
  if (!ended) return;
  comparison.value = null;
  ended.baseline.picture.dispose();
  const item = items.peek().find(({ outputPicture }) => outputPicture === ended.after);
  if (item?.picture) await markResult(item.picture, ended.after, item.output?.report ?? null);
}

/** End a comparison as soon as its result is no longer shown. */
export function watchComparison(): void {
  effect(() => {
    if (comparison.value && baseline.value === null) queueMicrotask(() => void end());
  });
}
