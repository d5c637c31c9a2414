import { expect, test, vi } from "vitest";

import type { Plan } from "../src/types";

vi.stubGlobal("location", { search: "?lang=en" });
vi.stubGlobal("navigator", { languages: [] });
const { describeRetention } = await import("../src/retention");

function plan(seconds: number | null): Plan {
  const limits = {
    max_file_bytes: 1,
    max_batch_files: 1,
    requests_per_minute: 1,
    max_unfinished_jobs: null,
    job_retention_seconds: seconds,
  };
  return {
    plan: "free",
    label: "Free",
    limits,
    inventories: [],
    usage: { requests_remaining: 1, resets_in_seconds: 0 },
  };
}

test.each([
  ["mesh.example", plan(3600), true, "Your files stay on this server for 1 hour, then it deletes them."],
  ["mesh.example", plan(1800), true, "Your files stay on this server for 30 minutes, then it deletes them."],
  ["mesh.example", plan(86_400), true, "Your files stay on this server for 24 hours, then it deletes them."],
  ["mesh.example", plan(null), true, "Your files stay on this server."],
  ["mesh.example", plan(3600), false, "Your files stay on this server."],
  ["mesh.example", null, true, "Your files stay on this server."],
  ["localhost", plan(3600), true, "Your files stay on this machine."],
  ["127.0.0.1", null, false, "Your files stay on this machine."],
])("on %s, the page says how long files stay", (host, limits, hasJobs, expected) => {
  expect(describeRetention(host, limits, hasJobs)).toBe(expected);
});
