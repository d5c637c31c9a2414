import { BufferAttribute, BufferGeometry, Group, Mesh, MeshStandardMaterial } from "three";
import { GLTFLoader } from "three/examples/jsm/loaders/GLTFLoader.js";
import { OBJLoader } from "three/examples/jsm/loaders/OBJLoader.js";
import { PLYLoader } from "three/examples/jsm/loaders/PLYLoader.js";
import { STLLoader } from "three/examples/jsm/loaders/STLLoader.js";

import { readPlain3mf } from "../plain-3mf";
import { measureClosed, type ClosedSurface } from "../surface";
import type { PreviewFacts } from "../types";
import { Picture, TO_MILLIMETERS } from "./picture";

/** Return the picture of a GLB that is not a preview. */
export async function parseGlb(data: ArrayBuffer, facts: PreviewFacts): Promise<Picture> {
  const { scene } = await new GLTFLoader().parseAsync(data, "");
  return new Picture(scene, facts);
}

/**
 * Return the picture of a file of one shape, in millimeters and Z up.
 * @param describe Returns the facts of the surface; null if it is not to be drawn.
 * @returns Null also for a surface that is colored or not closed.
 */
export async function parseShape(
  data: ArrayBuffer,
  format: string,
  describe: (surface: ClosedSurface) => PreviewFacts | null,
): Promise<Picture | null> {
  const geometry = await parseGeometry(data, format);
  if (!geometry || geometry.hasAttribute("color")) return null;
  const corners = geometry.getIndex()?.array ?? null;
  const surface = measureClosed(geometry.getAttribute("position").array as Float32Array, corners);
  const facts = surface && describe(surface);
  if (!facts) return null;
  // without normals, a picture is smoothed as a preview is
  geometry.deleteAttribute("normal");
  const content = new Group().add(new Mesh(geometry, new MeshStandardMaterial()));
  content.applyMatrix4(TO_MILLIMETERS.clone().invert());
  return new Picture(new Group().add(content), facts);
}

async function parseGeometry(data: ArrayBuffer, format: string): Promise<BufferGeometry | null> {
  if (format === "stl") return new STLLoader().parse(data);
  if (format === "ply") return new PLYLoader().parse(data);
  if (format === "obj") {
    const [mesh, ...others] = new OBJLoader().parse(new TextDecoder().decode(data)).children;
    return mesh instanceof Mesh && others.length === 0 ? (mesh.geometry as BufferGeometry) : null;
  }
  const mesh = await readPlain3mf(data);
  if (!mesh) return null;
  return new BufferGeometry()
    .setAttribute("position", new BufferAttribute(mesh.positions, 3))
    .setIndex(new BufferAttribute(mesh.corners, 1));
}
