/** Waiting of requests, at the rate limit of the plan or while the service starts again. */

import { computed, signal } from "@preact/signals";

import { watchRequests } from "../requests";
import { remaining } from "./service";

export interface Wait {
  /** Millisecond of the clock of the page at which requests go on. */
  until: number;
  /** Code of the error that they got. */
  code: string;
}

const waits = signal<readonly Wait[]>([]);
/** The longest wait; null if no request waits. */
export const wait = computed(() => [...waits.value].sort((a, b) => b.until - a.until)[0] ?? null);

/** @param signal Aborted when the request is canceled. */
function startWait(seconds: number, code: string, signal?: AbortSignal): void {
  const started = { until: Date.now() + 1000 * seconds, code };
  const end = (): void => {
    waits.value = waits.value.filter((each) => each !== started);
  };
  waits.value = [...waits.value, started];
  setTimeout(end, 1000 * seconds);
  signal?.addEventListener("abort", end, { once: true });
}

export function watchLimits(): void {
  watchRequests({ onRemaining: (count) => (remaining.value = count), onWait: startWait });
}
