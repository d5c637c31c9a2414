/** Beds of printers, on which a model may fit. */

import type { Triple } from "./types";

/** Beds of common printers in millimeters: width, depth, height. */
export const PRINTER_BEDS: Record<string, Triple> = {
  "Prusa MK4 · 250 × 210 × 220": [250, 210, 220],
  "Prusa MINI · 180 × 180 × 180": [180, 180, 180],
  "Bambu Lab P1, X1 · 256 × 256 × 256": [256, 256, 256],
  "Bambu Lab A1 mini · 180 × 180 × 180": [180, 180, 180],
  "Creality Ender-3 · 220 × 220 × 250": [220, 220, 250],
  "Creality K1 Max · 300 × 300 × 300": [300, 300, 300],
  "Voron 2.4 · 350 × 350 × 330": [350, 350, 330],
};

/** Return whether a model fits on a bed, as it stands or turned by 90° about Z. */
export function fitsBed(size: readonly number[], bed: Triple): boolean {
  const [x = 0, y = 0, z = 0] = size;
  const [width, depth, height] = bed;
  return z <= height && ((x <= width && y <= depth) || (y <= width && x <= depth));
}
