/** State of the page, and the actions that change it. */

import { batch, computed, signal } from "@preact/signals";

import * as api from "./api";
import type { Output } from "./api";
import { ApiError, base, CANCELLED, OFFLINE, setApiKey, watchRemaining } from "./requests";
import { formatBytes, language, t, tOptional, type Language } from "./i18n";
import { extensionOf, groupModels, type Model, type PathFile } from "./intake";
import type { Job } from "./job-events";
import { fromFragment, keyOf, listFields, toFields, toFragment, type Settings, type Value } from "./settings";
import { readStored, store } from "./storage";
import type { Explanation, Format, Plan, PreviewFacts, Supported, Verdict } from "./types";
import type { Picture } from "./viewer/picture";
import { hasSlowWebGl } from "./viewer/speed";

export interface Failure {
  message: string;
  advice: string;
  code: string;
}

/** Running conversion. */
export interface Work {
  abort: AbortController;
  /** Share of the upload that is done, 0 to 1. */
  uploaded: number;
  /** State of the job; null if the conversion runs within one request. */
  job: Job | null;
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
}

/** Triangles of a preview; a graphics card turns these without effort. */
const PREVIEW_TRIANGLES = 300_000;
/** Maximum number of triangles of a preview on a phone. */
const PREVIEW_TRIANGLES_PHONE = 60_000;
/**
 * Maximum number of triangles with WebGL on the CPU. At 1280 × 800, a frame of an orbit costs 40 ms of CPU time without a
 * model, and 12 ms more for each 10,000 triangles: 30 frames per second on two cores.
 */
const PREVIEW_TRIANGLES_CPU = 20_000;
/** Milliseconds without a change before the chain is asked for; each answer counts as a request. */
const EXPLAIN_DELAY_MS = 400;
const SESSION_KEY = "meshhub-api-key";

export const supported = signal<Supported | null>(null);
export const plan = signal<Plan | null>(null);
export const remaining = signal<number | null>(null);
export const readerOptions = signal<Set<string>>(new Set());
/** Fields that `/check` accepts; null for a server without it. */
export const checkFields = signal<Set<string> | null>(null);
const hasJobs = signal(false);
export const items = signal<Item[]>([]);
export const activeId = signal(0);
export const settings = signal<Settings>({ target: "", options: {} });
export const explanation = signal<Explanation | null>(null);
export const explainError = signal<Failure | null>(null);
export const hasKey = signal(false);
/** A message about the page as a whole: files that were left out, or a service that does not answer. */
export const banner = signal<Failure | null>(null);
/** The latest event for screen readers. */
export const announcement = signal("");

export const active = computed(() => items.value.find(({ id }) => id === activeId.value) ?? items.value[0] ?? null);
export const fields = computed(() => (supported.value ? listFields(supported.value) : {}));
export const targetFormat = computed<Format | null>(() => supported.value?.formats[settings.value.target] ?? null);
export const isBusy = computed(() => items.value.some(({ work }) => work !== null));
export const settingsKey = computed(() => keyOf(settings.value));
/** Whether the output of the active model was made with the current settings. */
export const isFresh = computed(() => active.value?.output?.key === settingsKey.value);

let nextId = 1;
let didChooseTarget = false;
const touched = new Set<string>();

export function update(id: number, change: Partial<Item>): void {
  items.value = items.value.map((item) => (item.id === id ? { ...item, ...change } : item));
}

export function toFailure(error: unknown): Failure {
  if (!(error instanceof ApiError)) {
    return { message: error instanceof Error ? error.message : String(error), advice: "", code: "" };
  }
  if (error.code === OFFLINE) return { message: t("offline"), advice: "", code: OFFLINE };
  const formats = Object.values(supported.value?.formats ?? {});
  const readable = formats.filter(({ read }) => read).map(({ extensions }) => extensions[0] ?? "");
  const advice = [
    tOptional(`advice_${error.code}`, { formats: readable.join(" "), request: error.requestId }) ?? "",
    error.retryAfterS === null ? "" : t("waitSeconds", { n: error.retryAfterS }),
  ];
  return { message: error.message, advice: advice.filter(Boolean).join(" "), code: error.code };
}

