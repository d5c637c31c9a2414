import { expect, test } from "vitest";

import { runAtOnce } from "../src/lanes";

test.each([
  [2, true, ["start a", "start b", "end a", "start c", "end b", "end c"]],
  [1, true, ["start a", "end a", "start b", "end b", "start c", "end c"]],
  [2, false, ["start a", "start b", "end a", "end b"]],
])("%i tasks run at once and start in order, until one stops them", async (limit, goesOn, expected) => {
  const events: string[] = [];
  const run = async (name: string): Promise<boolean> => {
    events.push(`start ${name}`);
    // "a" ends before "b"
    for (let turn = 0; turn < name.charCodeAt(0); turn++) await Promise.resolve();
    events.push(`end ${name}`);
    return goesOn;
  };
  await runAtOnce(["a", "b", "c"], limit, run);
  expect(events).toEqual(expected);
});
