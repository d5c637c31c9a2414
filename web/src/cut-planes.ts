/** Planes of the option `cut_plane`: an axis with a position in millimeters, or in percent of the size. */

export interface CutPlane {
  axis: "x" | "y" | "z";
  value: number;
  isPercent: boolean;
}

/** Extent of the model along an axis in the view, and from there to the millimeters of the result. */
export interface Span {
  min: number;
  max: number;
  offset: number;
}

const PLANE = /^([xyz])=(-?\d{1,6}(?:\.\d{1,6})?)(%?)$/;
/** Decimal places of a position that is dragged. */
const DIGITS = 1;

/** Return the planes of a value; none if the service would not accept it. */
export function readPlanes(text: string): CutPlane[] {
  const matches = text
    .replaceAll(" ", "")
    .split(",")
    .map((part) => PLANE.exec(part));
  return matches.includes(null)
    ? []
    : matches.map((match) => ({
        axis: (match?.[1] ?? "z") as CutPlane["axis"],
        value: Number(match?.[2]),
        isPercent: match?.[3] === "%",
      }));
}

export function writePlanes(planes: readonly CutPlane[]): string {
  return planes.map(({ axis, value, isPercent }) => `${axis}=${value}${isPercent ? "%" : ""}`).join(",");
}

/** Return the position of a plane in the view. */
export function toPosition({ value, isPercent }: CutPlane, { min, max, offset }: Span): number {
  return isPercent ? min + ((max - min) * value) / 100 : value - offset;
}

/** Return a plane at another position of the view, inside of the model. */
export function moveTo(plane: CutPlane, position: number, { min, max, offset }: Span): CutPlane {
  const at = Math.min(max, Math.max(min, position));
  const value = plane.isPercent ? (100 * (at - min)) / (max - min) : at + offset;
  // The service rejects a plane at 0 % and at 100 %.
  const inside = plane.isPercent ? Math.min(99.9, Math.max(0.1, value)) : value;
  return { ...plane, value: Number(inside.toFixed(DIGITS)) + 0 };
}
