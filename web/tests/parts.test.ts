import { expect, test } from "vitest";

import { listIsolated } from "../src/parts";

/** Two groups of two parts each, and a part beside them. */
const depths = [0, 1, 1, 0, 1, 1, 0];

test("an isolated part is shown with its groups", () => {
  expect(listIsolated(depths, 2)).toEqual([true, false, true, false, false, false, false]);
  expect(listIsolated([0, 1, 2, 1, 2], 4)).toEqual([true, false, false, true, true]);
});

test("an isolated group is shown with its parts", () => {
  expect(listIsolated(depths, 3)).toEqual([false, false, false, true, true, true, false]);
  expect(listIsolated(depths, 6)).toEqual([false, false, false, false, false, false, true]);
});
