import { BoxGeometry, CylinderGeometry, IcosahedronGeometry, Vector3, type BufferGeometry } from "three";
import { expect, test } from "vitest";

import { findNormals } from "../src/viewer/creases";

function listCorners(geometry: BufferGeometry): Float32Array {
  const separate = geometry.index ? geometry.toNonIndexed() : geometry;
  return separate.getAttribute("position").array as Float32Array;
}

function at(array: Float32Array, corner: number): Vector3 {
  return new Vector3().fromArray(array, 3 * corner);
}

test.each([0.001, 1, 1000])("edges of a box of %f stay sharp", (side) => {
  const corners = listCorners(new BoxGeometry(side, side, side));
  const normals = findNormals(corners);
  for (let corner = 0; corner < 36; corner++) {
    const { x, y, z } = at(normals, corner);
    expect([x, y, z].map(Math.abs).sort()).toEqual([0, 0, expect.closeTo(1, 6)]);
    expect(at(normals, corner).dot(at(corners, corner))).toBeCloseTo(side / 2, 6);
  }
});

test.each([0.001, 1000])("a ball of radius %f is smooth", (radius) => {
  const corners = listCorners(new IcosahedronGeometry(radius, 12));
  const normals = findNormals(corners);
  for (let corner = 0; corner < corners.length / 3; corner++) {
    expect(at(normals, corner).angleTo(at(corners, corner))).toBeLessThan(0.03);
    expect(at(normals, corner).length()).toBeCloseTo(1, 5);
  }
});

test("a small cylinder is smooth around, and sharp at its ends", () => {
  const corners = listCorners(new CylinderGeometry(0.002, 0.002, 0.004, 48));
  const normals = findNormals(corners);
  const isWall: boolean[] = [];
  for (let corner = 0; corner < corners.length / 3; corner++) {
    const normal = at(normals, corner);
    const outward = at(corners, corner).setY(0).normalize();
    isWall.push(Math.abs(normal.y) < 1e-5);
    if (isWall.at(-1)) expect(normal.angleTo(outward)).toBeLessThan(1e-3);
    else expect(Math.abs(normal.y)).toBeCloseTo(1, 5);
  }
  expect(isWall.filter(Boolean)).toHaveLength(48 * 6);
});

test("triangles without area have no direction, and change no other", () => {
  const flat = [0, 0, 0, 1, 0, 0, 0, 1, 0];
  const normals = findNormals(new Float32Array([...flat, 0, 0, 0, 1, 0, 0, 1, 0, 0]));
  expect([...normals]).toEqual([0, 0, 1, 0, 0, 1, 0, 0, 1, ...(Array(9).fill(0) as number[])]);
});

test("a fan of many triangles keeps their own directions at its tip", () => {
  const corners = listCorners(new CylinderGeometry(0, 1, 0.01, 20_000, 1, true));
  const normals = findNormals(corners);
  expect(normals.every(Number.isFinite)).toBe(true);
});
