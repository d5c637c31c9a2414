import { expect, test } from "vitest";

import { readEvents, shareOf, type Job } from "../src/job-events";

const job = (change: Partial<Job>): Job => ({
  id: "1",
  state: "running",
  position: null,
  missing_memory_bytes: null,
  progress: null,
  error: null,
  error_code: null,
  details: null,
  expires: null,
  ...change,
});

test("events are read across chunks; comments are skipped", async () => {
  const text = `data: ${JSON.stringify(job({ position: 2 }))}\n\n: still waiting\n\ndata: ${JSON.stringify(job({ state: "done" }))}\n\n`;
  const chunks = [text.slice(0, 25), text.slice(25, 200), text.slice(200)];
  const stream = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(new TextEncoder().encode(chunk));
      controller.close();
    },
  });
  const states: string[] = [];
  for await (const { state } of readEvents(stream)) states.push(state);
  expect(states).toEqual(["running", "done"]);
});

test("the share of a job counts its finished steps", () => {
  expect(shareOf(job({}))).toBeNull();
  expect(shareOf(job({ progress: { label: "Repair", index: 1, count: 4, fraction: 0.5 } }))).toBe(0.375);
});
