/** Jobs of the service: submit a conversion, follow its progress, and take its result. */

import { readEvents, type Job } from "./job-events";
import { ApiError, CANCELLED, getJson, OFFLINE, openStream, send, type Answer } from "./requests";

interface Request {
  signal: AbortSignal;
  onUpload?: ((share: number) => void) | undefined;
  onJob?: ((job: Job) => void) | undefined;
}

/** Attempts to follow a job after its stream ended early, for example in a proxy with a timeout. */
const MAX_STREAMS = 20;

/** Run a form of a conversion as a job, and return its result. Aborting cancels the job on the service. */
export async function runJob(body: FormData, { signal, onUpload, onJob }: Request): Promise<Answer> {
  body.set("kind", "convert");
  const { id } = await getJson<Job>("jobs", { body, signal, onUpload });
  const path = `jobs/${encodeURIComponent(id)}`;
  try {
    const job = await follow(path, signal, onJob);
    if (job.state !== "done") {
      throw new ApiError(job.details?.[0]?.error ?? job.error ?? job.state, job.error_code ?? job.state);
    }
    return await send("GET", `${path}/result`, { signal });
  } catch (error) {
    if (!signal.aborted) throw error;
    void send("DELETE", path).catch(() => undefined);
    throw new ApiError("", CANCELLED);
  }
}

async function follow(path: string, signal: AbortSignal, onJob?: (job: Job) => void): Promise<Job> {
  for (let stream = 0; stream < MAX_STREAMS; stream++) {
    for await (const job of readEvents(await openStream(`${path}/events`, signal))) {
      if (["done", "failed", "canceled", "expired"].includes(job.state)) return job;
      onJob?.(job);
    }
  }
  throw new ApiError("", OFFLINE);
}
