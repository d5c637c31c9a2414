/** Surfaces that only one of two models has. */

import { SurfaceIndex } from "./surface-index";

/** Share of the diagonal by which a surface may move without being new; rounding of 32-bit formats stays below it. */
const TOLERANCE_RATIO = 2e-4;
/** Share of new triangles above which the whole model moved or was scaled, so that color would say nothing. */
const MAX_CHANGED_RATIO = 0.5;

/** Part of a model: a mesh, and the matrix that places it, column by column as in three.js. */
export interface PlacedMesh {
  positions: Float32Array;
  index: ArrayLike<number> | null;
  matrix: readonly number[];
}

export interface Differences {
  /** Corners of triangles of the first model that the second one lacks. */
  removed: Float32Array<ArrayBuffer>;
  /** Corners of triangles of the second model that the first one lacks. */
  added: Float32Array<ArrayBuffer>;
}

/** Return what differs between two models; nothing if most of it does. */
export function findDifferences(before: PlacedMesh[], after: PlacedMesh[]): Differences {
  const [old, now] = [collectTriangles(before), collectTriangles(after)];
  const nothing = { removed: new Float32Array(), added: new Float32Array() };
  if (old.length === 0 || now.length === 0) return nothing;
  const tolerance = measureDiagonal(old) * TOLERANCE_RATIO;
  const removed = listMissing(old, new SurfaceIndex(now), tolerance);
  const added = listMissing(now, new SurfaceIndex(old), tolerance);
  const isOther = removed.length > old.length * MAX_CHANGED_RATIO || added.length > now.length * MAX_CHANGED_RATIO;
  return isOther ? nothing : { removed, added };
}

/** Return the corners of all placed triangles. */
function collectTriangles(meshes: PlacedMesh[]): Float32Array {
  const counts = meshes.map(({ positions, index }) => 3 * (index?.length ?? positions.length / 3));
  const corners = new Float32Array(counts.reduce((sum, count) => sum + count, 0));
  let end = 0;
  for (const { positions, index, matrix } of meshes) {
    const count = index?.length ?? positions.length / 3;
    for (let corner = 0; corner < count; corner++) {
      const vertex = 3 * (index ? (index[corner] ?? 0) : corner);
      const [x = 0, y = 0, z = 0] = [positions[vertex], positions[vertex + 1], positions[vertex + 2]];
      for (let row = 0; row < 3; row++) {
        const [a = 0, b = 0, c = 0, d = 0] = [matrix[row], matrix[row + 4], matrix[row + 8], matrix[row + 12]];
        corners[end++] = a * x + b * y + c * z + d;
      }
    }
  }
  return corners;
}

function measureDiagonal(corners: Float32Array): number {
  const low = [Infinity, Infinity, Infinity];
  const high = [-Infinity, -Infinity, -Infinity];
  corners.forEach((value, offset) => {
    const axis = offset % 3;
    low[axis] = Math.min(low[axis] ?? 0, value);
    high[axis] = Math.max(high[axis] ?? 0, value);
  });
  return Math.hypot(...high.map((value, axis) => value - (low[axis] ?? 0)));
}

/** Return the triangles with a corner or a center farther than the tolerance from another surface. */
function listMissing(triangles: Float32Array, surface: SurfaceIndex, tolerance: number): Float32Array<ArrayBuffer> {
  const missing: number[] = [];
  for (let start = 0; start < triangles.length; start += 9) {
    const corners = triangles.subarray(start, start + 9);
    const point = (offset: number): [number, number, number] => [
      corners[offset] ?? 0,
      corners[offset + 1] ?? 0,
      corners[offset + 2] ?? 0,
    ];
    const [a, b, c] = [point(0), point(3), point(6)];
    const center = a.map((value, axis) => (value + (b[axis] ?? 0) + (c[axis] ?? 0)) / 3) as typeof a;
    if ([a, b, c, center].some((each) => !surface.isNear(...each, tolerance))) missing.push(...corners);
  }
  return new Float32Array(missing);
}
