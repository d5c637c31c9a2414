/** Mark of the flat side under the pointer. */

import {
  BufferGeometry,
  DoubleSide,
  Float32BufferAttribute,
  Matrix3,
  Mesh,
  MeshBasicMaterial,
  Vector3,
  type Camera,
  type Scene,
} from "three";

import { findFlatRegion, type FlatRegion } from "./flat-region";
import type { Hit } from "./picking";

export class Sides {
  private readonly mark = new Mesh(
    new BufferGeometry(),
    new MeshBasicMaterial({
      side: DoubleSide,
      transparent: true,
      opacity: 0.7,
      depthWrite: false,
      polygonOffset: true,
      polygonOffsetFactor: -2,
      polygonOffsetUnits: -2,
    }),
  );
  private region: (FlatRegion & { mesh: Mesh }) | null = null;

  constructor(scene: Scene) {
    this.mark.matrixAutoUpdate = false;
    this.hide();
    scene.add(this.mark);
  }

  show({ object, faceIndex }: Hit, color: string): void {
    const triangle = faceIndex ?? 0;
    if (this.region?.mesh !== object || !this.region.triangles.has(triangle)) this.find(object, triangle);
    this.mark.matrix.copy(object.matrixWorld);
    this.mark.material.color.set(color);
    this.mark.visible = true;
  }

  private find(mesh: Mesh, triangle: number): void {
    const { geometry } = mesh;
    geometry.computeBoundingSphere();
    const diagonal = 2 * (geometry.boundingSphere?.radius ?? 0);
    const positions = geometry.getAttribute("position").array;
    this.region = { mesh, ...findFlatRegion(positions, geometry.index?.array ?? null, triangle, diagonal) };
    this.mark.geometry.dispose();
    this.mark.geometry = new BufferGeometry().setAttribute(
      "position",
      new Float32BufferAttribute(this.region.corners, 3),
    );
  }

  hide(): void {
    this.region = null;
    this.mark.visible = false;
  }

  dispose(): void {
    this.mark.geometry.dispose();
    this.mark.material.dispose();
    this.mark.removeFromParent();
  }
}

/** Return the direction to which the side that was hit looks, toward the camera. */
export function outwardOf({ face, object, point }: Hit, camera: Camera): Vector3 {
  const normal = new Vector3().copy(face?.normal ?? object.up);
  normal.applyNormalMatrix(new Matrix3().getNormalMatrix(object.matrixWorld)).normalize();
  return normal.dot(camera.position.clone().sub(point)) < 0 ? normal.negate() : normal;
}
