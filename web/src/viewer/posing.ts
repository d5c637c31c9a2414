/** Motion of a pose: where the view shows a model that the next conversion turns and scales. */

import { Euler, Matrix4, Vector3, type Box3 } from "three";

import type { Pose } from "../pose";
import type { Triple } from "../types";
import type { Axis } from "./options";

const RAD = Math.PI / 180;
const AXES: Record<Axis, Vector3> = { x: new Vector3(1, 0, 0), y: new Vector3(0, 1, 0), z: new Vector3(0, 0, 1) };

export interface Posing {
  /** From the model that was read to the view. */
  placement: Matrix4;
  /** From the view to the millimeters of the result. */
  offset: Vector3;
  /** Millimeters in the view per millimeter of the model. */
  scale: number;
}

/**
 * Return the motion of a pose. The model keeps its place on the ground, as for the operations that turn it; those that
 * scale it move it from there.
 * @param measure Returns the box of the model after a motion.
 */
export function placePose(pose: Pose, measure: (motion: Matrix4) => Box3): Posing {
  const turn = toTurn(pose.rotation_deg);
  if (pose.mirror) turn.multiply(toMirror(pose.mirror));
  const foot = footOf(measure(new Matrix4()));
  const turned = measure(turn);
  const factor = scaleOf(pose, turned.getSize(new Vector3()));
  const placement = new Matrix4()
    .makeTranslation(foot)
    .multiply(new Matrix4().makeScale(factor, factor, factor))
    .multiply(new Matrix4().makeTranslation(footOf(turned).negate()))
    .multiply(turn);
  return { placement, offset: foot.multiplyScalar(factor - 1), scale: factor };
}

/** Return the factor by which a model of this size is scaled: into a box, in percent, to a height. */
function scaleOf({ fit_mm: fit, scale, height_mm: height }: Pose, size: Vector3): number {
  const ratios = fit ? fit.map((side, axis) => side / size.getComponent(axis)).filter(Number.isFinite) : [];
  const factor = height === null ? scale * Math.min(...(ratios.length > 0 ? ratios : [1])) : height / size.z;
  return Number.isFinite(factor) ? factor : 1;
}

/** Return the middle of the lower side of a box. */
function footOf({ min, max }: Box3): Vector3 {
  return new Vector3((min.x + max.x) / 2, (min.y + max.y) / 2, min.z);
}

function toTurn([x, y, z]: Triple): Matrix4 {
  // three.js names the axes from the last rotation to the first one.
  return new Matrix4().makeRotationFromEuler(new Euler(x * RAD, y * RAD, z * RAD, "ZYX"));
}

function toMirror(axis: Axis): Matrix4 {
  const { x, y, z } = AXES[axis];
  return new Matrix4().makeScale(1 - 2 * x, 1 - 2 * y, 1 - 2 * z);
}

/**
 * Return the angles about X and Y that lay a side on the bed, whatever the angle about Z is.
 * @param outward Direction to which the side looks, in the view.
 * @param angles Angles by which the view shows the model turned.
 */
export function layOnBed(outward: Vector3, angles: Triple): [x: number, y: number] {
  const { x, y, z } = outward.clone().transformDirection(toTurn(angles).invert());
  const slope = Math.hypot(y, z);
  const aboutX = slope > 1e-9 ? Math.atan2(-y, -z) : 0;
  return [toDegrees(aboutX), toDegrees(Math.atan2(x, slope))];
}

/** Return the angles after a further quarter turn about an axis of the bed. */
export function turnQuarter(axis: Axis, angles: Triple): Triple {
  const turn = new Matrix4().makeRotationAxis(AXES[axis], Math.PI / 2).multiply(toTurn(angles));
  const { x, y, z } = new Euler().setFromRotationMatrix(turn, "ZYX");
  return [toDegrees(x), toDegrees(y), toDegrees(z)];
}

/** Return an angle in degrees; half a turn is positive, and so is zero. */
function toDegrees(angle: number): number {
  const degrees = angle / RAD;
  return degrees < 1e-9 - 180 ? 180 : degrees + 0;
}
