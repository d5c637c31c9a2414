/** How the settings of the next conversion turn and scale the model, as far as the page can show it. */

import { findPrinter } from "./printers";
import { isSet, type Value } from "./settings";
import type { Printer, Triple } from "./types";

export interface Pose {
  mirror: "x" | "y" | "z" | null;
  /** Angles about X, then Y, then Z. */
  rotation_deg: Triple;
  /** Box into which the model is fitted. */
  fit_mm: Triple | null;
  scale: number;
  height_mm: number | null;
}

const ROTATION = ["rotate_x_deg", "rotate_y_deg", "rotate_z_deg"] as const;
/** Operations that choose a rotation on the server. */
const AUTOMATIC_TURNS = ["lay_flat", "orient"];
/** Decimal places of an angle; less would move a corner of a large model by more than a hundredth of a millimeter. */
const ANGLE_DIGITS = 4;

type Options = Record<string, Value | undefined>;

/** Return whether the page can show how options turn the model: the server does not choose the rotation. */
export function isPoseKnown(options: Options): boolean {
  return !AUTOMATIC_TURNS.some((name) => isSet(options[name]));
}

/** Return the pose that options request; null if they keep the model as it is, or the server chooses. */
export function readPose(options: Options, printers: readonly Printer[] = []): Pose | null {
  if (!isPoseKnown(options)) return null;
  const mirror = options["mirror"];
  const pose: Pose = {
    mirror: mirror === "x" || mirror === "y" || mirror === "z" ? mirror : null,
    rotation_deg: readRotation(options),
    fit_mm: readSides(options["fit_mm"], printers),
    scale: (toPositive(options["scale_percent"]) ?? 100) / 100,
    height_mm: toPositive(options["target_height_mm"]),
  };
  const isMoved = pose.mirror ?? pose.fit_mm ?? pose.height_mm ?? (pose.scale !== 1 || pose.rotation_deg.some(Boolean));
  return isMoved ? pose : null;
}

/** Return the three lengths of a value such as 220x220x250, or those of a printer; null if it has another form. */
export function readSides(value: Value | undefined, printers: readonly Printer[]): Triple | null {
  const printer = findPrinter(String(value ?? ""), printers);
  if (printer) return printer.volume_mm;
  const sides = String(value ?? "")
    .split(/[x×]/i)
    .map(Number);
  return sides.length === 3 && sides.every((side) => side > 0 && Number.isFinite(side)) ? (sides as Triple) : null;
}

/** Return the angles of the options about X, Y and Z, in degrees. */
export function readRotation(options: Options): Triple {
  return ROTATION.map((name) => toNumber(options[name]) ?? 0) as Triple;
}

function toNumber(value: Value | undefined): number | null {
  const number = Number(value);
  return isSet(value) && Number.isFinite(number) ? number : null;
}

function toPositive(value: Value | undefined): number | null {
  const number = toNumber(value);
  return number !== null && number > 0 ? number : null;
}

/** Return the options of a rotation; they take the place of those that let the server choose one. */
export function toRotation(angles: Triple): Options {
  const rounded = angles.map((angle) => Number(angle.toFixed(ANGLE_DIGITS)));
  return {
    ...Object.fromEntries(AUTOMATIC_TURNS.map((name) => [name, undefined])),
    ...Object.fromEntries(ROTATION.map((name, axis) => [name, rounded[axis] ? String(rounded[axis]) : undefined])),
  };
}
