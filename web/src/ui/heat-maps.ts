/** Heat maps of the models that the view shows: asked for when they are selected, and kept. */

import { computed, signal } from "@preact/signals";

import { preview } from "../api";
import { t } from "../i18n";
import type { Model } from "../intake";
import { announcement, type Failure, isCanceled, toFailure } from "../state/failures";
import { active, items } from "../state/items";
import { previewTriangles, readerFields } from "../state/reading";
import type { Measure, Report } from "../types";
import type { Picture } from "../viewer/picture";
import { viewOptions } from "./view-state";

/** Maximum number of triangles of a heat map: divided faces have more than those of the model. */
const MAX_TRIANGLES = 100_000;
/** Heat maps that are kept; the view shows two of them at most. */
const MAX_KEPT = 6;

/** What the surface is colored by; null for the colors of the model. */
export const coloring = signal<{ measure: Measure; limit: number | null } | null>(null);

interface HeatMap {
  model: Model;
  picture: Picture | null;
  failure: Failure | null;
}

/** What has been asked for, by key, in this order. A heat map with neither picture nor failure is on its way. */
const kept = signal<ReadonlyMap<string, HeatMap>>(new Map());
const numbers = new WeakMap<Model, number>();
let count = 0;

interface Request {
  key: string;
  model: Model;
  options: [name: string, value: string][];
  /** What a result is compared with. */
  original: { picture: Picture; report: Report | null } | null;
}

function toRequest(model: Model, options: [name: string, value: string][], original: Request["original"]): Request {
  const number = numbers.get(model) ?? ++count;
  numbers.set(model, number);
  return { key: JSON.stringify([number, options, coloring.value]), model, options, original };
}

/** Heat maps of the model that was read and of its conversion, as far as the view shows them. */
const wanted = computed((): [Request | null, Request | null] => {
  const item = active.value;
  if (!coloring.value || !item?.picture || item.state !== "ready") return [null, null];
  const mode = item.output && item.outputPicture ? viewOptions.value.mode : "before";
  return [
    mode === "after" ? null : toRequest(item.model, readerFields(item), null),
    mode === "before" || !item.output
      ? null
      : toRequest(item.output.model, [], { picture: item.picture, report: item.output.report }),
  ];
});

const found = computed(() => wanted.value.map((request) => request && (kept.value.get(request.key) ?? null)));
/** Pictures to show in place of that of the model and that of its conversion. */
export const heatPictures = computed(() => found.value.map((map) => map?.picture ?? null));
export const isMeasuring = computed(() => found.value.some((map) => map && !map.picture && !map.failure));
export const heatFailure = computed(() => found.value.find((map) => map?.failure)?.failure ?? null);
/** Scale of the heat maps that are shown; null until one is. */
export const heatScale = computed(() => heatPictures.value.find((picture) => picture)?.facts.scale ?? null);

/** Ask again for the heat maps that failed. */
export function retryHeatMaps(): void {
  kept.value = new Map([...kept.value].filter(([, { failure }]) => !failure));
  askAll();
}

function keep(key: string, map: HeatMap): void {
  const others = [...kept.peek()].filter(([name]) => name !== key);
  const used = new Set(wanted.peek().map((request) => request?.key));
  const dropped = others.filter(([name]) => !used.has(name)).slice(0, Math.max(0, others.length + 1 - MAX_KEPT));
  for (const [, { picture }] of dropped) picture?.dispose();
  kept.value = new Map([...others.filter((each) => !dropped.includes(each)), [key, map]]);
}

const running = new Map<string, AbortController>();

async function ask({ key, model, options, original }: Request): Promise<void> {
  const abort = new AbortController();
  running.set(key, abort);
  keep(key, { model, picture: null, failure: null });
  const color = coloring.peek();
  const maxTriangles = Math.min(previewTriangles(), MAX_TRIANGLES);
  try {
    const data = await preview(model, { options, maxTriangles, ...(color ?? {}), signal: abort.signal });
    const { parsePicture } = await import("../viewer/picture");
    const picture = await parsePicture(data);
    if (original) picture.alignTo(original.picture, original.report);
    keep(key, { model, picture, failure: null });
    if (color) announcement.value = t("coloredBy", { what: t(color.measure) });
  } catch (error) {
    if (isCanceled(error)) return;
    keep(key, { model, picture: null, failure: toFailure(error) });
  }
  running.delete(key);
}

function cancel(key: string): void {
  running.get(key)?.abort();
  running.delete(key);
  kept.value = new Map([...kept.peek()].filter(([name]) => name !== key));
}

function askAll(): void {
  const requests = wanted.peek().filter((request) => request !== null);
  for (const key of running.keys()) if (requests.every((request) => request.key !== key)) cancel(key);
  for (const request of requests) if (!kept.peek().has(request.key)) void ask(request);
}

/** Free the heat maps of models that are gone. */
function dropUnused(): void {
  const present = items.value.flatMap(({ model, output }) => [model, output?.model]);
  const gone = [...kept.peek()].filter(([, { model }]) => !present.includes(model));
  if (gone.length === 0) return;
  for (const [, { picture }] of gone) picture?.dispose();
  kept.value = new Map([...kept.peek()].filter((entry) => !gone.includes(entry)));
}

/** Ask for heat maps when they are selected, and cancel requests whose result the view does not show any more. */
export function watchColoring(): void {
  wanted.subscribe(askAll);
  items.subscribe(dropUnused);
}
