/** Jobs of the service: submit a conversion, follow its progress, and take its result. */

import { isFinished, readEvents, type Job } from "./job-events";
import { ApiError, CANCELED, getJson, OFFLINE, openStream, PASSING_CODES, send, sleep, type Answer } from "./requests";

interface Watch {
  signal: AbortSignal;
  /** Called with each state of the job. */
  onJob?: ((job: Job) => void) | undefined;
  /** Called when the connection breaks; the job goes on, and the page connects again. */
  onLost?: (() => void) | undefined;
}

interface Submission extends Watch {
  onUpload?: ((share: number) => void) | undefined;
}

/** Milliseconds before the page connects again, by the number of failures in a row. */
const BACKOFF_MS = [500, 1000, 2000, 4000, 8000, 15_000];
/** Answers of a proxy while the service behind it starts again. */
const GATEWAY_CODES = new Set(["http_502", "http_503", "http_504"]);

/** Run a form of a conversion as a job, and return its result. Aborting cancels the job on the service. */
export async function runJob(body: FormData, { onUpload, ...watch }: Submission): Promise<Answer> {
  body.set("kind", "convert");
  const job = await getJson<Job>("jobs", { body, signal: watch.signal, onUpload });
  watch.onJob?.(job);
  return finishJob(job.id, watch);
}

/** Follow a job that was submitted, also before the page was loaded again, and return its result. */
export async function finishJob(id: string, watch: Watch): Promise<Answer> {
  try {
    const job = await follow(id, watch);
    if (job.state === "done") return await persist(watch, () => send("GET", `${pathOf(id)}/result`, watch));
    const failed = job.details?.[0];
    const message = failed?.error ?? job.error ?? job.state;
    throw new ApiError(message, job.error_code ?? job.state, "", null, failed?.values ?? job.error_values);
  } catch (error) {
    if (!watch.signal.aborted) throw error;
    void send("DELETE", pathOf(id)).catch(() => undefined);
    throw new ApiError("", CANCELED);
  }
}

function follow(id: string, watch: Watch): Promise<Job> {
  return persist(watch, async (restart) => {
    for await (const job of readEvents(await openStream(`${pathOf(id)}/events`, watch.signal))) {
      restart();
      watch.onJob?.(job);
      if (isFinished(job)) return job;
    }
    // A proxy ended the stream, or the service stops.
    throw new ApiError("", OFFLINE);
  });
}

/** Repeat a step until it succeeds, as long as only the connection fails. `restart` resets the number of failures. */
async function persist<Result>(watch: Watch, step: (restart: () => void) => Promise<Result>): Promise<Result> {
  let failures = 0;
  for (;;) {
    try {
      return await step(() => (failures = 0));
    } catch (error) {
      if (watch.signal.aborted || !isConnectionLost(error)) throw error;
      // Long streams end at the timeout of a proxy; only a failure to connect again is worth a message.
      if (failures > 0) watch.onLost?.();
      await sleep(BACKOFF_MS[Math.min(failures++, BACKOFF_MS.length - 1)] ?? 0, watch.signal);
    }
  }
}

function isConnectionLost(error: unknown): boolean {
  // fetch and the reader of its stream report a broken connection as a TypeError.
  if (!(error instanceof ApiError)) return error instanceof TypeError;
  return error.code === OFFLINE || PASSING_CODES.has(error.code) || GATEWAY_CODES.has(error.code);
}

function pathOf(id: string): string {
  return `jobs/${encodeURIComponent(id)}`;
}
