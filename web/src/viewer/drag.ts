/** Handles that are dragged along a line of the view. */

import { Vector3, type Ray } from "three";

/** Sine of the angle between line and ray below which a pointer says nothing about the place on the line. */
const MIN_SINE = 0.05;

/** Return the distance along a line to where a ray is nearest to it; null if both are nearly parallel. */
export function nearestOnLine(start: Vector3, direction: Vector3, { origin, direction: sight }: Ray): number | null {
  const along = direction.clone().normalize();
  const sine = along.clone().cross(sight).length();
  if (sine < MIN_SINE) return null;
  const across = along.clone().cross(sight);
  return origin.clone().sub(start).cross(sight).dot(across) / across.lengthSq();
}
