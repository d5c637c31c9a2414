/** Surfaces that a conversion added or removed. */

import type { Differences, PlacedMesh } from "./differences";
import { CHANGE_COLORS } from "./look";
import type { Picture } from "./picture";

/** Triangles up to which changes are searched: each takes about 10 µs. */
const MAX_TRIANGLES = 300_000;

/** Color the surfaces of each picture that the other one lacks. */
export async function markChanges(before: Picture, after: Picture): Promise<void> {
  for (const picture of [before, after]) picture.setChanges(new Float32Array(), CHANGE_COLORS.removed);
  // Clustering moves the points of a reduced preview, so all of it would be new.
  if ([before, after].some(({ facts }) => facts.is_reduced || facts.triangles > MAX_TRIANGLES)) return;
  const { removed, added } = await compare(listMeshes(before), listMeshes(after));
  before.setChanges(removed, CHANGE_COLORS.removed);
  after.setChanges(added, CHANGE_COLORS.added);
}

function compare(before: PlacedMesh[], after: PlacedMesh[]): Promise<Differences> {
  const worker = new Worker(new URL("./differences-worker.ts", import.meta.url), { type: "module" });
  return new Promise<Differences>((resolve, reject) => {
    worker.onmessage = ({ data }: MessageEvent<Differences>) => resolve(data);
    worker.onerror = ({ message }) => reject(new Error(message));
    worker.postMessage({ before, after });
  }).finally(() => worker.terminate());
}

/** Return the meshes where both models are compared, in millimeters. */
function listMeshes(picture: Picture): PlacedMesh[] {
  const { geometries } = picture;
  return picture.meshes.map((mesh, index) => ({
    positions: geometries[index]?.getAttribute("position").array as Float32Array,
    index: geometries[index]?.index?.array ?? null,
    matrix: picture.comparedMatrix(mesh).elements,
  }));
}
