/** Draft of a conversion: the model with fewer triangles or colors, before it is converted. */

import { findOperations, isColored } from "./chain";
import { checkValue, listFields, toFields, type Settings } from "./settings";
import type { Inspection, Operation, Supported } from "./types";

export interface Draft {
  /** Form fields of its preview. */
  fields: [name: string, value: string][];
  /** Form fields with which the preview also measures the file. */
  fileFields: [name: string, value: string][];
  /** Labels of the operations that reduce the model. */
  operations: string[];
  /** Requested triangles; null if only the service can count them. */
  faces: number | null;
  /** Whether no other operation changes the file. */
  isComplete: boolean;
}

/** File whose size is known. */
export interface KnownFile {
  faces: number;
  bytes: number;
}

const TARGET_FACES = "optimize_target_faces";
/** Size of the details of colors, in the millimeters of the result. */
const CELL = "reduce_colors_cell_mm";
/** Formats whose files take the service too long to write for a draft. */
const SLOW_FORMATS = ["step"];
/** Bytes per triangle of a reduced model without colors: the median of 31. */
const BYTES_PER_FACE: Partial<Record<string, number>> = { stl: 50, obj: 43, "3mf": 24, ply: 19, gltf: 16, glb: 12 };

/**
 * Return the draft of a conversion; null if it neither reduces triangles nor colors, or the service would reject it.
 * @param scale Millimeters of the result per millimeter of the model.
 */
export function planDraft(
  settings: Settings,
  supported: Supported,
  { model, source }: Inspection,
  scale: number,
): Draft | null {
  const { options, target } = settings;
  const requested = Number(options[TARGET_FACES]);
  const faces = requested > 0 && requested < model.faces ? requested : null;
  const reduces = ({ stage, options: { properties } }: Operation): boolean =>
    stage === "color"
      ? isColored(model.features)
      : stage === "reduce" &&
        (faces !== null || Object.keys(properties).some((name) => name !== TARGET_FACES && options[name]));
  const requestedOperations = findOperations(settings, supported).filter(
    ({ allowed, available }) => allowed && available,
  );
  const reductions = requestedOperations.filter(reduces);
  const repairs = requestedOperations.filter(({ stage }) => stage === "repair");
  const fields = listFields(supported);
  const isValid = Object.entries(options).every(
    ([name, value]) => !fields[name] || checkValue(fields[name], value) === null,
  );
  if (reductions.length === 0 || !isValid) return null;
  const format = supported.formats[target];
  const groups = [...repairs, ...reductions, { options: supported.options }, supported.formats[source.format]];
  const names = new Set(groups.flatMap((group) => Object.keys(group?.options.properties ?? {})));
  const written = (name: string): boolean => !names.has(name) && name in (format?.options.properties ?? {});
  const sent = toFields(settings);
  const colors = reductions.find(({ options: { properties } }) => CELL in properties);
  const cell = Number(options[CELL] ?? colors?.options.properties[CELL]?.default);
  const isMeasured = format?.allowed === true && format.write && !SLOW_FORMATS.includes(target);
  return {
    fields: [
      ...sent.filter(([name]) => names.has(name) && name !== CELL),
      ...(colors ? [[CELL, toBounded(cell / scale, colors.options.properties[CELL])] as [string, string]] : []),
    ],
    fileFields: isMeasured ? [...sent.filter(([name]) => written(name)), ["target", target]] : [],
    operations: reductions.map(({ label }) => label),
    faces,
    isComplete: requestedOperations.length === reductions.length + repairs.length,
  };
}

function toBounded(
  value: number,
  { minimum = 0, maximum = Infinity }: { minimum?: number; maximum?: number } = {},
): string {
  return String(Number(Math.min(maximum, Math.max(minimum, value)).toPrecision(4)));
}

/**
 * Return the bytes of a file with this number of triangles; null if too little is known.
 * @param known Another file of the model in this format.
 * @param hasColors Whether the model has colors or textures, which may take more room than the triangles.
 */
export function estimateBytes(
  format: string,
  faces: number,
  known: KnownFile | null,
  hasColors: boolean,
): number | null {
  const typical = BYTES_PER_FACE[format];
  if (!known) return typical === undefined || hasColors ? null : typical * faces;
  const mean = known.bytes / known.faces;
  // The bytes of textures stay.
  const perFace = hasColors && typical !== undefined ? Math.min(typical, mean) : mean;
  return Math.round(known.bytes + (faces - known.faces) * perFace);
}
