import { Matrix4 } from "three";
import { expect, test } from "vitest";

import { findDifferences, type PlacedMesh } from "../src/viewer/differences";
import { SurfaceIndex } from "../src/viewer/surface-index";

/** A box of 10 mm whose sides are grids of triangles, without some of its sides. */
function box(count: number, sides = 6, matrix = new Matrix4()): PlacedMesh {
  const positions: number[] = [];
  const step = 10 / count;
  for (let side = 0; side < sides; side++) {
    const axis = side >> 1;
    const place = (u: number, v: number): number[] => {
      const point = [0, 0, 0];
      point[axis] = side % 2 === 0 ? 0 : 10;
      point[(axis + 1) % 3] = u;
      point[(axis + 2) % 3] = v;
      return point;
    };
    for (let u = 0; u < 10; u += step) {
      for (let v = 0; v < 10; v += step) {
        const [a, b, c, d] = [place(u, v), place(u + step, v), place(u + step, v + step), place(u, v + step)];
        positions.push(...a, ...b, ...c, ...a, ...c, ...d);
      }
    }
  }
  return { positions: new Float32Array(positions), index: null, matrix: matrix.elements };
}

test("an index finds points near a surface", () => {
  const { positions } = box(5);
  const index = new SurfaceIndex(positions);
  for (const point of [
    [5, 5, 10],
    [0, 3, 7],
    [10, 10, 10],
    [5, -0.009, 5],
  ] as [number, number, number][]) {
    expect([point, index.isNear(...point, 0.01)]).toEqual([point, true]);
  }
  for (const point of [
    [5, 5, 5],
    [5, 5, 10.02],
    [-1, -1, -1],
  ] as [number, number, number][]) {
    expect([point, index.isNear(...point, 0.01)]).toEqual([point, false]);
  }
  expect(new SurfaceIndex(new Float32Array()).isNear(0, 0, 0, 1)).toBe(false);
});

test("a side that was added is found, also if the others have other triangles", () => {
  const { removed, added } = findDifferences([box(2, 5)], [box(5)]);
  expect(removed).toHaveLength(0);
  // 5 × 5 squares of two triangles of nine numbers; those at the rim lie near the other sides only with their corners
  expect(added).toHaveLength(5 * 5 * 2 * 9);
});

test("rounding and instances change nothing, another place everything", () => {
  const same = findDifferences([box(3)], [box(3, 6, new Matrix4().makeTranslation(1e-4, 0, 0))]);
  expect([same.removed.length, same.added.length]).toEqual([0, 0]);
  const moved = findDifferences([box(3)], [box(3, 6, new Matrix4().makeTranslation(3, 3, 3))]);
  expect([moved.removed.length, moved.added.length]).toEqual([0, 0]);
});

test("an index of vertices is followed", () => {
  const square = new Float32Array([0, 0, 0, 10, 0, 0, 10, 10, 0, 0, 10, 0]);
  const identity = new Matrix4().elements;
  const whole = { positions: square, index: [0, 1, 2, 0, 2, 3], matrix: identity };
  const half = { positions: square, index: [0, 1, 2], matrix: identity };
  expect(Array.from(findDifferences([whole], [half]).removed)).toEqual([0, 0, 0, 10, 10, 0, 0, 10, 0]);
});
