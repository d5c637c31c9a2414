/** Geometries that are smooth, except at sharp edges. */

import { BufferAttribute, type BufferGeometry } from "three";

import { findNormals } from "./creases";

/** Return a geometry with normals, and free the one without. */
export function toSmooth(faceted: BufferGeometry): BufferGeometry {
  const geometry = faceted.index ? faceted.toNonIndexed() : faceted;
  const normals = findNormals(geometry.getAttribute("position").array as Float32Array);
  geometry.setAttribute("normal", new BufferAttribute(normals, 3));
  if (geometry !== faceted) faceted.dispose();
  return geometry;
}
