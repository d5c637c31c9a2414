/** Plane of a section through a model. */

import { Plane, Vector3, type Box3 } from "three";

import type { Section } from "./options";

/** Return the plane of a section through a box; the side to which it looks is shown. */
export function toPlane({ axis, position, isFlipped }: Section, { min, max }: Box3): Plane {
  const at = min[axis] + (max[axis] - min[axis]) * position;
  const normal = new Vector3();
  normal[axis] = isFlipped ? 1 : -1;
  return new Plane(normal, isFlipped ? -at : at);
}
