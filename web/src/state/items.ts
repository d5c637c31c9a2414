/** Models of the page. */

import { computed, signal } from "@preact/signals";

import type { Output } from "../api";
import { shortPlaceOf, type Model } from "../intake";
import type { Job } from "../job-events";
import type { PreviewFacts, Quote, Verdict } from "../types";
import type { Picture } from "../viewer/picture";
import type { Failure } from "./failures";

/** Running conversion. */
export interface Work {
  abort: AbortController;
  /** Share of the upload that is done, 0 to 1. */
  uploaded: number;
  /** State of the job; null if the conversion runs within one request. */
  job: Job | null;
  /** Whether the connection broke; the service goes on. */
  isLost: boolean;
}

/** What the user has asked about a model: will it print? */
export interface Answer {
  /** Fields that were sent; they differ from the present ones until the question is asked again. */
  key: string;
  isAsking: boolean;
  verdict: Verdict | null;
  failure: Failure | null;
}

export interface Item {
  id: number;
  model: Model;
  state: "reading" | "ready" | "failed";
  /** Share of the upload that is done, 0 to 1. */
  uploaded: number;
  error: Failure | null;
  picture: Picture | null;
  facts: PreviewFacts | null;
  output: Output | null;
  outputPicture: Picture | null;
  outputFacts: PreviewFacts | null;
  outputError: Failure | null;
  work: Work | null;
  /** Null until the user asks. */
  answer: Answer | null;
  /** The last estimate and price, with what was asked; null without a rate card. */
  quote: { key: string; checkKey: string; quote: Quote } | null;
  /** Small picture as a data address; null until the table has drawn it, "" if it cannot. */
  thumbnail: string | null;
}

export const items = signal<Item[]>([]);
export const activeId = signal(0);
export const active = computed(() => find(activeId.value) ?? items.value[0] ?? null);
/** Whether the user looks at the list of files instead of a model. */
export const isTableOpen = signal(false);
export const isTableShown = computed(() => isTableOpen.value && items.value.length > 1);
/** Names that several items have. */
const repeatedNames = computed(() => {
  const names = items.value.map(({ model }) => model.name);
  return new Set(names.filter((name, index) => names.indexOf(name) !== index));
});
/** Ids of the items that are marked in the table. */
export const marked = signal<ReadonlySet<number>>(new Set());
/** Items that are marked in the table; null if none is, or if a model is shown. */
export const scope = computed(() => {
  const chosen = isTableShown.value ? items.value.filter(({ id }) => marked.value.has(id)) : [];
  return chosen.length > 0 ? chosen : null;
});
/** Items that the settings and actions concern. */
export const shownItems = computed(
  () => scope.value ?? (isTableShown.value ? items.value : active.value ? [active.value] : []),
);
/** Ids of the items that wait for their conversion. */
export const queued = signal<ReadonlySet<number>>(new Set());
export const isBusy = computed(() => items.value.some(({ work }) => work !== null));
export const isUploading = computed(() =>
  items.value.some(({ state, uploaded, work }) => (work ? work.uploaded < 1 : state === "reading" && uploaded < 1)),
);

let nextId = 1;

export function find(id: number): Item | undefined {
  return items.value.find((item) => item.id === id);
}

/** Return the place of a model if another one has its name; "" otherwise. */
export function distinguish(model: Model): string {
  return repeatedNames.value.has(model.name) ? shortPlaceOf(model) : "";
}

export function update(id: number, change: Partial<Item>): void {
  items.value = items.value.map((item) => (item.id === id ? { ...item, ...change } : item));
}

/** Add models as items that are read next, and show the first of them. */
export function addModels(models: Model[]): Item[] {
  const added = models.map((model): Item => ({
    id: nextId++,
    model,
    state: "reading",
    uploaded: 0,
    error: null,
    picture: null,
    facts: null,
    output: null,
    outputPicture: null,
    outputFacts: null,
    outputError: null,
    work: null,
    answer: null,
    quote: null,
    thumbnail: null,
  }));
  if (added[0]) {
    items.value = [...items.value, ...added];
    activeId.value = added[0].id;
  }
  return added;
}

/** Remove an item, and free the memory of its pictures. */
export function dropItem(id: number): void {
  const item = find(id);
  item?.work?.abort.abort();
  item?.picture?.dispose();
  item?.outputPicture?.dispose();
  items.value = items.value.filter((other) => other.id !== id);
  marked.value = new Set([...marked.value].filter((other) => other !== id));
}
