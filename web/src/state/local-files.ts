/** Files that the owner of this machine opens in the app, and results that are saved beside them. */

import { signal } from "@preact/signals";

import { appToken } from "../app-token";
import { t } from "../i18n";
import { groupModels, isArchive, type Model, type Origin } from "../intake";
import { readEvents } from "../job-events";
import { ApiError, getJson, openStream, send, sleep } from "../requests";
import { saveAll, watchSaves } from "../save";
import { SharedEvents } from "../shared-events";
import { isShown, keepShown } from "../shown-files";
import { announcement, banner, type Failure, toFailure, toNotice } from "./failures";
import { find, type Item, update } from "./items";
import { describeUnread, openModels } from "./reading";

interface OpenedFile {
  id: number;
  name: string;
  folder: string;
  /** Paths of the files that it mentions, from its folder. */
  companions: string[];
  /** Whether a tab has removed it. */
  closed: boolean;
}

/** What the tab with the stream passes to the others. */
type AppEvent = { files: OpenedFile[] } | { hasEnded: boolean };

/** Milliseconds before the page connects again; it counts as closed in the meantime. */
const RECONNECT_MS = 1000;
/** Maximum names in a message. */
const MAX_NAMES = 3;

/** Whether the app has ended: this page can do no more. */
export const hasEnded = signal(false);

/** Id of the newest file. */
let last = 0;
const received = new Set<number>();
/** Files are shown in the order in which they were opened, so that the latest version of a file remains. */
let shown = Promise.resolve();

/** Show the files that are opened, as long as this tab is open; the app ends without a tab. */
export async function followFiles(): Promise<void> {
  // Pages without HTTPS have no locks, but in most browsers those of this machine do.
  const locks = "locks" in navigator ? navigator.locks : undefined;
  const events = new SharedEvents<AppEvent>(`meshhub-app-${appToken}`, receive, locks);
  if (await repeat(receive, async () => receive({ files: await getJson(`local/files?after=${last}`) }), false)) {
    await events.lead((emit) => repeat(emit, () => passEvents(emit), true));
  }
}

/** Pass the files that are opened to all tabs, until the connection ends. */
async function passEvents(emit: (event: AppEvent) => void): Promise<void> {
  const stream = await openStream(`local/files/events?after=${last}`, new AbortController().signal);
  emit({ hasEnded: false });
  for await (const files of readEvents<OpenedFile[]>(stream)) emit({ files });
}

/**
 * Repeat a step while the app does not answer.
 * @param isEndless Whether to repeat it also after it has succeeded.
 * @returns false if another app answers, which was started later.
 */
async function repeat(
  emit: (event: AppEvent) => void,
  step: () => Promise<void>,
  isEndless: boolean,
): Promise<boolean> {
  for (;;) {
    try {
      await step();
      if (!isEndless) return true;
    } catch (error) {
      emit({ hasEnded: true });
      if (error instanceof ApiError && error.code === "app_token_required") return false;
    }
    await sleep(RECONNECT_MS);
  }
}

function receive(event: AppEvent): void {
  if ("hasEnded" in event) {
    hasEnded.value = event.hasEnded;
    return;
  }
  hasEnded.value = false;
  const added = event.files.filter(({ id }) => !received.has(id));
  for (const { id } of added) received.add(id);
  last = Math.max(last, ...received);
  const wanted = added.filter(({ id, closed }) => !closed || isShown(id));
  if (wanted.length > 0) shown = shown.then(() => show(wanted));
}

async function show(files: readonly OpenedFile[]): Promise<void> {
  // A file that cannot be fetched leaves the others alone.
  const models = await Promise.all(files.map((file) => fetchModels(file).catch(report)));
  for (const { origin } of models.flat()) if (origin) keepShown(origin.id);
  void openModels(models.flat());
}

function report(error: unknown): Model[] {
  banner.value = describeUnread(error);
  return [];
}

async function fetchModels({ id, name, folder, companions }: OpenedFile): Promise<Model[]> {
  const origin: Origin = { id, folder };
  const file = new File([await fetchBytes(`local/files/${id}`)], name);
  if (isArchive({ path: name, file })) {
    return (await groupModels([{ path: name, file }])).map((model) => ({ ...model, origin }));
  }
  const fetched = companions.map(async (path) => {
    const data = await fetchBytes(`local/files/${id}?companion=${encodeURIComponent(path)}`);
    return { path, file: new File([data], path.replace(/^.*\//, "")) };
  });
  return [{ name, file, companions: await Promise.all(fetched), origin }];
}

async function fetchBytes(path: string): Promise<ArrayBuffer> {
  return (await send("GET", path)).data;
}

/** Save the results of models into the folders of their inputs; those of other models are downloaded. */
export async function saveBeside(items: readonly Item[]): Promise<void> {
  const notice = downloadOthers(items);
  if (notice) banner.value = notice;
  let failure: Failure | null = null;
  const unsaved: string[] = [];
  for (const { id, output, model } of items) {
    if (!output || !model.origin) continue;
    try {
      const path = `local/files/${model.origin.id}/results?name=${encodeURIComponent(output.file.name)}`;
      const saved = await getJson<{ path: string }>(path, { body: output.file });
      announcement.value = t("savedAs", saved);
      // In the meantime, the model may have been converted again.
      if (find(id)?.output?.file === output.file) update(id, { output: { ...output, savedAs: saved.path } });
    } catch (error) {
      failure ??= toFailure(error);
      unsaved.push(output.file.name);
    }
  }
  if (!failure) return;
  const message = t("labeled", { label: listNames(unsaved), text: failure.message });
  banner.value = { ...failure, message, advice: [failure.advice, notice?.message].filter(Boolean).join(" ") };
}

/** Download the results of models that were dropped or chosen; return a message about them, or null without any. */
function downloadOthers(items: readonly Item[]): Failure | null {
  const files = items.flatMap(({ output, model }) => (output && !model.origin ? output.file : []));
  if (files.length === 0) return null;
  // Before the others are saved: a browser allows downloads only shortly after a click.
  void saveAll(files);
  return toNotice(t("downloadedInstead", { n: files.length, names: listNames(files.map(({ name }) => name)) }));
}

function listNames(names: readonly string[]): string {
  return [...names.slice(0, MAX_NAMES), ...(names.length > MAX_NAMES ? ["…"] : [])].join(", ");
}

/** Report files that the browser saves, because the app may watch the folder of its downloads. */
export function reportSaves(): void {
  watchSaves((file) => void reportSave(file).catch(() => undefined));
}

async function reportSave(file: File): Promise<void> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", await file.arrayBuffer()));
  const sha256 = [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const body = new File([JSON.stringify({ size: file.size, sha256 })], "download.json");
  await send("POST", "local/downloads", { body });
}

/** Installed slicers: names by id. */
export const slicers = signal<Readonly<Record<string, string>>>({});

export async function loadSlicers(): Promise<void> {
  slicers.value = await getJson<Record<string, string>>("local/slicers");
}

/** Save the result of a model beside it, and open it in a slicer. */
export async function openInSlicer(item: Item, slicer: string): Promise<void> {
  if (!item.output?.savedAs) await saveBeside([item]);
  const path = find(item.id)?.output?.savedAs;
  if (path === undefined) return;
  try {
    await send("POST", `local/slicers/${slicer}?path=${encodeURIComponent(path)}`);
  } catch (error) {
    banner.value = toFailure(error);
  }
}

/** Return whether the result of a model can be saved beside it. */
export function hasFolder({ model, output }: Item): boolean {
  return model.origin !== undefined && output !== null;
}
