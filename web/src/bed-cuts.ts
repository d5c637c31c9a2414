/** Cuts of the option `split_for_bed`: where the service plans them, and which pieces are larger than the bed. */

import constants from "./constants.json";
import { moveTo, toPosition, type CutPlane, type Span } from "./cut-planes";
import { readSides } from "./pose";
import type { Value } from "./settings";
import type { Printer, Triple } from "./types";

/** Room for pieces, in millimeters. */
export interface Bed {
  sides: Triple;
  /** Length by which a connector extends a piece below a cut. */
  protrusion: number;
}

/** Extents of a model along X, Y and Z. */
export type Spans = [x: Span, y: Span, z: Span];

/** Most cuts that a request may have. */
export const MAX_CUTS = constants.maxBedCuts;
/** Excess over the bed, relative to it, that the service ignores. */
const ROUNDING_RATIO = constants.roundingRatio;
/** Decimal places of a planned position: rounding stays below that excess. */
const DIGITS = 4;

export const AXES: readonly CutPlane["axis"][] = ["x", "y", "z"];

/** Return the bed of the options; null if the service would not accept it. */
export function readBed(options: Record<string, Value | undefined>, printers: readonly Printer[] = []): Bed | null {
  const sides = readSides(options["split_for_bed"], printers);
  if (!sides?.every((side) => side >= constants.minBedSideMm)) return null;
  const protrudes = constants.protrudingConnectors.includes(String(options["split_for_bed_connectors"]));
  return { sides, protrusion: protrudes ? constants.maxConnectorMm : 0 };
}

export function fitsIn({ sides }: Bed, spans: Spans): boolean {
  return spans.every(({ min, max }, axis) => max - min <= (sides[axis] ?? 0) * (1 + ROUNDING_RATIO));
}

/** Return the planes at which the service cuts a model by default; none if they are too many to request. */
export function planCuts({ sides, protrusion }: Bed, spans: Spans): CutPlane[] {
  const planes = spans.flatMap(({ min, max, offset }, index) => {
    const [size, side, axis] = [max - min, sides[index] ?? 0, AXES[index] ?? "z"];
    if (size <= side * (1 + ROUNDING_RATIO)) return [];
    const count = Math.max(2, Math.ceil(size / (side - protrusion) - ROUNDING_RATIO));
    return Array.from({ length: count - 1 }, (_, place): CutPlane => {
      const value = min + (size * (place + 1)) / count + offset;
      return { axis, value: Number(value.toFixed(DIGITS)) + 0, isPercent: false };
    });
  });
  return planes.length > MAX_CUTS ? [] : planes;
}

/** Part of a model between two neighboring planes, or between a plane and an end of the model. */
interface Slab {
  low: number;
  high: number;
  isCutAbove: boolean;
}

function listSlabs(planes: readonly CutPlane[], axis: number, span: Span): Slab[] {
  const cuts = planes
    .filter((plane) => plane.axis === AXES[axis])
    .map((plane) => toPosition(plane, span))
    .filter((position) => position > span.min && position < span.max);
  const ends = [span.min, ...cuts.sort((a, b) => a - b), span.max];
  return ends.slice(1).map((high, place) => ({ low: ends[place] ?? high, high, isCutAbove: place < cuts.length }));
}

function listTooLarge(planes: readonly CutPlane[], { sides, protrusion }: Bed, axis: number, span: Span): Slab[] {
  return listSlabs(planes, axis, span).filter(({ low, high, isCutAbove }) => {
    const room = (sides[axis] ?? 0) - (isCutAbove ? protrusion : 0);
    return high - low > room * (1 + ROUNDING_RATIO);
  });
}

/** Return whether the service cuts pieces further, because they are larger than the bed. */
export function needsFurtherCuts(planes: readonly CutPlane[], bed: Bed, spans: Spans): boolean {
  return spans.some((span, axis) => listTooLarge(planes, bed, axis, span).length > 0);
}

/** Return whether a piece beside one of the planes is larger than the bed. */
export function isBesideTooLarge(plane: CutPlane, planes: readonly CutPlane[], bed: Bed, spans: Spans): boolean {
  const axis = AXES.indexOf(plane.axis);
  const span = spans[axis];
  if (!span) return false;
  const position = toPosition(plane, span);
  return listTooLarge(planes, bed, axis, span).some(({ low, high }) => low === position || high === position);
}

/** Return the planes with another one, in the middle of the longest piece along an axis. */
export function addCut(planes: readonly CutPlane[], axis: CutPlane["axis"], span: Span): CutPlane[] {
  const slabs = listSlabs(planes, AXES.indexOf(axis), span);
  const [longest] = slabs.sort((a, b) => b.high - b.low - (a.high - a.low));
  const middle = longest ? (longest.low + longest.high) / 2 : span.min;
  return [...planes, moveTo({ axis, value: 0, isPercent: false }, middle, span)];
}
