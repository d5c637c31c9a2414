/** 3MF files of one uncolored mesh, without the rest of the format. */

import { readZip } from "./zip";

const MODEL_PATH = "3D/3dmodel.model";
/** Files of an archive without settings, textures or further models. */
const PLAIN_PATHS = ["[Content_Types].xml", "_rels/.rels", MODEL_PATH];
/** Elements and attributes that color or move a mesh. */
const BEYOND = /<basematerials|<m:|<components|transform=/;
const VERTEX = /<vertex x="([^"]+)" y="([^"]+)" z="([^"]+)"\s*\/>/g;
const TRIANGLE = /<triangle v1="(\d+)" v2="(\d+)" v3="(\d+)"\s*\/>/g;

export interface PlainMesh {
  /** In millimeters, three numbers for each vertex. */
  positions: Float32Array;
  /** Three vertex indices for each triangle. */
  corners: Uint32Array;
}

/** Read a 3MF file that meshhub wrote; null if it is not plain. Throws an Error if the archive is damaged. */
export async function readPlain3mf(data: ArrayBuffer): Promise<PlainMesh | null> {
  const entries = await readZip(new Uint8Array(data));
  const model = entries.find(({ path }) => path === MODEL_PATH);
  if (!model || entries.some(({ path }) => !PLAIN_PATHS.includes(path))) return null;
  const text = new TextDecoder().decode(model.data);
  if (BEYOND.test(text) || !/<model[^>]* unit="millimeter"/.test(text)) return null;
  return {
    positions: Float32Array.from(listNumbers(text, VERTEX)),
    corners: Uint32Array.from(listNumbers(text, TRIANGLE)),
  };
}

function listNumbers(text: string, element: RegExp): number[] {
  const numbers: number[] = [];
  for (const [, first, second, third] of text.matchAll(element)) {
    numbers.push(Number(first), Number(second), Number(third));
  }
  return numbers;
}
