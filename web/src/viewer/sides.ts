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
import type { Picture } from "./picture";

/** Distance per diagonal of the model that a point may lie beyond a side on which the model still lies flat. */
const BEYOND_RATIO = 1e-3;

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

/**
 * Return whether the model can lie on a side: none of it lies beyond the plane of the side.
 * @param outward Direction to which the side looks, in the view.
 */
export function carriesModel(picture: Picture, point: Vector3, outward: Vector3): boolean {
  const limit = outward.dot(point) + BEYOND_RATIO * picture.box.getSize(new Vector3()).length();
  return picture.meshes.every(({ geometry, matrixWorld }) => {
    const positions = geometry.getAttribute("position").array;
    const { x, y, z } = outward.clone().applyMatrix3(new Matrix3().setFromMatrix4(matrixWorld).transpose());
    const rest = limit - outward.dot(new Vector3().setFromMatrixPosition(matrixWorld));
    for (let start = 0; start < positions.length; start += 3) {
      const height = x * (positions[start] ?? 0) + y * (positions[start + 1] ?? 0) + z * (positions[start + 2] ?? 0);
      if (height > rest) return false;
    }
    return true;
  });
}

/** Return the direction to which the side that was hit looks, toward the camera. */
export function outwardOf({ face, object, point }: Hit, camera: Camera): Vector3 {
  const normal = new Vector3().copy(face?.normal ?? object.up);
  normal.applyNormalMatrix(new Matrix3().getNormalMatrix(object.matrixWorld)).normalize();
  return normal.dot(camera.position.clone().sub(point)) < 0 ? normal.negate() : normal;
}
