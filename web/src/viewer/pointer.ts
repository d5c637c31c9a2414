/** Where a pointer is in the models of the view. */

import { Raycaster, Vector2, Vector3, type Plane } from "three";

import type { ViewCamera } from "./camera";
import type { Point } from "./measure";
import type { Pane } from "./panes";
import { castThrough, type Hit } from "./picking";
import type { Picture } from "./picture";

/** Pixels within which a click takes the corner of a triangle. */
const SNAP_PIXELS = 9;

export interface Found {
  hit: Hit;
  picture: Picture;
  pane: Pane<Picture>;
}

/** What the view shows at the moment. */
export interface Scenery {
  readonly canvas: HTMLCanvasElement;
  readonly camera: ViewCamera;
  readonly planes: Plane[];
  panes: () => Pane<Picture>[];
  frameCamera: (width: number) => void;
}

export class Pointer {
  constructor(private readonly view: Scenery) {}

  /** Return what is below a place of the window; null beside the models. */
  pick(clientX: number, clientY: number): Found | null {
    const pane = this.paneAt(clientX);
    if (!pane) return null;
    const hit = castThrough(this.rayAt(pane, clientX, clientY), pane.content, this.view.planes);
    return hit ? { hit, picture: pane.content, pane } : null;
  }

  private paneAt(clientX: number): Pane<Picture> | undefined {
    const x = clientX - this.view.canvas.getBoundingClientRect().left;
    return this.view.panes().find(({ clip }) => x >= clip[0] && x <= clip[0] + clip[1]);
  }

  rayAt({ view }: Pane<Picture>, clientX: number, clientY: number): Raycaster {
    const bounds = this.view.canvas.getBoundingClientRect();
    const x = ((clientX - bounds.left - view[0]) / view[1]) * 2 - 1;
    const y = 1 - ((clientY - bounds.top) / bounds.height) * 2;
    this.view.frameCamera(view[1]);
    const ray = new Raycaster();
    ray.setFromCamera(new Vector2(x, y), this.view.camera.current);
    return ray;
  }

  /** Take the nearest corner of the triangle if it is within a few pixels of the pointer. */
  snap({ hit: { face, object, point }, pane: { view } }: Found, clientX: number, clientY: number): Point {
    const positions = object.geometry.getAttribute("position");
    const bounds = this.view.canvas.getBoundingClientRect();
    for (const index of face ? [face.a, face.b, face.c] : []) {
      const corner = new Vector3().fromBufferAttribute(positions, index).applyMatrix4(object.matrixWorld);
      const screen = corner.clone().project(this.view.camera.current);
      const x = bounds.left + view[0] + ((screen.x + 1) / 2) * view[1];
      const y = bounds.top + ((1 - screen.y) / 2) * bounds.height;
      if (Math.hypot(x - clientX, y - clientY) < SNAP_PIXELS) return corner.toArray();
    }
    return point.toArray();
  }
}
