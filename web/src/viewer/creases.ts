/** Normals of a surface that is smooth, except at sharp edges. */

import { weld } from "../surface";

/** Steps of the largest coordinate; closer vertices are welded, because programs round. */
const STEPS = 1e6;
/** Degrees between two triangles from which their edge stays sharp, and is drawn as in a technical drawing. */
export const SHARP_EDGE_DEG = 30;
/** Maximum triangles at a vertex whose normals are compared with each other; more stay flat. */
const MAX_COMPARED = 500;

/**
 * Return a normal for each corner: the mean of those triangles at its vertex that face almost as its own does, by their
 * angles at the vertex, so that it does not depend on how a surface is divided.
 * @param positions Corners of the triangles, nine numbers for each.
 */
export function findNormals(positions: Float32Array): Float32Array<ArrayBuffer> {
  const { numbers: vertices, count } = weld(snap(positions));
  const faceNormals = findFaceNormals(positions);
  const angles = findAngles(positions);
  // corners of each vertex, one vertex after the other
  const ends = new Uint32Array(count);
  for (const vertex of vertices) ends[vertex] = (ends[vertex] ?? 0) + 1;
  for (let vertex = 1; vertex < count; vertex++) ends[vertex] = (ends[vertex] ?? 0) + (ends[vertex - 1] ?? 0);
  const starts = ends.slice();
  const corners = new Uint32Array(vertices.length);
  for (let corner = vertices.length - 1; corner >= 0; corner--) {
    const vertex = vertices[corner] ?? 0;
    const start = (starts[vertex] ?? 0) - 1;
    starts[vertex] = start;
    corners[start] = corner;
  }
  const minCosine = Math.cos((SHARP_EDGE_DEG * Math.PI) / 180);
  const normals = new Float32Array(positions.length);
  for (let corner = 0; corner < vertices.length; corner++) {
    const vertex = vertices[corner] ?? 0;
    const own = 3 * Math.floor(corner / 3);
    const [x, y, z] = [faceNormals[own] ?? 0, faceNormals[own + 1] ?? 0, faceNormals[own + 2] ?? 0];
    const angle = angles[corner] ?? 0;
    let [sumX, sumY, sumZ] = [angle * x, angle * y, angle * z];
    const [start, end] = [starts[vertex] ?? 0, ends[vertex] ?? 0];
    for (let place = start; place < end && end - start <= MAX_COMPARED; place++) {
      const otherCorner = corners[place] ?? 0;
      const other = 3 * Math.floor(otherCorner / 3);
      const [u, v, w] = [faceNormals[other] ?? 0, faceNormals[other + 1] ?? 0, faceNormals[other + 2] ?? 0];
      if (other === own || u * x + v * y + w * z <= minCosine) continue;
      const weight = angles[otherCorner] ?? 0;
      sumX += weight * u;
      sumY += weight * v;
      sumZ += weight * w;
    }
    const length = Math.sqrt(sumX * sumX + sumY * sumY + sumZ * sumZ) || 1;
    normals[3 * corner] = sumX / length;
    normals[3 * corner + 1] = sumY / length;
    normals[3 * corner + 2] = sumZ / length;
  }
  return normals;
}

/** Return positions as numbers of steps. */
function snap(positions: Float32Array): Float32Array {
  const size = positions.reduce((largest, value) => Math.max(largest, Math.abs(value)), 0) || 1;
  return positions.map((value) => Math.round((value / size) * STEPS));
}

/** Return the unit normal of each triangle; zero for one without area. */
function findFaceNormals(positions: Float32Array): Float32Array {
  const normals = new Float32Array(positions.length / 3);
  for (let face = 0; face < normals.length / 3; face++) {
    const at = (offset: number): number => positions[9 * face + offset] ?? 0;
    const [ux, uy, uz] = [at(3) - at(0), at(4) - at(1), at(5) - at(2)];
    const [vx, vy, vz] = [at(6) - at(0), at(7) - at(1), at(8) - at(2)];
    const [x, y, z] = [uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx];
    const length = Math.sqrt(x * x + y * y + z * z) || 1;
    normals[3 * face] = x / length;
    normals[3 * face + 1] = y / length;
    normals[3 * face + 2] = z / length;
  }
  return normals;
}

/** Return the angle of each corner; zero for a triangle without area. */
function findAngles(positions: Float32Array): Float32Array {
  const angles = new Float32Array(positions.length / 3);
  for (let corner = 0; corner < angles.length; corner++) {
    const face = 3 * Math.floor(corner / 3);
    const at = (step: number, axis: number): number => positions[3 * (face + ((corner + step) % 3)) + axis] ?? 0;
    const [ux, uy, uz] = [at(1, 0) - at(0, 0), at(1, 1) - at(0, 1), at(1, 2) - at(0, 2)];
    const [vx, vy, vz] = [at(2, 0) - at(0, 0), at(2, 1) - at(0, 1), at(2, 2) - at(0, 2)];
    const lengths = Math.sqrt((ux * ux + uy * uy + uz * uz) * (vx * vx + vy * vy + vz * vz));
    const cosine = (ux * vx + uy * vy + uz * vz) / lengths;
    angles[corner] = lengths > 0 ? Math.acos(Math.min(1, Math.max(-1, cosine))) : 0;
  }
  return angles;
}
