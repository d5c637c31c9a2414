/** Geometry of the view cube: its faces as the camera sees them, and the directions that they stand for. */

import type { Triple } from "../types";

/** Unit vectors of a camera: to the right, up, and from the model to the camera. */
export interface Orientation {
  right: Triple;
  up: Triple;
  back: Triple;
}

export type SideName = "front" | "back" | "left" | "right" | "top" | "bottom";

/** A side of the cube, with its directions to the right and up, seen from outside. */
export interface Side {
  name: SideName;
  normal: Triple;
  right: Triple;
  up: Triple;
}

export const SIDES: readonly Side[] = [
  { name: "front", normal: [0, -1, 0], right: [1, 0, 0], up: [0, 0, 1] },
  { name: "back", normal: [0, 1, 0], right: [-1, 0, 0], up: [0, 0, 1] },
  { name: "left", normal: [-1, 0, 0], right: [0, -1, 0], up: [0, 0, 1] },
  { name: "right", normal: [1, 0, 0], right: [0, 1, 0], up: [0, 0, 1] },
  { name: "top", normal: [0, 0, 1], right: [1, 0, 0], up: [0, 1, 0] },
  { name: "bottom", normal: [0, 0, -1], right: [1, 0, 0], up: [0, -1, 0] },
];

/** Cosine between a side and the view from which the side is drawn. */
const MIN_COSINE = 0.02;
/** Directions around Z, to the right of each other. */
const RING: readonly (readonly [number, number])[] = [
  [0, -1],
  [1, -1],
  [1, 0],
  [1, 1],
  [0, 1],
  [-1, 1],
  [-1, 0],
  [-1, -1],
];
/** All directions of the cube: of its sides, edges and corners. */
export const DIRECTIONS: readonly Triple[] = [
  [0, 0, 1],
  ...[1, 0, -1].flatMap((z) => RING.map(([x, y]): Triple => [x, y, z])),
  [0, 0, -1],
];

const dot = (a: Triple, b: Triple): number => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];

/** Return the place of a point in a picture from the middle of the cube: to the right, and down. */
export function project(point: Triple, { right, up }: Orientation): [x: number, y: number] {
  return [dot(point, right), -dot(point, up)];
}

export function isSeen({ normal }: Pick<Side, "normal">, { back }: Orientation): boolean {
  return dot(normal, back) > MIN_COSINE;
}

/**
 * Return the matrix of SVG that places the drawing of a side: from its middle, to the right and down.
 * @param half Half of the length of an edge.
 */
export function placeSide(side: Side, orientation: Orientation, half: number): number[] {
  const [a, b] = project(side.right, orientation);
  const [c, d] = project(side.up, orientation);
  const [e, f] = project(side.normal, orientation);
  return [a, b, -c, -d, half * e, half * f];
}

/** Return the directions of the nine cells of a side, row by row from the top left. */
export function listCells({ normal, right, up }: Side): Triple[] {
  return [1, 0, -1].flatMap((row) =>
    [-1, 0, 1].map(
      (column) => normal.map((value, axis) => value + column * (right[axis] ?? 0) + row * (up[axis] ?? 0)) as Triple,
    ),
  );
}

/** Return the direction of the cube that is nearest to that of the camera. */
export function nearestDirection({ back }: Orientation): Triple {
  const cosine = (direction: Triple): number => dot(direction, back) / Math.hypot(...direction);
  return DIRECTIONS.reduce((best, next) => (cosine(next) > cosine(best) + 1e-6 ? next : best));
}

/** Return the names of the sides that a direction looks at. */
export function nameDirection(direction: Triple): SideName[] {
  return SIDES.filter(({ normal }) => dot(normal, direction) > 0).map(({ name }) => name);
}

/** Return the direction beside another one; null for a key that does not turn. */
export function turnDirection([x, y, z]: Triple, key: string): Triple | null {
  const place = RING.findIndex(([ringX, ringY]) => ringX === x && ringY === y);
  const at = (index: number, height: number): Triple =>
    [...(RING[(index + RING.length) % RING.length] ?? [0, -1]), height] as Triple;
  if (key === "ArrowRight" || key === "ArrowLeft") {
    return place < 0 ? null : at(place + (key === "ArrowRight" ? 1 : -1), z);
  }
  if (key !== "ArrowUp" && key !== "ArrowDown") return null;
  const step = key === "ArrowUp" ? 1 : -1;
  if (place < 0) return z === step ? null : at(0, z);
  return z === step ? [0, 0, step] : at(place, z + step);
}
