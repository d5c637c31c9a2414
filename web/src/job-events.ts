/** States of jobs, as the service streams them. */

import type { Values } from "./i18n";
import type { Failed } from "./requests";

export interface Job {
  id: string;
  state: "queued" | "running" | "done" | "failed" | "canceled" | "expired";
  position: number | null;
  /** Memory of a worker that the job waits for, because none has as much. */
  missing_memory_bytes: number | null;
  progress: { label: string; index: number; count: number; fraction: number | null } | null;
  error: string | null;
  error_code: string | null;
  error_values?: Values;
  details: Failed[] | null;
  /** Second since 1970 at which the result is deleted. */
  expires: number | null;
}

export function isFinished({ state }: Job): boolean {
  return !["queued", "running"].includes(state);
}

/** Yield the data of server-sent events. EventSource cannot send the header with the API key. */
export async function* readEvents<Data = Job>(stream: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<Data> {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const events = (text + part.value).split("\n\n");
    text = events.pop() ?? "";
    for (const event of events) {
      const data = event.split("\n").filter((line) => line.startsWith("data: "));
      if (data.length > 0) yield JSON.parse(data.map((line) => line.slice(6)).join("\n")) as Data;
    }
  }
}

/** Return the finished share of a running job, 0 to 1; null if unknown. */
export function shareOf({ progress }: Job): number | null {
  if (!progress || progress.count === 0) return null;
  return (progress.index + (progress.fraction ?? 0)) / progress.count;
}
