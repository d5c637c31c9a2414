/** Results that the page shows from their own bytes, without a request: where that equals the preview of the service. */

import type { Output } from "./api";
import { isColored } from "./chain";
import type { ClosedSurface } from "./surface";
import type { PreviewFacts, Triple } from "./types";

const JSON_CHUNK_OFFSET = 20;
/** Extensions that change the geometry or need a decoder; with any of them, the service draws the result. */
const UNREADABLE = /draco|meshopt|instancing|basisu|quantization/i;
/** Formats of one shape that the page reads. */
const PLAIN_FORMATS = ["stl", "ply", "obj", "3mf"];
/** Maximum number of triangles that the page measures: at 2 µs for each, it does not respond for 0.2 s. */
const MAX_MEASURED_TRIANGLES = 100_000;
/** Relative difference of two lengths that rounding to 32 bits may cause. */
const SIZE_TOLERANCE = 1e-5;

/**
 * Return the facts of a GLB that has the shape of its source; null if the service must tell them.
 * @param before Facts of the model that was converted.
 * @param maxTriangles Triangles up to which the service does not reduce a preview.
 */
export function deriveFacts(before: PreviewFacts, output: Output, maxTriangles: number): PreviewFacts | null {
  const { report, model, beds } = output;
  const source = before.inspection.model;
  if (report?.target.format !== "glb" || model.companions.length > 0 || beds.length > 0) return null;
  // An operation changes the figures, and problems are marked by the service.
  if (hasOperations(output) || (source.findings ?? []).length > 0) return null;
  const { faces = 0, size_mm: size } = report.target;
  if (faces === 0 || faces !== source.faces || faces > maxTriangles || !size) return null;
  // The source may have been read again in another unit.
  if (!isSameSize(size, source.size_mm)) return null;
  return toFacts(output, { ...source, features: listKept(before, output), size_mm: size });
}

/** Return whether a result is one uncolored shape that the page can read and measure. */
export function isPlainShape(before: PreviewFacts, output: Output, maxTriangles: number): boolean {
  const { report, model, beds } = output;
  const { format = "", faces = 0, parts, frame } = report?.target ?? {};
  const isReadable = PLAIN_FORMATS.includes(format) && model.companions.length === 0 && beds.length === 0;
  const isOne = parts === 1 && faces > 0 && faces <= Math.min(maxTriangles, MAX_MEASURED_TRIANGLES);
  const isUpright = frame?.unit === "mm" && frame.up === "z";
  return isReadable && isOne && isUpright && !isColored(listKept(before, output));
}

/**
 * Return the facts of a result by its surface; null if the service must tell them: for several bodies, of which some may
 * be cavities or strays, or if the surface is not that of the report.
 */
export function describeSurface(before: PreviewFacts, output: Output, surface: ClosedSurface): PreviewFacts | null {
  const { faces, size_mm: size } = output.report?.target ?? {};
  if (!size || !isSameSize(size, surface.size) || faces !== surface.faces || surface.bodies !== 1) return null;
  return toFacts(output, {
    size_mm: surface.size,
    faces: surface.faces,
    vertices: surface.vertices,
    parts: 1,
    bodies: 1,
    cavities: 0,
    holes: 0,
    open_edges: 0,
    nonmanifold_edges: 0,
    inconsistent_edges: 0,
    degenerate_faces: 0,
    watertight: true,
    volume_mm3: surface.volume,
    area_mm2: surface.area,
    features: listKept(before, output),
  });
}

/** Return whether a GLB uses nothing that only the service reads. */
export function isPlainGlb(data: ArrayBuffer): boolean {
  const view = new DataView(data);
  if (data.byteLength < JSON_CHUNK_OFFSET || view.getUint32(0, false) !== 0x676c5446) return false;
  const json = new TextDecoder().decode(new Uint8Array(data, JSON_CHUNK_OFFSET, view.getUint32(12, true)));
  const { extensionsUsed = [] } = JSON.parse(json) as { extensionsUsed?: string[] };
  return !extensionsUsed.some((name) => UNREADABLE.test(name));
}

function isSameSize(size: Triple, other: Triple): boolean {
  return size.every((side, axis) => Math.abs(side - (other[axis] ?? 0)) <= SIZE_TOLERANCE * side);
}

function hasOperations({ report }: Output): boolean {
  return (report?.steps ?? []).some(({ kind }) => kind === "operation");
}

/** Return the features of a model that its conversion did not lose. */
function listKept(before: PreviewFacts, { report }: Output): string[] {
  const lost = new Set((report?.losses ?? []).map(({ feature }) => feature));
  return before.inspection.model.features.filter((feature) => !lost.has(feature));
}

function toFacts({ report }: Output, model: PreviewFacts["inspection"]["model"]): PreviewFacts | null {
  if (!report) return null;
  const inspection = { source: report.target, model, notes: [] };
  return { triangles: model.faces, is_reduced: false, scale: null, inspection };
}
