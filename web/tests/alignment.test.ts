import { Box3, Matrix4, Vector3 } from "three";
import { expect, test } from "vitest";

import type { Report } from "../src/types";
import { findMotion, findShift } from "../src/viewer/alignment";

function report(...transforms: unknown[]): Report {
  const steps = transforms.map((transform) => ({ step: "", kind: "", seconds: 0, figures: { transform } }));
  return { source: { format: "stl" }, target: { format: "3mf" }, steps };
}

const twice = [2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1];
const shifted = [1, 0, 0, 5, 0, 1, 0, 0, 0, 0, 1, -3, 0, 0, 0, 1];

test("the motions of all steps follow each other", () => {
  const move = (...transforms: unknown[]) =>
    new Vector3(1, 2, 3).applyMatrix4(findMotion(report(...transforms)) ?? new Matrix4()).toArray();
  expect(move(twice)).toEqual([2, 4, 6]);
  expect(move(twice, shifted)).toEqual([7, 4, 3]);
  expect(move(shifted, twice)).toEqual([12, 4, 0]);
});

test("steps without a valid motion move nothing", () => {
  for (const transform of [undefined, 4, [1, 2, 3], twice.map(String), twice.map(() => 0)]) {
    expect(findMotion(report(transform))).toBeNull();
  }
  expect(findMotion(null)).toBeNull();
});

test("a model that left its place is found by its box", () => {
  const box = (x: number, size = 10) => new Box3(new Vector3(x, 0, 0), new Vector3(x + size, 10, 10));
  expect(findShift(box(0), box(0.01))).toBeNull();
  expect(new Vector3().applyMatrix4(findShift(box(0), box(5)) ?? new Matrix4()).toArray()).toEqual([5, 0, 0]);
  // a cut model has another size, and did not move
  expect(findShift(box(0), box(5, 5))).toBeNull();
  expect(findShift(new Box3(), box(0))).toBeNull();
  expect(new Vector3().applyMatrix4(findShift(box(0), box(100)) ?? new Matrix4()).toArray()).toEqual([100, 0, 0]);
});
