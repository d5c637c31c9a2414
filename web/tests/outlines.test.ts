import { expect, test } from "vitest";

import { areOutlines } from "../src/viewer/outlines";

const corners = [
  [0, 0, 0],
  [1, 0, 0],
  [1, 1, 0],
  [0, 1, 0],
];
const square = corners.flatMap((corner, index) => [...corner, ...(corners[(index + 1) % 4] ?? [])]);

test("edges that join are outlines, and single strokes are not", () => {
  expect(areOutlines(new Float32Array(square))).toBe(true);
  expect(areOutlines(new Float32Array())).toBe(true);
  expect(areOutlines(new Float32Array([...square, 5, 5, 0, 6, 5, 0]))).toBe(false);
});
