/** Waiting of requests, at the rate limit of the plan or while the service starts again. */

import { signal } from "@preact/signals";

import { watchRequests } from "../requests";
import { remaining } from "./service";

export interface Wait {
  /** Millisecond of the clock of the page at which requests go on. */
  until: number;
  /** Code of the error that they got. */
  code: string;
}

/** The longest wait; null if no request waits. */
export const wait = signal<Wait | null>(null);

export function startWait(seconds: number, code: string): void {
  const until = Date.now() + 1000 * seconds;
  if (wait.value && wait.value.until >= until) return;
  wait.value = { until, code };
  setTimeout(() => {
    if (wait.value?.until === until) wait.value = null;
  }, 1000 * seconds);
}

export function watchLimits(): void {
  watchRequests({ onRemaining: (count) => (remaining.value = count), onWait: startWait });
}
