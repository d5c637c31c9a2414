/**
 * The question whether a model prints: asked once by the user, and for the active model again when its options change.
 */

import { batch, computed, signal } from "@preact/signals";

import * as api from "./api";
import { t } from "./i18n";
import { checkValue, type Value } from "./settings";
import { announcement, isCanceled, toFailure } from "./state/failures";
import { setOption, settings, settingsOf } from "./state/form";
import { active, type Answer, find, isTableShown, type Item, update } from "./state/items";
import { checkFields, fields, supported } from "./state/service";
import type { Verdict } from "./types";
import { listCheckFields, toCheckFields } from "./verdict";

/** Milliseconds without a change before the question is asked again; each answer counts as a request. */
const ASK_DELAY_MS = 800;

/** Values of the options of checks, which conversions do not have. */
export const checkOptions = signal<Record<string, Value>>({});
export const optionsOfChecks = computed(() => (supported.value ? listCheckFields(supported.value) : {}));
/** Fields that are sent. */
export const checkRequest = computed(() =>
  toCheckFields(settings.value, checkOptions.value, checkFields.value ?? new Set()),
);
const key = computed(() => JSON.stringify(checkRequest.value));

/** Return the fields to send about a model. */
function requestOf(item: Item): [name: string, value: string][] {
  return toCheckFields(settingsOf(item), checkOptions.value, checkFields.value ?? new Set());
}

/** Return whether the answer about a model is that of its current settings. */
export function hasFreshAnswer(item: Item): boolean {
  return item.answer?.key === JSON.stringify(requestOf(item));
}
/** Whether the service would accept the options. */
export const isAskable = computed(() =>
  Object.entries({ ...settings.value.options, ...checkOptions.value }).every(([name, value]) => {
    const field = optionsOfChecks.value[name] ?? fields.value[name];
    return !field || checkValue(field, value) === null;
  }),
);

export function setCheckOption(name: string, value: Value | undefined): void {
  const options = Object.fromEntries(Object.entries(checkOptions.value).filter(([each]) => each !== name));
  if (value !== undefined) options[name] = value;
  checkOptions.value = options;
}

/** Set options that a finding recommends; the question is then asked again. */
export function applyRemedy(remedy: [name: string, value: Value][]): void {
  batch(() => {
    for (const [name, value] of remedy) setOption(name, value);
  });
}

let timer = 0;
let running: { id: number; abort: AbortController } | null = null;

function stop(): void {
  clearTimeout(timer);
  running?.abort.abort();
  if (running) change(running.id, { isAsking: false });
  running = null;
}

function change(id: number, part: Partial<Answer>): void {
  const answer = find(id)?.answer;
  if (answer) update(id, { answer: { ...answer, ...part } });
}

/** Ask whether the active model prints. */
export async function ask(): Promise<void> {
  const item = active.peek();
  if (!item) return;
  stop();
  const current = { id: item.id, abort: new AbortController() };
  running = current;
  await askAbout(item, current.abort.signal);
  if (running === current) running = null;
}

async function askAbout(item: Item, signal: AbortSignal): Promise<void> {
  const request = requestOf(item);
  const asked = JSON.stringify(request);
  const verdict = item.answer?.verdict ?? null;
  update(item.id, { answer: { key: item.answer?.key ?? "", isAsking: true, verdict, failure: null } });
  announcement.value = t("asking", { name: item.model.name });
  try {
    const answer = await api.check(item.model, request, signal);
    update(item.id, { answer: { key: asked, isAsking: false, verdict: answer, failure: null } });
    announcement.value = `${item.model.name}: ${summarize(answer)}`;
  } catch (error) {
    if (isCanceled(error)) change(item.id, { isAsking: false });
    else update(item.id, { answer: { key: asked, isAsking: false, verdict: null, failure: toFailure(error) } });
  }
}

/** Ids of the items about which a question waits. */
export const waiting = signal<ReadonlySet<number>>(new Set());
export const isAskingAll = signal(false);
let abortAll = new AbortController();

export function stopAskingAll(): void {
  abortAll.abort();
}

/** Ask about several models that were read, one after the other; with a rate card also for the price of one piece. */
export async function askAboutAll(chosen: readonly Item[]): Promise<void> {
  stop();
  abortAll = new AbortController();
  const { signal } = abortAll;
  const ids = chosen.filter(({ state }) => state === "ready").map(({ id }) => id);
  waiting.value = new Set(ids);
  isAskingAll.value = true;
  for (const id of ids) {
    waiting.value = new Set([...waiting.value].filter((other) => other !== id));
    const item = find(id);
    if (signal.aborted || !item) continue;
    if (!hasFreshAnswer(item) || item.answer?.failure) await askAbout(item, signal);
    const rates = supported.value?.rates;
    if (rates && find(id)?.answer?.verdict) await askPrice(item, rates.materials[0] ?? "", signal);
  }
  isAskingAll.value = false;
}

async function askPrice(item: Item, material: string, signal: AbortSignal): Promise<void> {
  const request = requestOf(item);
  const fields: [string, string][] = [...request, ["quantity", "1"], ["material", material]];
  const key = JSON.stringify(fields);
  const checkKey = JSON.stringify(request);
  if (item.quote?.checkKey === checkKey) return;
  try {
    update(item.id, { quote: { key, checkKey, quote: await api.quote(item.model, fields, signal) } });
  } catch (error) {
    const failure = isCanceled(error) ? null : toFailure(error);
    if (failure) change(item.id, { failure });
  }
}

/** Return the verdict in a sentence. */
export function summarize({ verdict, findings }: Verdict): string {
  return [t(`verdict_${verdict}`), countFindings(findings)].filter(Boolean).join(". ");
}

/** Return the number of findings of each severity, such as "1 error, 2 warnings". */
export function countFindings(findings: Verdict["findings"]): string {
  const severities = ["error", "warning", "info"] as const;
  return severities
    .map((severity) => [severity, findings.filter((each) => each.severity === severity).length] as const)
    .filter(([, n]) => n > 0)
    .map(([severity, n]) => t(`count_${severity}`, { n }))
    .join(", ");
}

function askAgainSoon(): void {
  const item = active.peek();
  stop();
  if (isTableShown.peek()) return;
  if (!item?.answer || item.state !== "ready" || item.answer.key === key.peek() || !isAskable.peek()) return;
  change(item.id, { isAsking: true });
  running = { id: item.id, abort: new AbortController() };
  timer = window.setTimeout(() => void ask(), ASK_DELAY_MS);
}

/** Ask again after changes, for a model about which the user has asked. */
export function watchOptions(): void {
  computed(() => `${isTableShown.value} ${active.value?.id} ${active.value?.state} ${key.value}`).subscribe(
    askAgainSoon,
  );
}
