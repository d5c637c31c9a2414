/** Beds on which a conversion arranged the objects. */

import type { Model, PathFile } from "./intake";
import type { Report } from "./types";

export interface Bed {
  /** From 1. */
  number: number;
  /** Width and depth in millimeters. */
  size: readonly [number, number];
  /** From the middle of the objects of the output to the middle of the bed. */
  middle: readonly [number, number];
  objects: number;
  /** File of this bed alone; null if one file holds all beds. */
  model: Model | null;
}

/** Return the beds that a report describes. With a file for each bed, `main` is the first one, beside `others`. */
export function findBeds(report: Report | null, main: PathFile, others: PathFile[]): Bed[] {
  const steps = report?.steps ?? [];
  const { bed_mm: size, bed_middles_mm: middles, bed_objects: objects } = findFigures(steps, "bed_mm");
  if (!isNumbers(size) || !isNumbers(middles) || !isNumbers(objects)) return [];
  const { files } = findFigures(steps, "files");
  const [width = 0, depth = 0] = size;
  const names = objects.map((_, index) => main.path.replace(/-bed1(\.[^.]*)?$/, `-bed${index + 1}$1`));
  const companions = others.filter(({ path }) => !names.includes(path));
  return objects.map((count, index) => {
    const path = names[index] ?? "";
    const file = index === 0 ? main.file : others.find((other) => other.path === path)?.file;
    const isAlone = typeof files === "number" && file !== undefined;
    return {
      number: index + 1,
      size: [width, depth],
      // A file of its own has the objects in the middle.
      middle: isAlone ? [0, 0] : [middles[2 * index] ?? 0, middles[2 * index + 1] ?? 0],
      objects: count,
      model: isAlone ? { name: file.name, file, companions } : null,
    };
  });
}

/** Return the beds that the picture of an output shows. */
export function listShown(beds: Bed[], model: Model): Bed[] {
  return beds.filter((bed) => bed.model === null || bed.model.file === model.file);
}

function findFigures(steps: NonNullable<Report["steps"]>, name: string): Record<string, unknown> {
  return steps.find(({ figures }) => figures?.[name] !== undefined)?.figures ?? {};
}

function isNumbers(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((each) => typeof each === "number");
}
