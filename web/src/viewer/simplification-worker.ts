/** Worker that simplifies the meshes of one model again and again, so that the page stays responsive. */

import { simplify, weldMesh, type SourceMesh, type WeldedMesh } from "./simplification";

let meshes: WeldedMesh[] = [];

addEventListener("message", ({ data }: MessageEvent<{ meshes: SourceMesh[] } | { share: number }>) => {
  if ("meshes" in data) meshes = data.meshes.map(weldMesh);
  else void answer(data.share);
});

async function answer(share: number): Promise<void> {
  const simple = await Promise.all(meshes.map((mesh) => simplify(mesh, share)));
  const columns = simple.flatMap((mesh) => Object.values(mesh.columns));
  const transfer = [
    ...simple.flatMap(({ positions, normals }) => [positions, normals]),
    ...columns.map(({ array }) => array),
  ];
  postMessage(simple, { transfer: transfer.map(({ buffer }) => buffer) });
}
