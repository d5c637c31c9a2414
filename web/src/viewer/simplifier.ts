/** Draft of a reduction: a picture with fewer triangles, which a worker computes. */

import { BufferAttribute, BufferGeometry } from "three";

import type { Picture } from "./picture";
import type { SimpleMesh, SourceMesh } from "./simplification";

export class Simplifier {
  private readonly worker = new Worker(new URL("./simplification-worker.ts", import.meta.url), { type: "module" });
  private isBusy = false;
  /** Last share that was requested while the worker was busy. */
  private next: number | null = null;

  /** @param onDraft Called when the picture shows other triangles. */
  constructor(
    readonly picture: Picture,
    private readonly onDraft: () => void,
  ) {
    this.worker.onmessage = ({ data }: MessageEvent<SimpleMesh[]>) => {
      this.isBusy = false;
      this.show(data);
      if (this.next !== null) this.simplify(this.next);
    };
    this.worker.postMessage({ meshes: picture.geometries.map(toSource) });
  }

  /** Show a share of the triangles; while the worker is busy, only the last share waits. */
  simplify(share: number): void {
    this.next = this.isBusy ? share : null;
    if (this.isBusy) return;
    this.isBusy = true;
    this.worker.postMessage({ share });
  }

  private show(meshes: SimpleMesh[]): void {
    this.picture.setDraft(meshes.map(toGeometry));
    this.onDraft();
  }

  /** Show the picture with all of its triangles again. */
  dispose(): void {
    this.worker.terminate();
    this.picture.setDraft(null);
  }
}

function toSource(geometry: BufferGeometry): SourceMesh {
  const others = Object.entries(geometry.attributes).filter(([name]) => name !== "position" && name !== "normal");
  return {
    positions: geometry.getAttribute("position").array as Float32Array,
    index: geometry.index?.array ?? null,
    columns: Object.fromEntries(
      others.map(([name, { array, itemSize, normalized }]) => [name, { array, itemSize, normalized }]),
    ),
  };
}

function toGeometry({ positions, normals, columns }: SimpleMesh): BufferGeometry {
  const geometry = new BufferGeometry();
  geometry.setAttribute("position", new BufferAttribute(positions, 3));
  geometry.setAttribute("normal", new BufferAttribute(normals, 3));
  for (const [name, { array, itemSize }] of Object.entries(columns)) {
    geometry.setAttribute(name, new BufferAttribute(array, itemSize));
  }
  return geometry;
}
