import { expect, test } from "vitest";

import { angleAt, circleRadius, distanceBetween, measure } from "../src/viewer/measure";

test("distances, angles and radii", () => {
  expect(distanceBetween([0, 0, 0], [1, 2, 2])).toBe(3);
  expect(angleAt([1, 0, 0], [0, 0, 0], [0, 5, 0])).toBeCloseTo(90);
  expect(angleAt([1, 0, 0], [0, 0, 0], [-1, 1, 0])).toBeCloseTo(135);
  expect(circleRadius([3, 0, 0], [0, 3, 0], [-3, 0, 0])).toBeCloseTo(3);
  expect(circleRadius([0, 0, 0], [1, 0, 0], [2, 0, 0])).toBe(Infinity);
});

test("a tool measures its points", () => {
  expect(
    measure("thickness", [
      [0, 0, 0],
      [0, 0, 4],
    ]),
  ).toBe(4);
  expect(
    measure("angle", [
      [1, 0, 0],
      [0, 0, 0],
      [0, 1, 0],
    ]),
  ).toBeCloseTo(90);
  expect(
    measure("radius", [
      [1, 0, 0],
      [0, 1, 0],
      [-1, 0, 0],
    ]),
  ).toBeCloseTo(1);
});
