/** How a conversion moved the whole model: the view shows both models at one place. */

import { Matrix4, Vector3, type Box3 } from "three";

import type { Report } from "../types";

/** Return the motion that the operations report, from the model to its conversion; null without any. */
export function findMotion(report: Report | null): Matrix4 | null {
  const matrices = (report?.steps ?? []).flatMap(({ figures }) => toMatrix(figures?.["transform"]) ?? []);
  if (matrices.length === 0) return null;
  return matrices.reduce((motion, next) => motion.premultiply(next), new Matrix4());
}

/** Return a matrix of 16 numbers, row by row; null for anything else, and for one that cannot be inverted. */
function toMatrix(figure: unknown): Matrix4 | null {
  if (!Array.isArray(figure) || figure.length !== 16 || !figure.every((value) => Number.isFinite(value))) return null;
  const matrix = new Matrix4().fromArray(figure as number[]).transpose();
  return Math.abs(matrix.determinant()) > 0 ? matrix : null;
}

/** Difference of two sides, per diagonal, below which two models have one size. */
const SAME_RATIO = 5e-3;

/**
 * Return the shift of a model that is not where the operations left it, for example in the middle of the plate of a
 * slicer; null if it is.
 */
export function findShift(before: Box3, after: Box3): Matrix4 | null {
  if (before.isEmpty() || after.isEmpty()) return null;
  const tolerance = before.min.distanceTo(before.max) * SAME_RATIO;
  const [old, now] = [before.getSize(new Vector3()), after.getSize(new Vector3())];
  const isSame = old.distanceTo(now) <= tolerance;
  const distance = before.getCenter(new Vector3()).distanceTo(after.getCenter(new Vector3()));
  if (isSame ? distance <= tolerance : before.intersectsBox(after)) return null;
  const shift = after.getCenter(new Vector3()).sub(before.getCenter(new Vector3()));
  return new Matrix4().makeTranslation(shift);
}
