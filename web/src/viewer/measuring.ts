/** The measuring tool: points that are picked, and the measurements that they complete. */

import { Raycaster, type Camera, type Vector3 } from "three";

import { measure, POINT_COUNTS, type Point, type Tool } from "./measure";
import { cast, type Hit } from "./picking";
import type { Picture } from "./picture";

/** Distance per radius of the model beyond which a ray leaves the surface from which it starts. */
const GAP_RATIO = 1e-5;

export interface Measurement {
  tool: Tool;
  points: Point[];
  value: number;
}

export class Measuring {
  measurements: Measurement[] = [];
  picked: Point[] = [];
  /** Called after each measurement; with null if there is nothing to measure. */
  onMeasure: (tool: Tool, value: number | null) => void = () => undefined;

  clear(): void {
    this.measurements = [];
    this.picked = [];
  }

  /** Take a point of the surface, and measure when it was the last one of the tool. */
  pick(tool: Tool, point: Point, picture: Picture): void {
    this.picked.push(point);
    if (this.picked.length < POINT_COUNTS[tool]) return;
    this.add(tool, this.picked, picture);
    this.picked = [];
  }

  /** Measure from a hit through the wall to the opposite side. */
  measureWall({ point, face, object }: Hit, picture: Picture, camera: Camera, radius: number): void {
    if (!face) return;
    const inward: Vector3 = face.normal.clone().transformDirection(object.matrixWorld);
    // A face that is seen from behind is flipped; the wall lies behind what the user sees.
    if (inward.dot(point.clone().sub(camera.position)) < 0) inward.negate();
    const start = point.clone().addScaledVector(inward, radius * GAP_RATIO);
    const hit = cast(new Raycaster(start, inward), picture)[0];
    if (hit) this.add("thickness", [point.toArray(), hit.point.toArray()], picture);
    else this.onMeasure("thickness", null);
  }

  private add(tool: Tool, points: Point[], picture: Picture): void {
    const value = measure(tool, points) * (tool === "angle" ? 1 : picture.scale);
    this.measurements.push({ tool, points, value });
    this.onMeasure(tool, value);
  }
}