export function isCancelled(error: unknown): boolean {
  return error instanceof ApiError && error.code === CANCELLED;
}

/** Load the capabilities and limits of the caller's plan, in the language of the page. */
export async function loadService(): Promise<void> {
  const requested = language.peek();
  try {
    const [capabilities, limits] = await Promise.all([api.getSupported(requested), api.getPlan(requested)]);
    if (requested !== language.peek()) {
      // The user has chosen another language in the meantime.
      await loadService();
      return;
    }
    batch(() => {
      supported.value = capabilities;
      plan.value = limits;
      remaining.value = limits.usage.requests_remaining;
      banner.value = null;
      chooseTarget();
    });
  } catch (error) {
    banner.value = toFailure(error);
  }
}

export async function setLanguage(chosen: Language): Promise<void> {
  language.value = chosen;
  await loadService();
}

async function loadDescription(): Promise<void> {
  const description = await api.getDescription();
  readerOptions.value = description.readerOptions;
  checkFields.value = description.checkFields;
  hasJobs.value = description.hasJobs;
}

export async function useKey(key: string, shouldRemember: boolean): Promise<void> {
  setApiKey(key);
  hasKey.value = key !== "";
  store("sessionStorage", SESSION_KEY, key && shouldRemember ? key : null);
  await loadService();
  retryFailed();
}

function retryFailed(): void {
  for (const item of items.value) {
    if (item.state === "failed") void read(item.id);
  }
}

/** Choose the first format for printing that the caller may write and that is not the format of the source. */
function chooseTarget(): void {
  const formats = supported.value?.output_formats ?? [];
  if (didChooseTarget && formats.includes(settings.value.target)) return;
  const source = active.value?.facts?.inspection.source.format;
  const target = ["3mf", "stl", ...formats].find((id) => formats.includes(id) && id !== source);
  if (target) settings.value = { ...settings.value, target };
}

export function setTarget(target: string): void {
  didChooseTarget = true;
  // The losses of another format are wrong until the service has explained this one.
  explanation.value = null;
  settings.value = { ...settings.value, target };
}

export function setOption(name: string, value: Value | undefined): void {
  touched.add(name);
  const options = Object.fromEntries(Object.entries(settings.value.options).filter(([key]) => key !== name));
  if (value !== undefined) options[name] = value;
  settings.value = { ...settings.value, options };
  if (readerOptions.value.has(name)) rereadSoon();
}

let rereadTimer = 0;

function rereadSoon(): void {
  clearTimeout(rereadTimer);
  rereadTimer = window.setTimeout(() => {
    for (const item of items.value) void read(item.id);
  }, 600);
}

/** Add files to the list and read them. */
export async function addFiles(files: PathFile[]): Promise<void> {
  banner.value = null;
  let models: Model[];
  try {
    models = await groupModels(files);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    banner.value = { message: t("pasteError", { message }), advice: "", code: "" };
    return;
  }
  const limit = plan.value?.limits.max_batch_files ?? Infinity;
  const room = Math.max(0, limit - items.value.length);
  if (models.length > room) {
    const n = models.length + items.value.length;
    const message = t("tooMany", { n, limit, plan: plan.value?.label ?? "" });
    banner.value = { message, advice: tOptional("advice_too_many_files") ?? "", code: "too_many_files" };
    models = models.slice(0, room);
  }
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
  }));
  if (added.length === 0) return;
  batch(() => {
    items.value = [...items.value, ...added];
    activeId.value = added[0]?.id ?? 0;
  });
  for (const { id } of added) await read(id);
}

export function removeItem(id: number): void {
  const item = items.value.find((candidate) => candidate.id === id);
  item?.work?.abort.abort();
  item?.picture?.dispose();
  item?.outputPicture?.dispose();
  items.value = items.value.filter((candidate) => candidate.id !== id);
  if (items.value.length === 0) {
    touched.clear();
    settings.value = { ...settings.value, options: {} };
  }
}

const reading = new Map<number, AbortController>();

