/** Meshes with fewer triangles, for a draft of a reduction that the service makes exactly. */

import { MeshoptSimplifier } from "three/examples/jsm/libs/meshopt_simplifier.module.js";

import { weld } from "../surface";
import { findNormals } from "./creases";

/** Numbers of the vertices, such as texture coordinates. */
export interface Column {
  array: ArrayLike<number>;
  itemSize: number;
  /** Whether whole numbers stand for 0 to 1. */
  normalized: boolean;
}

export interface SourceMesh {
  /** Three numbers for each vertex. */
  positions: Float32Array;
  /** Three vertices for each triangle; null if the vertices are in the order of the triangles. */
  index: ArrayLike<number> | null;
  /** Other attributes of the vertices, by name. */
  columns: Record<string, Column>;
}

/** Mesh whose vertices are in the order of its triangles. */
export interface SimpleMesh {
  positions: Float32Array<ArrayBuffer>;
  normals: Float32Array<ArrayBuffer>;
  columns: Record<string, { array: Float32Array<ArrayBuffer>; itemSize: number }>;
}

/** Mesh without equal vertices. */
export interface WeldedMesh {
  positions: Float32Array;
  corners: Uint32Array;
  columns: Record<string, { array: Float32Array; itemSize: number }>;
}

/** Fewest triangles of a mesh: those of a tetrahedron. */
const MIN_TRIANGLES = 4;
/** Ratio of the kept to the requested triangles above which seams of textures and colors may move. */
const MAX_EXCESS_RATIO = 1.1;
/** Largest value of a normalized number, by its bytes. */
const FULL: Record<number, number> = { 1: 0xff, 2: 0xffff };

/** Return a mesh with one vertex for each position with the same texture coordinates and colors. */
export function weldMesh({ positions, index, columns }: SourceMesh): WeldedMesh {
  const total = positions.length / 3;
  const floats = Object.entries(columns).map(([name, column]) => ({
    name,
    itemSize: column.itemSize,
    array: toFloats(column),
  }));
  const width = floats.reduce((sum, { itemSize }) => sum + itemSize, 3);
  const rows = new Float32Array(total * width);
  fill(rows, width, 0, positions, 3);
  let offset = 3;
  for (const { array, itemSize } of floats) {
    fill(rows, width, offset, array, itemSize);
    offset += itemSize;
  }
  const { numbers, count } = weld(rows, width);
  const sources = new Uint32Array(count);
  numbers.forEach((number, vertex) => (sources[number] = vertex));
  return {
    positions: gather(positions, 3, sources),
    corners: index ? Uint32Array.from(index, (vertex) => numbers[vertex] ?? 0) : numbers,
    columns: Object.fromEntries(
      floats.map(({ name, array, itemSize }) => [name, { array: gather(array, itemSize, sources), itemSize }]),
    ),
  };
}

/** Return a mesh with a share of its triangles. */
export async function simplify({ positions, corners, columns }: WeldedMesh, share: number): Promise<SimpleMesh> {
  await MeshoptSimplifier.ready;
  const triangles = Math.max(MIN_TRIANGLES, Math.round((corners.length / 3) * share));
  const target = Math.min(corners.length, 3 * triangles);
  let [kept] = MeshoptSimplifier.simplify(corners, positions, 3, target, 1);
  if (kept.length > MAX_EXCESS_RATIO * target) {
    [kept] = MeshoptSimplifier.simplify(corners, positions, 3, target, 1, ["Permissive"]);
  }
  const placed = gather(positions, 3, kept);
  return {
    positions: placed,
    normals: findNormals(placed),
    columns: Object.fromEntries(
      Object.entries(columns).map(([name, { array, itemSize }]) => [
        name,
        { array: gather(array, itemSize, kept), itemSize },
      ]),
    ),
  };
}

function toFloats({ array, normalized }: Column): Float32Array {
  const full = normalized ? (FULL[(array as Uint8Array).BYTES_PER_ELEMENT] ?? 1) : 1;
  return Float32Array.from(array, (value) => value / full);
}

function fill(rows: Float32Array, width: number, offset: number, array: ArrayLike<number>, itemSize: number): void {
  for (let vertex = 0; vertex < rows.length / width; vertex++) {
    for (let item = 0; item < itemSize; item++) {
      rows[vertex * width + offset + item] = array[vertex * itemSize + item] ?? 0;
    }
  }
}

function gather(array: Float32Array, itemSize: number, vertices: Uint32Array): Float32Array<ArrayBuffer> {
  const result = new Float32Array(vertices.length * itemSize);
  vertices.forEach((vertex, place) => {
    for (let item = 0; item < itemSize; item++) result[place * itemSize + item] = array[vertex * itemSize + item] ?? 0;
  });
  return result;
}
