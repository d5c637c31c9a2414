/** Mark of the selected part: a color over its surface. */

import {
  Box3,
  BufferGeometry,
  DoubleSide,
  Float32BufferAttribute,
  Group,
  LineBasicMaterial,
  LineSegments,
  Mesh,
  MeshBasicMaterial,
  type Object3D,
} from "three";

import { listBoxLines } from "./marks";
import { isShown } from "./picking";
import { isInside } from "./picture";

/** Distance of the box from the part, per diagonal of the part. */
const MARGIN_RATIO = 0.02;

export class Selection {
  readonly root = new Group();
  private readonly material = new MeshBasicMaterial({
    side: DoubleSide,
    transparent: true,
    opacity: 0.45,
    depthWrite: false,
    polygonOffset: true,
    polygonOffsetFactor: -1,
    polygonOffsetUnits: -1,
  });

  private readonly box = new LineSegments(new BufferGeometry(), new LineBasicMaterial());

  /** Mark the shown meshes of a part as they stand in the view; null marks none. */
  show(part: Object3D | null, meshes: readonly Mesh[], color: string, lines: string): void {
    this.clear();
    if (!part) return;
    this.material.color.set(color);
    for (const mesh of meshes) {
      if (!isInside(mesh, part) || !isShown(mesh)) continue;
      const mark = new Mesh(mesh.geometry, this.material);
      mark.matrixAutoUpdate = false;
      mark.matrix.copy(mesh.matrixWorld);
      this.root.add(mark);
    }
    if (this.root.children.length > 0) this.addBox(part, lines);
  }

  /** Draw a box around the part, which is seen on a part of any color. */
  private addBox(part: Object3D, color: string): void {
    const around = new Box3().setFromObject(part, true);
    const { min, max } = around.expandByScalar(MARGIN_RATIO * around.min.distanceTo(around.max));
    const positions = new Float32BufferAttribute(listBoxLines(min.toArray(), max.toArray()), 3);
    this.box.geometry.dispose();
    this.box.geometry = new BufferGeometry().setAttribute("position", positions);
    this.box.material.color.set(color);
    this.root.add(this.box);
  }

  private clear(): void {
    this.root.clear();
    this.box.geometry.dispose();
  }

  dispose(): void {
    this.clear();
    this.box.material.dispose();
    this.root.removeFromParent();
    this.material.dispose();
  }
}
