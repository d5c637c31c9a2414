/** Positions of a camera on the sphere about its target, with Z up. */

import { Spherical, Vector3 } from "three";

/** Radians between a camera and the axis above its target, where its turn about Z is not defined. */
const POLE_GAP_RAD = 1e-3;

/** Return the offset from the target after a turn about Z and a tilt toward it. */
export function turnOffset(offset: Vector3, turnRad: number, tiltRad: number): Vector3 {
  const place = toSpherical(offset);
  place.theta += turnRad;
  place.phi = Math.min(Math.PI - POLE_GAP_RAD, Math.max(POLE_GAP_RAD, place.phi + tiltRad));
  return fromSpherical(place);
}

/** Return an offset between two others along the shorter way about Z, so that a camera does not cross the model. */
export function mixOffsets(from: Vector3, to: Vector3, share: number): Vector3 {
  const [a, b] = [toSpherical(from), toSpherical(to)];
  let turn = b.theta - a.theta;
  if (turn > Math.PI) turn -= 2 * Math.PI;
  if (turn < -Math.PI) turn += 2 * Math.PI;
  return fromSpherical(
    new Spherical(a.radius + (b.radius - a.radius) * share, a.phi + (b.phi - a.phi) * share, a.theta + turn * share),
  );
}

/** three.js measures spherical coordinates about Y. */
function toSpherical({ x, y, z }: Vector3): Spherical {
  return new Spherical().setFromVector3(new Vector3(y, z, x));
}

function fromSpherical(place: Spherical): Vector3 {
  const { x, y, z } = new Vector3().setFromSpherical(place);
  return new Vector3(z, x, y);
}
