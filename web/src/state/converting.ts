/** Conversions of the models, and what their results show. */

import { convert, preview, type Output } from "../api";
import { t } from "../i18n";
import type { Model } from "../intake";
import { announcement, isCancelled, toFailure, type Failure } from "./failures";
import { settings, settingsKey } from "./form";
import { find, items, update, type Work } from "./items";
import { previewTriangles } from "./reading";
import { forget, keepJob, keepOutput } from "./results";
import { hasJobs } from "./service";

/** Convert every model that was read and has no fresh output. */
export async function convertAll(): Promise<void> {
  for (const { id, state, output } of items.value) {
    if (state === "ready" && output?.key !== settingsKey.value && !(await convertOne(id))) return;
  }
}

/** Convert a model. Returns false if the user canceled. */
async function convertOne(id: number): Promise<boolean> {
  const item = find(id);
  if (!item) return true;
  const { model } = item;
  let work: Work = { abort: new AbortController(), uploaded: 0, job: null, isLost: false };
  const show = (change: Partial<Work>): void => update(id, { work: (work = { ...work, ...change }) });
  show({});
  update(id, { outputError: null });
  announcement.value = t("convertingFile", { name: model.name });
  try {
    const output = await convert(model, settings.value, {
      signal: work.abort.signal,
      onUpload: (uploaded) => show({ uploaded }),
      onLost: () => show({ isLost: true }),
      ...(hasJobs.value
        ? {
            onJob: (job) => {
              keepJob(job, model.name);
              show({ uploaded: 1, job, isLost: false });
            },
          }
        : {}),
    });
    if (work.job) keepOutput(work.job.id, output);
    find(id)?.outputPicture?.dispose();
    const job = work.job?.id ?? null;
    update(id, { work: null, output: { ...output, job }, outputPicture: null, outputFacts: null });
    announcement.value = t("done", { name: output.file.name });
    notify({ output });
    void readOutput(id, output);
    return true;
  } catch (error) {
    const failure = isCancelled(error) ? null : toFailure(error);
    if (work.job) forget(work.job.id);
    announcement.value = failure?.message ?? t("canceled");
    update(id, { work: null, outputError: failure });
    if (failure) notify({ failure });
    return failure !== null;
  }
}

export function cancelAll(): void {
  for (const { work } of items.value) work?.abort.abort();
}

/** Read the output back, to show what the conversion changed. */
async function readOutput(id: number, output: Output): Promise<void> {
  try {
    await showOutput(id, output, output.model, new AbortController().signal);
  } catch {
    // The output is complete without a picture, for example if the service cannot read its format.
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
  const data = await preview(model, { options: [], maxTriangles: previewTriangles(), signal });
  const [{ parsePicture }, { markChanges }] = await Promise.all([
    import("../viewer/picture"),
    import("../viewer/changes"),
  ]);
  const picture = await parsePicture(data);
  const item = find(id);
  // In the meantime, the model was converted again, or removed.
  if (item?.output?.file !== output.file) {
    picture.dispose();
    return;
  }
  if (item.picture) {
    picture.alignTo(item.picture, output.report);
    await markChanges(item.picture, picture);
  }
  item.outputPicture?.dispose();
  const shown = { ...item.output, model };
  update(id, { output: shown, outputPicture: picture, outputFacts: picture.facts, outputError: null });
}

type Outcome = { output: Output } | { failure: Failure };
const listeners = new Set<(outcome: Outcome) => unknown>();

/** Call a function after every conversion. */
export function onOutput(listener: (outcome: Outcome) => unknown): void {
  listeners.add(listener);
}

function notify(outcome: Outcome): void {
  for (const listener of listeners) listener(outcome);
}
