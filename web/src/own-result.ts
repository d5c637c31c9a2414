/** Results that the page shows from their own bytes, without a request: where that equals the preview of the service. */

import type { Output } from "./api";
import type { PreviewFacts } from "./types";

const JSON_CHUNK_OFFSET = 20;
/** Extensions that change the geometry or need a decoder; with any of them, the service draws the result. */
const UNREADABLE = /draco|meshopt|instancing|basisu|quantization/i;

/**
 * Return the facts of a result that has the shape of its source; null if the service must tell them.
 * @param before Facts of the model that was converted.
 * @param maxTriangles Triangles up to which the service does not reduce a preview.
 */
export function deriveFacts(before: PreviewFacts, output: Output, maxTriangles: number): PreviewFacts | null {
  const { report, model, beds } = output;
  const source = before.inspection.model;
  if (report?.target.format !== "glb" || model.companions.length > 0 || beds.length > 0) return null;
  // An operation changes the figures, and problems are marked by the service.
  if ((report.steps ?? []).some(({ kind }) => kind === "operation") || (source.findings ?? []).length > 0) return null;
  const { faces = 0, size_mm: size } = report.target;
  if (faces === 0 || faces !== source.faces || faces > maxTriangles || !size) return null;
  const lost = new Set((report.losses ?? []).map(({ feature }) => feature));
  const features = source.features.filter((feature) => !lost.has(feature));
  const inspection = { source: report.target, model: { ...source, features, size_mm: size }, notes: [] };
  return { triangles: faces, is_reduced: false, scale: null, inspection };
}

/** Return whether a GLB uses nothing that only the service reads. */
export function isPlainGlb(data: ArrayBuffer): boolean {
  const view = new DataView(data);
  if (data.byteLength < JSON_CHUNK_OFFSET || view.getUint32(0, false) !== 0x676c5446) return false;
  const json = new TextDecoder().decode(new Uint8Array(data, JSON_CHUNK_OFFSET, view.getUint32(12, true)));
  const { extensionsUsed = [] } = JSON.parse(json) as { extensionsUsed?: string[] };
  return !extensionsUsed.some((name) => UNREADABLE.test(name));
}
