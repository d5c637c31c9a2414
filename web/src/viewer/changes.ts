/** Surfaces that a conversion added or removed. */

import { BufferAttribute, BufferGeometry, Vector3 } from "three";
import { MeshBVH } from "three-mesh-bvh";

import { CHANGE_COLORS } from "./look";
import type { Picture } from "./picture";

/** Triangles up to which changes are searched: each takes about 10 µs, on the thread of the page. */
const MAX_TRIANGLES = 100_000;
/** Share of the diagonal by which a surface may move without being new; rounding of 32-bit formats stays below it. */
const TOLERANCE_RATIO = 2e-4;
/** Share of new triangles above which the whole model moved or was scaled, so that color would say nothing. */
const MAX_CHANGED_RATIO = 0.5;

/** Color the surfaces of each picture that the other one lacks. */
export function markChanges(before: Picture, after: Picture): void {
  before.setChanges(new Float32Array(), CHANGE_COLORS.removed);
  // Clustering moves the points of a reduced preview, so all of it would be new.
  if ([before, after].some(({ facts }) => facts.is_reduced || facts.triangles > MAX_TRIANGLES)) return;
  const [old, now] = [collectTriangles(before), collectTriangles(after)];
  if (old.length === 0 || now.length === 0) return;
  const tolerance = before.box.min.distanceTo(before.box.max) * TOLERANCE_RATIO;
  const removed = listMissing(old, now, tolerance);
  const added = listMissing(now, old, tolerance);
  if (removed.length > old.length * MAX_CHANGED_RATIO || added.length > now.length * MAX_CHANGED_RATIO) return;
  before.setChanges(removed, CHANGE_COLORS.removed);
  after.setChanges(added, CHANGE_COLORS.added);
}

/** Return the corners of all triangles in millimeters. */
function collectTriangles({ root, meshes }: Picture): Float32Array {
  root.updateMatrixWorld(true);
  const corner = new Vector3();
  const values: number[] = [];
  for (const { geometry, matrixWorld } of meshes) {
    const positions = geometry.getAttribute("position");
    const count = geometry.index?.count ?? positions.count;
    for (let index = 0; index < count; index++) {
      corner.fromBufferAttribute(positions, geometry.index?.getX(index) ?? index).applyMatrix4(matrixWorld);
      values.push(corner.x, corner.y, corner.z);
    }
  }
  return new Float32Array(values);
}

/** Return the triangles with a corner or a center farther than the tolerance from another surface. */
function listMissing(triangles: Float32Array, surface: Float32Array, tolerance: number): Float32Array {
  const tree = new MeshBVH(new BufferGeometry().setAttribute("position", new BufferAttribute(surface, 3)));
  const target = { point: new Vector3(), distance: 0, faceIndex: 0 };
  const isFar = (point: Vector3): boolean => {
    const nearest = tree.closestPointToPoint(point, target, 0, tolerance);
    return nearest === null || nearest.distance > tolerance;
  };
  const corners = [new Vector3(), new Vector3(), new Vector3()] as const;
  const center = new Vector3();
  const missing: number[] = [];
  for (let start = 0; start < triangles.length; start += 9) {
    corners.forEach((corner, index) => corner.fromArray(triangles, start + 3 * index));
    center.copy(corners[0]).add(corners[1]).add(corners[2]).divideScalar(3);
    if ([...corners, center].some(isFar)) missing.push(...triangles.subarray(start, start + 9));
  }
  return new Float32Array(missing);
}
