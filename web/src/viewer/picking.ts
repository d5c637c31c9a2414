/** What a ray hits: the surface under the pointer, and the sides from which a place can be seen. */

import { Raycaster, Scene, Vector3, type Intersection, type Mesh, type Object3D, type Plane } from "three";
import { acceleratedRaycast, MeshBVH } from "three-mesh-bvh";

import type { Picture } from "./picture";

/** Tangent of the angle around a direction that must be free of other surfaces. */
const CLEAR_RATIO = 0.35;
/** Directions from which a place may be looked at; those from above and below are a little off the axis. */
const DIRECTIONS = [-1, 0, 1].flatMap((x) =>
  [-1, 0, 1].flatMap((y) =>
    [-1, -0.4, 0.4, 1].map((z) => new Vector3(x, x === 0 && y === 0 ? -0.1 : y, z).normalize()),
  ),
);

export type Hit = Intersection<Mesh>;

/** Return the hits of a ray with the parts of a picture that are shown, the nearest first. */
export function cast(ray: Raycaster, picture: Picture): Hit[] {
  picture.root.updateMatrixWorld(true);
  const hits: Hit[] = [];
  for (const mesh of picture.meshes) {
    if (!isShown(mesh)) continue;
    mesh.geometry.boundsTree ??= new MeshBVH(mesh.geometry);
    acceleratedRaycast.call(mesh, ray, hits);
  }
  return hits.sort((a, b) => a.distance - b.distance);
}

/** Return the first hit that a section leaves. */
export function castThrough(ray: Raycaster, picture: Picture, planes: Plane[]): Hit | undefined {
  return cast(ray, picture).find(({ point }) => planes.every((plane) => plane.distanceToPoint(point) >= 0));
}

/** Return whether the list of parts shows a mesh. The root of a picture is hidden while the other pane is drawn. */
export function isShown(mesh: Mesh): boolean {
  for (let object: Object3D | null = mesh; object && !(object.parent instanceof Scene); object = object.parent) {
    if (!object.visible) return false;
  }
  return true;
}

/**
 * Return the direction from which a point can be seen that is nearest to a preferred one; that one if there is none.
 * @param radius Radius of the model.
 */
export function chooseDirection(picture: Picture, point: Vector3, preferred: Vector3, radius: number): Vector3 {
  const gap = radius * 2e-3;
  const isOpen = (direction: Vector3): boolean =>
    cast(new Raycaster(point.clone().addScaledVector(direction, gap), direction), picture).length === 0;
  // Along a surface, a point is hardly seen: the directions around must be open, too.
  const isClear = (direction: Vector3): boolean => {
    const side = new Vector3(-direction.y, direction.x, 1e-3).normalize();
    const across = direction.clone().cross(side).normalize();
    const turns = [side, side.clone().negate(), across, across.clone().negate()];
    return [direction, ...turns.map((turn) => turn.multiplyScalar(CLEAR_RATIO).add(direction).normalize())].every(
      isOpen,
    );
  };
  const all = [preferred, ...DIRECTIONS].sort((a, b) => b.dot(preferred) - a.dot(preferred));
  return all.find(isClear) ?? all.find(isOpen) ?? preferred;
}
