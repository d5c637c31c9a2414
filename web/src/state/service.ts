/** What the service offers to the caller. */

import { computed, signal } from "@preact/signals";

import { isApp } from "../app-token";
import { listFields, listRows } from "../settings";
import type { Plan, Supported } from "../types";

export const supported = signal<Supported | null>(null);
export const plan = signal<Plan | null>(null);
/** The plan of a caller; null in the app, whose owner has none. */
export const shownPlan = computed(() => (isApp ? null : plan.value));
/** Requests that remain in this minute. */
export const remaining = signal<number | null>(null);
export const readerOptions = signal<Set<string>>(new Set());
/** Fields that `/check` accepts; null for a server without it. */
export const checkFields = signal<Set<string> | null>(null);
/** Whether conversions run as jobs. */
export const hasJobs = signal(false);
export const hasKey = signal(false);

/** Options of conversions by name. */
export const fields = computed(() => (supported.value ? listFields(supported.value) : {}));
/** The same under the names of their rows in the form, as messages and buttons name them. */
export const rows = computed(() => (supported.value ? listRows(supported.value) : {}));
