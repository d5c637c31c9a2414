/** Figures of a closed surface, measured from its triangles. */

import type { Triple } from "./types";

export interface ClosedSurface {
  faces: number;
  vertices: number;
  bodies: number;
  size: Triple;
  volume: number;
  area: number;
}

/**
 * Measure a surface of triangles.
 * @param positions Vertices in millimeters, three numbers for each.
 * @param corners Three vertex indices for each triangle; null if the vertices are in the order of the triangles.
 * @returns Null for a surface that is not closed, has a triangle without area, or faces inward.
 */
export function measureClosed(positions: Float32Array, corners: ArrayLike<number> | null): ClosedSurface | null {
  const { numbers, count } = weld(positions);
  const faces = corners ? Uint32Array.from(corners, (corner) => numbers[corner] ?? 0) : numbers;
  const faceCount = faces.length / 3;
  const bodies = faceCount > 0 ? countBodies(faces, count) : null;
  if (bodies === null) return null;
  let volume = 0;
  let area = 0;
  for (let face = 0; face < faceCount; face++) {
    const [a, b, c] = [0, 1, 2].map((corner) => 3 * (corners?.[3 * face + corner] ?? 3 * face + corner)) as Triple;
    const at = (offset: number): number => positions[offset] ?? NaN;
    const [ux, uy, uz] = [at(b) - at(a), at(b + 1) - at(a + 1), at(b + 2) - at(a + 2)];
    const [vx, vy, vz] = [at(c) - at(a), at(c + 1) - at(a + 1), at(c + 2) - at(a + 2)];
    const [nx, ny, nz] = [uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx];
    const double = Math.hypot(nx, ny, nz);
    if (!(double > 0)) return null;
    area += double / 2;
    // from the first vertex, so that a surface far from the origin keeps its digits
    volume += ((at(a) - at(0)) * nx + (at(a + 1) - at(1)) * ny + (at(a + 2) - at(2)) * nz) / 6;
  }
  if (volume <= 0) return null;
  return { faces: faceCount, vertices: count, bodies, size: measureSize(positions), volume, area };
}

/**
 * Give the same number to equal vertices.
 * @param values Position of each vertex, and what else it has.
 * @param width Numbers for each vertex.
 */
export function weld(values: Float32Array, width = 3): { numbers: Uint32Array; count: number } {
  // +0 and -0 are one position
  const bits = new Uint32Array(values.map((value) => value + 0).buffer);
  const total = values.length / width;
  const isEqual = (one: number, other: number): boolean => {
    for (let column = 0; column < width; column++) if (bits[one + column] !== bits[other + column]) return false;
    return true;
  };
  const numbers = new Uint32Array(total);
  const slots = new Int32Array(2 ** Math.ceil(Math.log2(2 * total + 1))).fill(-1);
  let count = 0;
  for (let vertex = 0; vertex < total; vertex++) {
    const row = width * vertex;
    const [x, y, z] = [bits[row] ?? 0, bits[row + 1] ?? 0, bits[row + 2] ?? 0];
    let hash = Math.imul(x, 0x9e3779b1) ^ Math.imul(y, 0x85ebca77) ^ Math.imul(z, 0xc2b2ae3d);
    hash ^= hash >>> 15;
    for (let slot = hash & (slots.length - 1); ; slot = (slot + 1) & (slots.length - 1)) {
      const other = slots[slot] ?? -1;
      if (other < 0) {
        slots[slot] = vertex;
        numbers[vertex] = count++;
        break;
      }
      if (isEqual(row, width * other)) {
        numbers[vertex] = numbers[other] ?? 0;
        break;
      }
    }
  }
  return { numbers, count };
}

/** Return the number of bodies whose triangles meet at edges; null if an edge does not join exactly two triangles. */
function countBodies(faces: Uint32Array, vertexCount: number): number | null {
  const faceOf = new Map<number, number>();
  const follow = (corner: number): number => (corner % 3 === 2 ? corner - 2 : corner + 1);
  const toKey = (from: number, to: number): number => (faces[from] ?? 0) * vertexCount + (faces[to] ?? 0);
  for (let corner = 0; corner < faces.length; corner++) {
    const key = toKey(corner, follow(corner));
    if (faceOf.has(key)) return null;
    faceOf.set(key, Math.floor(corner / 3));
  }
  const parents = Uint32Array.from({ length: faces.length / 3 }, (_, face) => face);
  const find = (face: number): number => {
    let root = face;
    while (parents[root] !== root) root = parents[root] = parents[parents[root] ?? 0] ?? 0;
    return root;
  };
  let bodies = parents.length;
  for (let corner = 0; corner < faces.length; corner++) {
    const neighbor = faceOf.get(toKey(follow(corner), corner));
    if (neighbor === undefined) return null;
    const [one, other] = [find(Math.floor(corner / 3)), find(neighbor)];
    if (one === other) continue;
    parents[one] = other;
    bodies--;
  }
  return bodies;
}

function measureSize(positions: Float32Array): Triple {
  const low = [Infinity, Infinity, Infinity];
  const high = [-Infinity, -Infinity, -Infinity];
  positions.forEach((value, index) => {
    low[index % 3] = Math.min(low[index % 3] ?? value, value);
    high[index % 3] = Math.max(high[index % 3] ?? value, value);
  });
  return [0, 1, 2].map((axis) => (high[axis] ?? 0) - (low[axis] ?? 0)) as Triple;
}
