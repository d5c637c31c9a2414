/** Files that the owner of this machine opens in the app, and results that are saved beside them. */

import { signal } from "@preact/signals";

import { t } from "../i18n";
import { groupModels, isArchive, type Model, type Origin } from "../intake";
import { readEvents } from "../job-events";
import { getJson, openStream, send, sleep } from "../requests";
import { announcement, banner, toFailure } from "./failures";
import { find, type Item, update } from "./items";
import { openModels } from "./reading";

interface OpenedFile {
  id: number;
  name: string;
  folder: string;
  /** Paths of the files that it mentions, from its folder. */
  companions: string[];
}

/** Milliseconds before the page connects again; it counts as closed in the meantime. */
const RECONNECT_MS = 1000;

/** Whether the app has ended: this page can do no more. */
export const hasEnded = signal(false);

/** Show the files that are opened, as long as this tab is open; the app ends without a tab. */
export async function followFiles(): Promise<void> {
  let last = 0;
  for (;;) {
    try {
      const stream = await openStream(`local/files?after=${last}`, new AbortController().signal);
      hasEnded.value = false;
      for await (const files of readEvents<OpenedFile[]>(stream)) {
        last = files.at(-1)?.id ?? last;
        // A file that cannot be fetched leaves the others alone.
        const models = await Promise.all(files.map((file) => fetchModels(file).catch(report)));
        void openModels(models.flat());
      }
    } catch {
      hasEnded.value = true;
    }
    await sleep(RECONNECT_MS);
  }
}

function report(error: unknown): Model[] {
  banner.value = toFailure(error);
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

/** Save the results of models into the folders of their inputs. */
export async function saveBeside(items: readonly Item[]): Promise<void> {
  for (const { id, output, model } of items) {
    if (!output || !model.origin) continue;
    try {
      const path = `local/files/${model.origin.id}/results?name=${encodeURIComponent(output.file.name)}`;
      const saved = await getJson<{ path: string }>(path, { body: output.file });
      announcement.value = t("savedAs", saved);
      // In the meantime, the model may have been converted again.
      if (find(id)?.output?.file === output.file) update(id, { output: { ...output, savedAs: saved.path } });
    } catch (error) {
      banner.value = toFailure(error);
    }
  }
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
