import { Box3, Vector3 } from "three";
import { expect, test } from "vitest";

import { fitsBed } from "../src/printers";
import { listBedLines, listBoxLines } from "../src/viewer/marks";
import { toPlane } from "../src/viewer/section";

test("a bed has a line each centimeter, and a stronger one each five", () => {
  const { minor, major } = listBedLines([-100, -50, 2], 200, 100);
  expect(major.length / 6).toBe(5 + 3);
  expect((minor.length + major.length) / 6).toBe(21 + 11);
  const points = Array.from({ length: major.length / 3 }, (_, index) => major.slice(3 * index, 3 * index + 3));
  expect(points.every(([x = 0, y = 0, z]) => Math.abs(x) <= 100 && Math.abs(y) <= 50 && z === 2)).toBe(true);
});

test("a box has twelve edges along the axes", () => {
  const lines = listBoxLines([0, 0, 0], [1, 2, 3]);
  const lengths = Array.from({ length: 12 }, (_, edge) => {
    const [x = 0, y = 0, z = 0] = [0, 1, 2].map(
      (axis) => (lines[6 * edge + 3 + axis] ?? 0) - (lines[6 * edge + axis] ?? 0),
    );
    return x + y + z;
  });
  expect(lines).toHaveLength(72);
  expect(lengths.sort()).toEqual([1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]);
});

test("a section shows one side of its plane", () => {
  const box = new Box3(new Vector3(-10, 0, 0), new Vector3(10, 5, 5));
  const plane = toPlane({ axis: "x", position: 0.75, isFlipped: false }, box);
  expect(plane.distanceToPoint(new Vector3(-10, 0, 0))).toBe(15);
  expect(plane.distanceToPoint(new Vector3(10, 0, 0))).toBe(-5);
  const flipped = toPlane({ axis: "x", position: 0.75, isFlipped: true }, box);
  expect(flipped.distanceToPoint(new Vector3(10, 0, 0))).toBe(5);
});

test("a model fits on a bed as it stands or turned by a quarter", () => {
  const bed: [number, number, number] = [250, 210, 220];
  expect(fitsBed([200, 240, 10], bed)).toBe(true);
  expect(fitsBed([220, 240, 10], bed)).toBe(false);
  expect(fitsBed([10, 10, 230], bed)).toBe(false);
  // Less than one part in a million is rounding.
  expect(fitsBed([250.0000001, 210.0000001, 220.0000001], bed)).toBe(true);
  expect(fitsBed([10, 10, 220.001], bed)).toBe(false);
});