/** Read a model: upload it, and receive its preview and facts. */
export async function read(id: number): Promise<void> {
  const item = items.value.find((candidate) => candidate.id === id);
  if (!item) return;
  reading.get(id)?.abort();
  const abort = new AbortController();
  reading.set(id, abort);
  update(id, { state: "reading", error: null, uploaded: 0 });
  try {
    checkSize(item.model);
    const data = await api.preview(item.model, {
      options: readerFields(item.model),
      maxTriangles: previewTriangles(),
      signal: abort.signal,
      onUpload: (uploaded) => update(id, { uploaded }),
    });
    const { parsePicture } = await import("./viewer/picture");
    const picture = await parsePicture(data);
    item.picture?.dispose();
    batch(() => {
      update(id, { state: "ready", picture, facts: picture.facts });
      chooseTarget();
      suggestRepair();
    });
  } catch (error) {
    if (!isCancelled(error)) update(id, { state: "failed", error: toFailure(error) });
  }
}

function checkSize(model: Model): void {
  const limit = plan.value?.limits.max_file_bytes;
  if (limit === undefined || model.file.size <= limit) return;
  const values = { name: model.name, size: formatBytes(model.file.size), limit: formatBytes(limit) };
  throw new ApiError(t("tooLarge", { ...values, plan: plan.value?.label ?? "" }), "file_too_large");
}

export function previewTriangles(): number {
  if (hasSlowWebGl()) return PREVIEW_TRIANGLES_CPU;
  return window.innerWidth < 600 ? PREVIEW_TRIANGLES_PHONE : PREVIEW_TRIANGLES;
}

export function readerFields(model: Model): [string, string][] {
  const format = formatOf(model);
  const names = new Set([
    ...Object.keys(supported.value?.options.properties ?? {}),
    ...Object.keys(format?.options.properties ?? {}),
  ]);
  return toFields(settings.value).filter(([name]) => names.has(name) && readerOptions.value.has(name));
}

function formatOf(model: Model): Format | undefined {
  const extension = `.${extensionOf(model.name)}`;
  return Object.values(supported.value?.formats ?? {}).find(({ extensions }) => extensions.includes(extension));
}

/** Switch repair on for a model with defects, until the user sets it. */
function suggestRepair(): void {
  if (touched.has("repair") || fields.value["repair"]?.type !== "boolean") return;
  const needsRepair = items.value.some(({ facts }) => facts && !facts.inspection.model.watertight);
  const options = { ...settings.value.options };
  if (needsRepair) options["repair"] = true;
  else delete options["repair"];
  settings.value = { ...settings.value, options };
}

/** Convert every model that was read and has no fresh output. */
export async function convertAll(): Promise<void> {
  for (const { id, state, output } of items.value) {
    if (state === "ready" && output?.key !== settingsKey.value && !(await convertOne(id))) return;
  }
}

/** Convert a model. Returns false if the user canceled. */
async function convertOne(id: number): Promise<boolean> {
  const item = items.value.find((candidate) => candidate.id === id);
  if (!item) return true;
  const abort = new AbortController();
  const work: Work = { abort, uploaded: 0, job: null };
  update(id, { work, outputError: null });
  announcement.value = t("convertingFile", { name: item.model.name });
  try {
    const output = await api.convert(item.model, settings.value, {
      signal: abort.signal,
      onUpload: (uploaded) => update(id, { work: { ...work, uploaded } }),
      ...(hasJobs.value ? { onJob: (job) => update(id, { work: { ...work, uploaded: 1, job } }) } : {}),
    });
    item.outputPicture?.dispose();
    update(id, { work: null, output, outputPicture: null, outputFacts: null });
    announcement.value = t("done", { name: output.file.name });
    notifyOutput(output);
    void readOutput(id, output);
    return true;
  } catch (error) {
    const wasCancelled = isCancelled(error);
    announcement.value = wasCancelled ? t("canceled") : toFailure(error).message;
    update(id, { work: null, outputError: wasCancelled ? null : toFailure(error) });
    if (!wasCancelled) notifyFailure(toFailure(error));
    return !wasCancelled;
  }
}

