import { expect, test } from "vitest";

import { fitOutline, type Frame } from "../src/viewer/fit";

const frame: Frame = { right: [1, 0, 0], up: [0, 0, 1], back: [0, -1, 0], tangents: [0.5, 0.5], isOrthographic: false };

/** Corners of a box. */
function box(low: number[], high: number[]): number[] {
  return Array.from({ length: 8 }, (_, corner) =>
    low.map((value, axis) => ((corner >> axis) & 1 ? (high[axis] ?? 0) : value)),
  ).flat();
}

test("a square in front of the camera fills the view", () => {
  const { target, distance } = fitOutline([-10, 0, -10, 10, 0, 10], [0, 0, 0], frame);
  expect(target).toEqual([0, 0, 0]);
  expect(distance).toBe(20);
});

test("the near side of a box decides in perspective, its size alone otherwise", () => {
  const points = box([-10, -10, -10], [10, 10, 10]);
  expect(fitOutline(points, [0, 0, 0], frame).distance).toBe(30);
  expect(fitOutline(points, [0, 0, 0], { ...frame, isOrthographic: true }).distance).toBe(20);
});

test("an outline beside the center is moved to the middle", () => {
  const { target, distance } = fitOutline([0, 5, 0, 20, 5, 4], [0, 5, 0], frame);
  expect(target).toEqual([10, 5, 2]);
  expect(distance).toBe(20);
});

test("no point is outside of the view, and some are at its border", () => {
  const points = box([-3, -40, 0], [50, 10, 7]);
  const { target, distance } = fitOutline(points, [20, 0, 3], frame);
  const sides: number[] = [];
  for (let offset = 0; offset < points.length; offset += 3) {
    const [x = 0, y = 0, z = 0] = [0, 1, 2].map((axis) => (points[offset + axis] ?? 0) - (target[axis] ?? 0));
    const depth = distance + y;
    sides.push(Math.abs(x) / depth / 0.5, Math.abs(z) / depth / 0.5);
  }
  expect(Math.max(...sides)).toBeCloseTo(1);
});
