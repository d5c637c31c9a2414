/** Add models, and read them: upload them, and receive their previews and facts. */

import { batch } from "@preact/signals";

import { preview } from "../api";
import { formatBytes, t, tOptional } from "../i18n";
import { extensionOf, groupModels, type Model, type PathFile, UnpackError } from "../intake";
import { send } from "../requests";
import { toFields } from "../settings";
import { forgetShown } from "../shown-files";
import type { Format } from "../types";
import { hasSlowWebGl } from "../viewer/speed";
import { banner, type Failure, isCanceled, PageError, toFailure, toNotice } from "./failures";
import { choices, resetForm, settingsOf, suggest } from "./form";
import { addModels, dropItem, find, isTableOpen, type Item, items, update } from "./items";
import { plan, readerOptions, supported } from "./service";

/** Triangles of a preview; a graphics card turns these without effort. */
const PREVIEW_TRIANGLES = 300_000;
/** Maximum number of triangles of a preview on a phone. */
const PREVIEW_TRIANGLES_PHONE = 60_000;
/**
 * Maximum number of triangles with WebGL on the CPU. At 1280 × 800, a frame of an orbit costs 40 ms of CPU time without a
 * model, and 12 ms more for each 10,000 triangles: 20 frames per second on two cores. With 20,000, 30 frames per second,
 * an assembly of 43,000 triangles lost its bores, and its ribs were torn.
 */
const PREVIEW_TRIANGLES_CPU = 50_000;
/** Files that are added at once to an empty page from which on the page lists them. */
const TABLE_FROM = 5;
/** Milliseconds without a change before models are read again with other options. */
const REREAD_DELAY_MS = 600;

/** State of a model of which nothing is known. */
const NOTHING_KNOWN = {
  output: null,
  outputPicture: null,
  outputFacts: null,
  outputError: null,
  answer: null,
  quote: null,
  thumbnail: null,
};

/** Add files to the list and read them. */
export async function addFiles(files: PathFile[]): Promise<void> {
  banner.value = null;
  let models: Model[];
  try {
    models = await groupModels(files);
  } catch (error) {
    banner.value = describeUnread(error);
    return;
  }
  const limit = plan.value?.limits.max_batch_files ?? Infinity;
  const room = Math.max(0, limit - items.value.length);
  if (models.length > room) {
    const n = models.length + items.value.length;
    const message = t("tooMany", { n, limit, plan: plan.value?.label ?? "" });
    banner.value = toNotice(message, tOptional("advice_too_many_files") ?? "", "too_many_files");
    models = models.slice(0, room);
  }
  await openModels(models);
}

/** Return the message about files that cannot be added. */
export function describeUnread(error: unknown): Failure {
  const isArchive = error instanceof UnpackError;
  return isArchive ? toNotice(t(`archive_${error.defect}`, { name: error.path })) : toFailure(error);
}

/** Add models to the list and read them; a model that was opened again replaces its earlier version. */
export async function openModels(models: Model[]): Promise<void> {
  const placed = models.map((model) => [model, findPlaced(model)] as const);
  const added = models.filter((_, index) => !placed[index]?.[1]);
  if (items.value.length === 0) isTableOpen.value = added.length >= TABLE_FROM;
  const addedItems = batch(() => addModels(added));
  for (const [model, item] of placed) {
    if (!item) continue;
    item.outputPicture?.dispose();
    update(item.id, { model, ...NOTHING_KNOWN });
    await read(item.id);
  }
  for (const { id } of addedItems) await read(id);
}

/** Return the item of the file on this machine from which a model was read. */
function findPlaced({ origin, ...model }: Model): Item | undefined {
  if (!origin) return undefined;
  // Models of two archives in a folder, or of two folders in an archive, may have one name.
  const path = model.path ?? model.name;
  return items.value.find(
    ({ model: other }) => other.origin?.folder === origin.folder && (other.path ?? other.name) === path,
  );
}

export function removeItem(id: number): void {
  reading.get(id)?.abort();
  reading.delete(id);
  readWith.delete(id);
  const origin = find(id)?.model.origin;
  dropItem(id);
  // The models of an archive have one origin.
  if (origin && !items.value.some(({ model }) => model.origin?.id === origin.id)) {
    forgetShown(origin.id);
    void send("DELETE", `local/files/${origin.id}`).catch(() => undefined);
  }
  if (items.value.length === 0) resetForm();
}

const reading = new Map<number, AbortController>();
/** Options with which models were read, by the id of the item. */
const readWith = new Map<number, string>();

/** Read a model. */
export async function read(id: number): Promise<void> {
  const item = find(id);
  if (!item) return;
  reading.get(id)?.abort();
  const abort = new AbortController();
  reading.set(id, abort);
  const options = readerFields(item);
  readWith.set(id, JSON.stringify(options));
  update(id, { state: "reading", error: null, uploaded: 0 });
  try {
    checkSize(item.model);
    const data = await preview(item.model, {
      options,
      maxTriangles: previewTriangles(),
      signal: abort.signal,
      onUpload: (uploaded) => update(id, { uploaded }),
    });
    const { parsePicture } = await import("../viewer/picture");
    const picture = await parsePicture(data);
    if (abort.signal.aborted) {
      picture.dispose();
      return;
    }
    find(id)?.picture?.dispose();
    batch(() => {
      update(id, { state: "ready", uploaded: 1, picture, facts: picture.facts });
      suggest();
    });
  } catch (error) {
    if (!isCanceled(error)) update(id, { state: "failed", error: toFailure(error) });
  }
}

/** Read the models again that could not be read, for example with another key. */
export function retryFailed(): void {
  for (const { id, state } of items.value) {
    if (state === "failed") void read(id);
  }
}

let rereadTimer = 0;

/** Read models again soon after an option of their reader has changed. */
export function watchReaderOptions(): void {
  choices.subscribe(() => {
    clearTimeout(rereadTimer);
    rereadTimer = window.setTimeout(() => void rereadChanged(), REREAD_DELAY_MS);
  });
}

async function rereadChanged(): Promise<void> {
  const isOutdated = (item: Item): boolean => {
    const last = readWith.get(item.id);
    return last !== undefined && last !== JSON.stringify(readerFields(item));
  };
  for (const { id } of items.peek().filter(isOutdated)) await read(id);
}

function checkSize(model: Model): void {
  const limit = plan.value?.limits.max_file_bytes ?? null;
  if (limit === null || model.file.size <= limit) return;
  const values = { name: model.name, size: formatBytes(model.file.size), limit: formatBytes(limit) };
  throw new PageError(t("tooLarge", { ...values, plan: plan.value?.label ?? "" }), "file_too_large");
}

export function previewTriangles(): number {
  if (hasSlowWebGl()) return PREVIEW_TRIANGLES_CPU;
  return window.innerWidth < 600 ? PREVIEW_TRIANGLES_PHONE : PREVIEW_TRIANGLES;
}

/** Return the set options that concern the reading of a model. */
export function readerFields(item: Item): [string, string][] {
  const format = formatOf(item.model);
  const names = new Set([
    ...Object.keys(supported.value?.options.properties ?? {}),
    ...Object.keys(format?.options.properties ?? {}),
  ]);
  return toFields(settingsOf(item)).filter(([name]) => names.has(name) && readerOptions.value.has(name));
}

function formatOf(model: Model): Format | undefined {
  const extension = `.${extensionOf(model.name)}`;
  return Object.values(supported.value?.formats ?? {}).find(({ extensions }) => extensions.includes(extension));
}
