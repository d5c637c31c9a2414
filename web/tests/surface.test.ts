import { BoxGeometry, IcosahedronGeometry, Matrix4, TorusGeometry, type BufferGeometry } from "three";
import { mergeGeometries } from "three/examples/jsm/utils/BufferGeometryUtils.js";
import { expect, test } from "vitest";

import { measureClosed, weld } from "../src/surface";

function measure(geometry: BufferGeometry) {
  const positions = geometry.getAttribute("position").array as Float32Array;
  return measureClosed(positions, geometry.getIndex()?.array ?? null);
}

function without(geometry: BufferGeometry, first: number, count: number): BufferGeometry {
  const corners = Array.from(geometry.getIndex()?.array ?? []);
  corners.splice(first, count);
  return geometry.setIndex(corners);
}

test.each([
  ["with numbered vertices", new BoxGeometry(10, 20, 30)],
  ["as separate triangles", new BoxGeometry(10, 20, 30).toNonIndexed()],
])("a box %s", (_, geometry) => {
  expect(measure(geometry)).toEqual({
    faces: 12,
    vertices: 8,
    bodies: 1,
    size: [10, 20, 30],
    volume: expect.closeTo(6000, 2) as number,
    area: expect.closeTo(2200, 2) as number,
  });
});

test("bodies are counted, also if they touch at a vertex", () => {
  const box = new BoxGeometry(2, 2, 2);
  const apart = mergeGeometries([box, box.clone().translate(5, 0, 0)]);
  const touching = mergeGeometries([box, box.clone().translate(2, 2, 2)]);
  expect(measure(apart)?.bodies).toBe(2);
  expect(measure(touching)).toMatchObject({ bodies: 2, vertices: 15 });
});

test("a position far from the origin does not change the volume", () => {
  const geometry = new IcosahedronGeometry(10, 4).translate(4096, -4096, 8192);
  const exact = measure(new IcosahedronGeometry(10, 4))?.volume ?? 0;
  expect(Math.abs((measure(geometry)?.volume ?? 0) / exact - 1)).toBeLessThan(1e-3);
});

test.each([
  ["an open surface", without(new BoxGeometry(1, 1, 1), 0, 3)],
  [
    "a surface whose triangles face both ways",
    mergeGeometries([without(new BoxGeometry(1, 1, 1), 0, 6), flipped(0, 6)]),
  ],
  ["a surface that faces inward", new TorusGeometry(4, 1).applyMatrix4(new Matrix4().makeScale(-1, 1, 1))],
  [
    "boxes that share an edge",
    mergeGeometries([new BoxGeometry(2, 2, 2), new BoxGeometry(2, 2, 2).translate(2, 2, 0)]),
  ],
  ["nothing", without(new BoxGeometry(1, 1, 1), 0, 36)],
])("%s has no figures", (_, geometry) => {
  expect(measure(geometry)).toBeNull();
});

/** Return triangles of a box, turned around. */
function flipped(first: number, count: number): BufferGeometry {
  const box = new BoxGeometry(1, 1, 1);
  const corners = Array.from(box.getIndex()?.array ?? []).slice(first, first + count);
  return box.setIndex(corners.reverse());
}

test("equal positions have one number, whatever the sign of zero", () => {
  const { numbers, count } = weld(new Float32Array([0, 1, 2, -0, 1, 2, 0, 1, 3]));
  expect([...numbers]).toEqual([0, 0, 1]);
  expect(count).toBe(2);
});
