import { expect, test } from "vitest";

import { Undo } from "../src/undo";

test("values are restored in both directions", () => {
  const undo = new Undo<number>();
  expect([undo.canUndo, undo.undo(0)]).toEqual([false, undefined]);
  undo.record(0, "a");
  undo.record(1, "b");
  expect(undo.undo(2)).toBe(1);
  expect(undo.undo(1)).toBe(0);
  expect([undo.canUndo, undo.canRedo]).toEqual([false, true]);
  expect(undo.redo(0)).toBe(1);
  expect(undo.redo(1)).toBe(2);
  expect(undo.canRedo).toBe(false);
});

test("changes of one topic in a row are undone together", () => {
  const undo = new Undo<string>();
  for (const text of ["", "4", "40"]) undo.record(text, "height");
  expect(undo.undo("400")).toBe("");
  undo.record("", "height");
  undo.pause();
  undo.record("5", "height");
  expect(undo.undo("50")).toBe("5");
});

test("a change after an undo forgets what was undone", () => {
  const undo = new Undo<number>();
  undo.record(0, "a");
  undo.undo(1);
  undo.record(0, "b");
  expect(undo.canRedo).toBe(false);
});

test("the oldest values are forgotten", () => {
  const undo = new Undo<number>(2);
  for (const value of [0, 1, 2]) undo.record(value, String(value));
  expect([undo.undo(3), undo.undo(2), undo.undo(1)]).toEqual([2, 1, undefined]);
});
