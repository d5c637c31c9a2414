import { Vector3 } from "three";
import { expect, test } from "vitest";

import { mixOffsets, turnOffset } from "../src/viewer/orbit";

test("a turn moves the camera about Z", () => {
  const turned = turnOffset(new Vector3(0, -10, 0), Math.PI / 2, 0);
  expect(turned.distanceTo(new Vector3(10, 0, 0))).toBeCloseTo(0);
});

test("a tilt ends above the target", () => {
  const tilted = turnOffset(new Vector3(0, -10, 5), 0, -Math.PI);
  expect(tilted.z).toBeCloseTo(tilted.length(), 4);
  expect(tilted.y).toBeLessThan(0);
});

test("a flight takes the shorter way, at a distance from the model", () => {
  const [from, to] = [new Vector3(-1, -1e-3, 0), new Vector3(-3, 1e-3, 0)];
  const middle = mixOffsets(from, to, 0.5);
  expect(middle.distanceTo(new Vector3(-2, 0, 0))).toBeLessThan(1e-2);
  const opposite = mixOffsets(new Vector3(1, 0, 0), new Vector3(-1, 1e-3, 0), 0.5);
  expect(opposite.length()).toBeCloseTo(1);
});
