/** Printers that the service knows, and whether a model fits on their beds. */

import constants from "./constants.json";
import type { Printer, Triple } from "./types";

/** Return the printer with an id or another name, however people spell it: "Prusa  MK4", "prusa_mk4" and "mk4". */
export function findPrinter(text: string, printers: readonly Printer[]): Printer | undefined {
  const wanted = fold(text);
  return printers.find(({ id, name, aliases = [] }) => [id, fold(name), ...aliases].includes(wanted));
}

function fold(text: string): string {
  return text
    .trim()
    .toLowerCase()
    .replace(/[\s_-]+/g, "-");
}

/** Return whether a model fits on a bed, as it stands or turned by 90° about Z, as the service decides it. */
export function fitsBed(size: readonly number[], bed: Triple): boolean {
  const [x = 0, y = 0, z = 0] = size;
  const [width = 0, depth = 0, height = 0] = bed.map((side) => side * (1 + constants.roundingRatio));
  return z <= height && ((x <= width && y <= depth) || (y <= width && x <= depth));
}
