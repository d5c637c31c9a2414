/** Results of jobs: kept in the session of the tab, so that they survive a reload, until the service deletes them. */

import { signal } from "@preact/signals";

import { readOutput, type Output } from "../api";
import { isFinished, shareOf, type Job } from "../job-events";
import { finishJob } from "../jobs";
import { ApiError, send } from "../requests";
import { readStored, store } from "../storage";
import { isCanceled, toFailure } from "./failures";

/** Result of a job, or a job that still runs. */
export interface KeptResult {
  /** Id of the job. */
  job: string;
  /** Name of the model that was converted. */
  source: string;
  /** Name of the result; "" until there is one. */
  name: string;
  bytes: number;
  /** Milliseconds since 1970 at which the job was submitted. */
  created: number;
  state: "running" | "done" | "failed";
  /** Second since 1970 at which the service deletes the result; null if it does not. */
  expires: number | null;
  /** Small picture as a data address; "" without one. */
  thumbnail: string;
  /** Reason of a failure. */
  error: string;
}

const STORAGE_KEY = "meshhub-results-2";
const MAX_KEPT = 20;

/** The newest first. */
export const results = signal<KeptResult[]>([]);
/** Finished shares of jobs that were running when the page was loaded, by id. */
export const shares = signal<ReadonlyMap<string, number | null>>(new Map());

function keep(changed: KeptResult[]): void {
  results.value = changed.slice(0, MAX_KEPT);
  store("sessionStorage", STORAGE_KEY, results.value.length > 0 ? JSON.stringify(results.value) : null);
}

function change(job: string, part: Partial<KeptResult>): void {
  keep(results.peek().map((result) => (result.job === job ? { ...result, ...part } : result)));
}

/** Keep a job as soon as the service has accepted it. */
export function keepJob(job: Job, source: string): void {
  if (results.peek().some(({ job: id }) => id === job.id)) {
    change(job.id, { expires: job.expires });
    return;
  }
  const result: KeptResult = {
    job: job.id,
    source,
    name: "",
    bytes: 0,
    created: Date.now(),
    state: "running",
    expires: job.expires,
    thumbnail: "",
    error: "",
  };
  keep([result, ...results.peek()]);
}

export function keepOutput(job: string, { file }: Output): void {
  change(job, { state: "done", name: file.name, bytes: file.size });
}

export function keepThumbnail(job: string, thumbnail: string): void {
  change(job, { thumbnail });
}

export function forget(job: string): void {
  keep(results.peek().filter((result) => result.job !== job));
}

/** Read the kept results, and follow the jobs that were running when the page was left. */
export function restoreResults(): void {
  let kept: KeptResult[] = [];
  try {
    kept = JSON.parse(readStored("sessionStorage", STORAGE_KEY) ?? "[]") as KeptResult[];
  } catch {
    // Another version of the page wrote it.
  }
  keep(kept.filter(({ expires }) => expires === null || 1000 * expires > Date.now()));
  for (const { job, state } of results.peek()) if (state === "running") void followAgain(job);
}

async function followAgain(id: string): Promise<void> {
  try {
    const { data } = await finishJob(id, {
      signal: new AbortController().signal,
      onJob: (job) => {
        if (isFinished(job)) change(id, { expires: job.expires });
        else shares.value = new Map([...shares.peek(), [id, shareOf(job)]]);
      },
    });
    keepOutput(id, await readOutput(new Uint8Array(data), ""));
  } catch (error) {
    if (!isCanceled(error)) change(id, { state: "failed", error: toFailure(error).message });
  }
}

/** Fetch a kept result from the service; it is forgotten if the service has deleted it. */
export async function fetchResult(id: string): Promise<Output> {
  try {
    const { data } = await send("GET", `jobs/${encodeURIComponent(id)}/result`);
    return await readOutput(new Uint8Array(data), "");
  } catch (error) {
    if (error instanceof ApiError && ["no_result", "job_not_found"].includes(error.code)) forget(id);
    throw error;
  }
}
