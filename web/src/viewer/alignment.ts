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

/** Return the shift of a model that left its place, for example to the middle of a plate; null if it did not. */
export function findShift(before: Box3, after: Box3): Matrix4 | null {
  if (before.isEmpty() || after.isEmpty() || before.intersectsBox(after)) return null;
  const shift = after.getCenter(new Vector3()).sub(before.getCenter(new Vector3()));
  return new Matrix4().makeTranslation(shift);
}
