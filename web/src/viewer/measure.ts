/** Geometry of measurements, in millimeters. */

export type Point = readonly [number, number, number];

const subtract = (a: Point, b: Point): Point => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
const dot = (a: Point, b: Point): number => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a: Point, b: Point): Point => [
  a[1] * b[2] - a[2] * b[1],
  a[2] * b[0] - a[0] * b[2],
  a[0] * b[1] - a[1] * b[0],
];
const length = (a: Point): number => Math.hypot(...a);

export function distanceBetween(a: Point, b: Point): number {
  return length(subtract(a, b));
}

/** Return the angle at `corner` in degrees; 0 if a side has no length. */
export function angleAt(a: Point, corner: Point, b: Point): number {
  const u = subtract(a, corner);
  const v = subtract(b, corner);
  return (Math.atan2(length(cross(u, v)), dot(u, v)) * 180) / Math.PI;
}

/** Return the radius of the circle through three points; Infinity if they lie on a line. */
export function circleRadius(a: Point, b: Point, c: Point): number {
  const sides = distanceBetween(a, b) * distanceBetween(b, c) * distanceBetween(c, a);
  const doubleArea = length(cross(subtract(b, a), subtract(c, a)));
  return doubleArea === 0 ? Infinity : sides / (2 * doubleArea);
}

export type Tool = "distance" | "angle" | "radius" | "thickness";

/** Points that each tool takes. */
export const POINT_COUNTS: Record<Tool, number> = { distance: 2, angle: 3, radius: 3, thickness: 1 };

/** Return the measured value of complete points: millimeters, or degrees for an angle. */
export function measure(tool: Tool, points: readonly Point[]): number {
  const [a, b, c] = points;
  if (a && b && c) return tool === "angle" ? angleAt(a, b, c) : circleRadius(a, b, c);
  return a && b ? distanceBetween(a, b) : 0;
}