/** Read the output back, to show what the conversion changed. */
async function readOutput(id: number, output: Output): Promise<void> {
  try {
    await showOutput(id, output, output.model, new AbortController().signal);
  } catch {
    // The output is complete without a picture, for example after the last request of this minute.
  }
}

let bedAbort = new AbortController();

/** Show the file of one bed in place of that of another. */
export async function showBed(id: number, output: Output, model: Model): Promise<void> {
  bedAbort.abort();
  bedAbort = new AbortController();
  try {
    await showOutput(id, output, model, bedAbort.signal);
  } catch (error) {
    if (!isCancelled(error)) update(id, { outputError: toFailure(error) });
  }
}

async function showOutput(id: number, output: Output, model: Model, signal: AbortSignal): Promise<void> {
  const data = await api.preview(model, { options: [], maxTriangles: previewTriangles(), signal });
  const [{ parsePicture }, { markChanges }] = await Promise.all([
    import("./viewer/picture"),
    import("./viewer/changes"),
  ]);
  const picture = await parsePicture(data);
  const item = items.value.find((candidate) => candidate.id === id);
  // In the meantime, the model was converted again.
  if (item?.output?.file !== output.file) return;
  if (item.picture) {
    picture.alignTo(item.picture);
    markChanges(item.picture, picture);
  }
  item.outputPicture?.dispose();
  const shown = { ...output, model };
  update(id, { output: shown, outputPicture: picture, outputFacts: picture.facts, outputError: null });
}

export function cancelAll(): void {
  for (const { work } of items.value) work?.abort.abort();
}

export function applyOption(name: string, value: Value): void {
  setOption(name, value);
}

export function shareLink(): string {
  return `${base}#${toFragment(settings.value)}`;
}

type OutputListener = (event: { output: Output } | { failure: Failure }) => unknown;
const listeners = new Set<OutputListener>();

/** Call a function after every conversion. */
export function onOutput(listener: OutputListener): void {
  listeners.add(listener);
}

function notifyOutput(output: Output): void {
  for (const listener of listeners) listener({ output });
}

function notifyFailure(failure: Failure): void {
  for (const listener of listeners) listener({ failure });
}

let explainTimer = 0;
let explainAbort = new AbortController();

function explainSoon(): void {
  // One question after the last file is read, instead of one for each file.
  if (items.peek().some(({ state }) => state === "reading")) return;
  const models = items
    .peek()
    .filter(({ state }) => state === "ready")
    .map(({ model }) => model);
  const current = settings.peek();
  clearTimeout(explainTimer);
  explainAbort.abort();
  if (models.length === 0 || !current.target) {
    explanation.value = null;
    return;
  }
  explainAbort = new AbortController();
  const { signal: abortSignal } = explainAbort;
  explainTimer = window.setTimeout(async () => {
    try {
      explanation.value = await api.explain(models, current, abortSignal);
      explainError.value = null;
    } catch (error) {
      if (isCancelled(error)) return;
      explanation.value = null;
      explainError.value = toFailure(error);
    }
  }, EXPLAIN_DELAY_MS);
}

const readyNames = computed(() => items.value.map(({ model, state }) => `${state} ${model.name}`).join("\n"));

/** Apply the settings of a shared link, in the address of the page. */
function applyLink(): void {
  const shared = fromFragment(location.hash, fields.value);
  if (shared.target && supported.value?.formats[shared.target]) setTarget(shared.target);
  for (const [name, value] of Object.entries(shared.options ?? {})) setOption(name, value);
}

/** Connect the state with the service, the address and the session. */
export async function start(): Promise<void> {
  watchRemaining((value) => (remaining.value = value));
  const key = readStored("sessionStorage", SESSION_KEY);
  if (key) {
    setApiKey(key);
    hasKey.value = true;
  }
  await loadService();
  applyLink();
  addEventListener("hashchange", applyLink);
  computed(() => `${settingsKey.value}\n${readyNames.value}`).subscribe(explainSoon);
  void loadDescription().catch(() => undefined);
}
