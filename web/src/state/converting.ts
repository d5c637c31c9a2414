/** Conversions of the models, and what their results show. */

import { convert, preview, type Output } from "../api";
import { isApp } from "../app-token";
import { t } from "../i18n";
import type { Model } from "../intake";
import { layersOf } from "../layers";
import { announcement, isCanceled, toFailure, type Failure } from "./failures";
import { runAtOnce } from "../lanes";
import { deriveFacts, describeSurface, isPlainGlb, isPlainShape } from "../own-result";
import type { Settings } from "../settings";
import type { Report } from "../types";
import type { Picture } from "../viewer/picture";
import { hasFreshOutput, settingsOf } from "./form";
import { active, find, type Item, items, isTableShown, queued, update, type Work } from "./items";
import { previewTriangles } from "./reading";
import { forget, keepJob, keepOutput } from "./results";
import { hasJobs, plan } from "./service";

/** Models that are converted at once, if the plan permits as many; their uploads share the line of the caller. */
const MAX_AT_ONCE = 4;

/** Convert the models that were read and have no fresh output, as many at once as the plan permits. */
export async function convertAll(chosen: readonly Item[] = items.value): Promise<void> {
  const waiting = chosen.filter((item) => item.state === "ready" && !hasFreshOutput(item));
  const requested = waiting.map((item) => [item.id, settingsOf(item)] as const);
  queued.value = new Set(waiting.map(({ id }) => id));
  const limit = hasJobs.value ? Math.min(plan.value?.limits.max_unfinished_jobs ?? MAX_AT_ONCE, MAX_AT_ONCE) : 1;
  await runAtOnce(requested, limit, ([id, settings]) => {
    queued.value = new Set([...queued.value].filter((other) => other !== id));
    return convertOne(id, settings);
  });
  queued.value = new Set();
}

/** Convert a model. Returns false if the user canceled. */
async function convertOne(id: number, settings: Settings): Promise<boolean> {
  const item = find(id);
  if (!item) return true;
  const { model } = item;
  let work: Work = { abort: new AbortController(), uploaded: 0, job: null, isLost: false };
  const show = (change: Partial<Work>): void => update(id, { work: (work = { ...work, ...change }) });
  show({});
  update(id, { outputError: null });
  announcement.value = t("convertingFile", { name: model.name });
  try {
    const output = await convert(model, settings, {
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
    if (find(id)?.model !== model) {
      // The file was opened again in the meantime: this is the result of its earlier version.
      update(id, { work: null });
      return true;
    }
    find(id)?.outputPicture?.dispose();
    const job = work.job?.id ?? null;
    update(id, { work: null, output: { ...output, job }, outputPicture: null, outputFacts: null });
    announcement.value = t("done", { name: output.file.name });
    notify({ output });
    // In the table, the facts of each result would cost a caller a request.
    if (isTableShown.value ? isApp : id === active.value?.id) void readOutput(id, output);
    return true;
  } catch (error) {
    const failure = isCanceled(error) ? null : toFailure(error);
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
export async function readOutput(id: number, output: Output): Promise<void> {
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
    if (!isCanceled(error)) update(id, { outputError: toFailure(error) });
  }
}

async function showOutput(id: number, output: Output, model: Model, signal: AbortSignal): Promise<void> {
  const own = await drawOwn(id, output, model).catch(() => null);
  const picture = own ?? (await drawPreview(model, signal));
  const item = find(id);
  // In the meantime, the model was converted again, or removed.
  if (item?.output?.file !== output.file) {
    picture.dispose();
    return;
  }
  if (isDivided(output)) picture.colorPieces();
  // A toolpath has no surface in common with its model.
  if (item.picture && layersOf(picture.facts).length === 0) await markResult(item.picture, picture, output.report);
  item.outputPicture?.dispose();
  const shown = { ...item.output, model };
  update(id, { output: shown, outputPicture: picture, outputFacts: picture.facts, outputError: null });
}

/** Place a result where the model is with which it is compared, and color what differs. */
export async function markResult(before: Picture, after: Picture, report: Report | null): Promise<void> {
  const { markChanges } = await import("../viewer/changes");
  after.alignTo(before, report);
  await markChanges(before, after);
}

/** Operations whose result is easier to see if each piece has a color. */
const DIVIDING_OPERATIONS = new Set(["cut-plane", "split-parts", "split-for-bed"]);

function isDivided({ report }: Output): boolean {
  return (report?.steps ?? []).some(({ step }) => DIVIDING_OPERATIONS.has(step));
}

/** Return the picture of a result from its own bytes; null if only the service can draw it. */
async function drawOwn(id: number, output: Output, model: Model): Promise<Picture | null> {
  const before = find(id)?.facts;
  if (!before) return null;
  const shown = { ...output, model };
  const facts = deriveFacts(before, shown, previewTriangles());
  if (!facts && !isPlainShape(before, shown, previewTriangles())) return null;
  const data = await model.file.arrayBuffer();
  const { parseGlb, parseShape } = await import("../viewer/own-result");
  if (facts) return isPlainGlb(data) ? parseGlb(data, facts) : null;
  return parseShape(data, output.report?.target.format ?? "", (surface) => describeSurface(before, shown, surface));
}

export async function drawPreview(model: Model, signal: AbortSignal): Promise<Picture> {
  const data = await preview(model, { options: [], maxTriangles: previewTriangles(), signal });
  const { parsePicture } = await import("../viewer/picture");
  return parsePicture(data);
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
