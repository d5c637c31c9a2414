import { IcosahedronGeometry, PlaneGeometry, type BufferGeometry } from "three";
import { mergeVertices } from "three/examples/jsm/utils/BufferGeometryUtils.js";
import { expect, test } from "vitest";

import { measureClosed } from "../src/surface";
import { simplify, weldMesh, type Column, type SourceMesh } from "../src/viewer/simplification";

function toSource(geometry: BufferGeometry, columns: Record<string, Column> = {}): SourceMesh {
  return {
    positions: geometry.getAttribute("position").array as Float32Array,
    index: geometry.index?.array ?? null,
    columns,
  };
}

function weldGeometry(geometry: BufferGeometry): BufferGeometry {
  geometry.deleteAttribute("normal");
  geometry.deleteAttribute("uv");
  return mergeVertices(geometry);
}

test.each([
  ["ball of separate triangles", new IcosahedronGeometry(10, 30)],
  ["ellipsoid with numbered vertices", weldGeometry(new IcosahedronGeometry(10, 20).scale(1, 2, 3))],
])("a %s keeps its shape with a tenth of its triangles", async (_, geometry) => {
  const mesh = weldMesh(toSource(geometry));
  const before = measureClosed(mesh.positions, mesh.corners);
  const { positions, normals } = await simplify(mesh, 0.1);
  const after = measureClosed(positions, null);
  expect(before).not.toBeNull();
  expect(after?.bodies).toBe(1);
  expect(after?.faces).toBeLessThanOrEqual((before?.faces ?? 0) / 10);
  expect(after?.faces).toBeGreaterThan((before?.faces ?? 0) / 12);
  expect((after?.volume ?? 0) / (before?.volume ?? 1)).toBeCloseTo(1, 1);
  expect(normals).toHaveLength(positions.length);
});

test("nothing vanishes", async () => {
  const mesh = weldMesh(toSource(new IcosahedronGeometry(10, 1)));
  expect((await simplify(mesh, 0)).positions.length / 9).toBeGreaterThanOrEqual(4);
  expect((await simplify(mesh, 1)).positions.length / 9).toBe(80);
});

test("texture coordinates stay at their places, and seams stay seams", async () => {
  const plane = new PlaneGeometry(10, 10, 40, 40).toNonIndexed();
  const positions = plane.getAttribute("position").array as Float32Array;
  // the left half shows another part of the texture than the right one
  const toU = (x: number, isLeft: boolean): number => x / 40 + (isLeft ? 0.25 : 0.75);
  const uv = new Float32Array((positions.length / 3) * 2);
  for (let corner = 0; corner < positions.length / 3; corner++) {
    const face = 9 * Math.floor(corner / 3);
    const isLeft = (positions[face] ?? 0) + (positions[face + 3] ?? 0) + (positions[face + 6] ?? 0) < 0;
    uv[2 * corner] = toU(positions[3 * corner] ?? 0, isLeft);
    uv[2 * corner + 1] = (positions[3 * corner + 1] ?? 0) / 10 + 0.5;
  }
  const mesh = weldMesh(toSource(plane, { uv: { array: uv, itemSize: 2, normalized: false } }));
  expect(mesh.positions.length / 3).toBe(41 * 41 + 41);
  const simple = await simplify(mesh, 0.05);
  const kept = simple.columns["uv"]?.array ?? new Float32Array();
  expect(simple.positions.length / 9).toBeLessThan(200);
  for (let face = 0; face < simple.positions.length / 9; face++) {
    const x = [0, 3, 6].map((offset) => simple.positions[9 * face + offset] ?? 0);
    const isLeft = x.reduce((sum, value) => sum + value, 0) < 0;
    expect([0, 2, 4].map((offset) => kept[6 * face + offset])).toEqual(
      x.map((value) => expect.closeTo(toU(value, isLeft), 5) as number),
    );
  }
});

test("colors do not mix", async () => {
  const ball = new IcosahedronGeometry(10, 20);
  const positions = ball.getAttribute("position").array as Float32Array;
  const colors = new Uint8Array(positions.length);
  for (let face = 0; face < positions.length / 9; face++) {
    const isUpper =
      (positions[9 * face + 2] ?? 0) + (positions[9 * face + 5] ?? 0) + (positions[9 * face + 8] ?? 0) > 0;
    for (const corner of [0, 1, 2]) colors.set(isUpper ? [255, 0, 0] : [0, 0, 255], 9 * face + 3 * corner);
  }
  const mesh = weldMesh(toSource(ball, { color: { array: colors, itemSize: 3, normalized: true } }));
  const simple = await simplify(mesh, 0.2);
  const kept = simple.columns["color"]?.array ?? new Float32Array();
  const faces = Array.from({ length: kept.length / 9 }, (_, face) => [...kept.slice(9 * face, 9 * face + 9)].join());
  expect(new Set(faces)).toEqual(new Set(["1,0,0,1,0,0,1,0,0", "0,0,1,0,0,1,0,0,1"]));
});
