/** Where a camera must stand, so that the outline of a model fills the view. */

export type Vector = readonly [number, number, number];

export interface Frame {
  /** Unit vectors of the camera: to the right, up, and from the model to the camera. */
  right: Vector;
  up: Vector;
  back: Vector;
  /** Tangents of half of the field of view, across and up. */
  tangents: readonly [across: number, up: number];
  isOrthographic: boolean;
}

export interface Fit {
  target: Vector;
  distance: number;
}

const dot = (a: Vector, b: Vector): number => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];

/**
 * Return the point to look at and the distance from which all points are just in the view.
 * @param points Three numbers for each point; at least one point.
 * @param center Point at whose depth the target lies.
 */
export function fitOutline(points: ArrayLike<number>, center: Vector, frame: Frame): Fit {
  const { right, up, back, tangents, isOrthographic } = frame;
  const across = [-Infinity, -Infinity] as [number, number];
  const upward = [-Infinity, -Infinity] as [number, number];
  for (let offset = 0; offset < points.length; offset += 3) {
    const point: Vector = [
      (points[offset] ?? 0) - center[0],
      (points[offset + 1] ?? 0) - center[1],
      (points[offset + 2] ?? 0) - center[2],
    ];
    // A point nearer to the camera needs more distance; parallel projection does not depend on depth.
    const depth = isOrthographic ? 0 : dot(point, back);
    for (const [reach, axis, tangent] of [
      [across, right, tangents[0]],
      [upward, up, tangents[1]],
    ] as const) {
      const side = dot(point, axis) / tangent;
      reach[0] = Math.max(reach[0], depth + side);
      reach[1] = Math.max(reach[1], depth - side);
    }
  }
  // Both sides of the view touch the outline if the target is in the middle between what they need.
  const shift = [tangents[0] * (across[0] - across[1]), tangents[1] * (upward[0] - upward[1])].map((each) => each / 2);
  const distance = Math.max(across[0] + across[1], upward[0] + upward[1]) / 2;
  const target = center.map((value, axis) => {
    return value + (shift[0] ?? 0) * (right[axis] ?? 0) + (shift[1] ?? 0) * (up[axis] ?? 0);
  });
  return { target: target as unknown as Vector, distance };
}
