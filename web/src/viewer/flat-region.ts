/** Flat side of a mesh: all triangles in the plane of one of them. */

/** Cosine of the angle between two triangles of one plane, 1°. */
const MIN_COSINE = Math.cos(Math.PI / 180);
/** Distance from the plane, per diagonal of the mesh, within which a corner lies in it. */
const DISTANCE_RATIO = 1e-4;

export interface FlatRegion {
  /** Nine numbers for each triangle. */
  corners: Float32Array;
  /** Numbers of the triangles. */
  triangles: Set<number>;
}

/**
 * Find the triangles that lie in the plane of one of them and look to the same side.
 * @param positions Three numbers for each corner.
 * @param index Three corners for each triangle; null: the corners as they follow.
 * @param diagonal Diagonal of the mesh.
 */
export function findFlatRegion(
  positions: ArrayLike<number>,
  index: ArrayLike<number> | null,
  triangle: number,
  diagonal: number,
): FlatRegion {
  const count = (index?.length ?? positions.length / 3) / 3;
  const corners = new Float32Array(9);
  const read = (number: number): void => {
    for (let corner = 0; corner < 3; corner++) {
      const vertex = index ? (index[3 * number + corner] ?? 0) : 3 * number + corner;
      for (let axis = 0; axis < 3; axis++) corners[3 * corner + axis] = positions[3 * vertex + axis] ?? 0;
    }
  };
  read(triangle);
  const [x, y, z] = normalOf(corners);
  const at = (corner: number): number =>
    x * (corners[3 * corner] ?? 0) + y * (corners[3 * corner + 1] ?? 0) + z * (corners[3 * corner + 2] ?? 0);
  const level = at(0);
  const tolerance = DISTANCE_RATIO * diagonal;
  const isInPlane = (): boolean => {
    for (let corner = 0; corner < 3; corner++) if (Math.abs(at(corner) - level) > tolerance) return false;
    const [nx, ny, nz] = normalOf(corners);
    return nx * x + ny * y + nz * z > MIN_COSINE;
  };
  const found: number[] = [];
  const triangles = new Set<number>();
  for (let number = 0; number < count; number++) {
    read(number);
    if (!isInPlane()) continue;
    found.push(...corners);
    triangles.add(number);
  }
  return { corners: new Float32Array(found), triangles };
}

/** Return the unit normal of a triangle; zeros if it has no area. */
export function normalOf(corners: ArrayLike<number>): [number, number, number] {
  const [ax = 0, ay = 0, az = 0, bx = 0, by = 0, bz = 0, cx = 0, cy = 0, cz = 0] = Array.from(corners);
  const [ux, uy, uz, vx, vy, vz] = [bx - ax, by - ay, bz - az, cx - ax, cy - ay, cz - az];
  const normal: [number, number, number] = [uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx];
  const length = Math.hypot(...normal);
  return length > 0 ? [normal[0] / length, normal[1] / length, normal[2] / length] : [0, 0, 0];
}
