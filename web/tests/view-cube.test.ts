import { expect, test } from "vitest";

import type { Triple } from "../src/types";
import {
  DIRECTIONS,
  isSeen,
  listCells,
  nameDirection,
  nearestDirection,
  placeSide,
  SIDES,
  turnDirection,
  type Orientation,
} from "../src/viewer/view-cube";

const cross = (a: Triple, b: Triple): Triple => [
  a[1] * b[2] - a[2] * b[1] + 0,
  a[2] * b[0] - a[0] * b[2] + 0,
  a[0] * b[1] - a[1] * b[0] + 0,
];
const unit = (a: Triple): Triple => a.map((value) => value / Math.hypot(...a)) as Triple;

/** Camera that looks from a direction, with Z up. */
function look(from: Triple): Orientation {
  const back = unit(from);
  const right = unit(cross([0, 0, 1], back));
  return { right, up: cross(back, right), back };
}

test("every side turns right, up and outward", () => {
  for (const { normal, right, up } of SIDES) expect(cross(right, up)).toEqual(normal);
});

test("the side in front of the camera is drawn upright", () => {
  const camera = look([0, -1, 0]);
  const seen = SIDES.filter((side) => isSeen(side, camera));
  expect(seen.map(({ name }) => name)).toEqual(["front"]);
  expect(seen.map((side) => placeSide(side, camera, 30).map((value) => Math.round(value) + 0))).toEqual([
    [1, 0, 0, 1, 0, 0],
  ]);
});

test("three sides are seen from a corner, in the half of the picture to which they look", () => {
  const camera = look([1, -1, 1]);
  const seen = SIDES.filter((side) => isSeen(side, camera));
  expect(seen.map(({ name }) => name)).toEqual(["front", "right", "top"]);
  const [front, right, top] = seen.map((side) => placeSide(side, camera, 30).slice(4));
  expect([Math.sign(front?.[0] ?? 0), Math.sign(right?.[0] ?? 0), Math.sign(top?.[1] ?? 0)]).toEqual([-1, 1, -1]);
});

test("the cells of all sides are the directions", () => {
  const cells = SIDES.flatMap(listCells).map(String);
  expect(new Set(cells)).toEqual(new Set(DIRECTIONS.map(String)));
  expect(DIRECTIONS).toHaveLength(26);
  const [front] = SIDES;
  if (front) expect(listCells(front)[0]).toEqual([-1, -1, 1]);
});

test("a direction has the names of its sides", () => {
  expect(nameDirection([1, -1, 0])).toEqual(["front", "right"]);
  expect(nearestDirection(look([1, -1.25, 0.85]))).toEqual([1, -1, 1]);
  expect(nearestDirection(look([0.1, -0.1, 9]))).toEqual([0, 0, 1]);
});

test("arrow keys reach every direction", () => {
  const reached = new Set<string>();
  const queue: Triple[] = [[0, -1, 0]];
  for (let next = queue.pop(); next; next = queue.pop()) {
    if (reached.has(String(next))) continue;
    reached.add(String(next));
    for (const key of ["ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown"]) {
      const turned = turnDirection(next, key);
      if (turned) queue.push(turned);
    }
  }
  expect(reached).toEqual(new Set(DIRECTIONS.map(String)));
  expect(turnDirection([0, -1, 0], "ArrowRight")).toEqual([1, -1, 0]);
  expect(turnDirection([0, 0, 1], "ArrowUp")).toBeNull();
  expect(turnDirection([0, 0, 1], "ArrowDown")).toEqual([0, -1, 1]);
  expect(turnDirection([1, 0, 0], "a")).toBeNull();
});
