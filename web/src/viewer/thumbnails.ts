/** Small pictures of models, for lists. */

import { AmbientLight, Box3, DirectionalLight, OrthographicCamera, Scene, Vector3, WebGLRenderer } from "three";

import type { Picture } from "./picture";

/** From the model to the camera: the isometric view, and the opposite one. */
const DIRECTIONS = {
  iso: new Vector3(1, -1.25, 0.85).normalize(),
  below: new Vector3(-1, 1.25, -0.85).normalize(),
};
export type ThumbnailView = keyof typeof DIRECTIONS;
/** Share of the picture that the model fills. */
const FILL_RATIO = 0.9;

export class ThumbnailDrawer {
  private readonly canvas = document.createElement("canvas");
  private readonly renderer = new WebGLRenderer({ canvas: this.canvas, antialias: true, alpha: true });
  private readonly camera = new OrthographicCamera();
  private readonly scene = new Scene();

  /** Throws an Error without WebGL 2. */
  constructor(
    private readonly width = 144,
    private readonly height = 108,
  ) {
    this.renderer.setSize(width, height, false);
    const lamp = new DirectionalLight(0xffffff, 2.2);
    // Beside the camera, so that no side is dark.
    lamp.position.set(0.5, 0.8, 1);
    this.camera.up.set(0, 0, 1);
    this.camera.add(lamp);
    this.scene.add(new AmbientLight(0xffffff, 1.1), this.camera);
  }

  /** Draw a picture, which stays part of the scene that it is in. The canvas is valid until the next one. */
  draw(picture: Picture, view: ThumbnailView = "iso"): HTMLCanvasElement {
    const style = getComputedStyle(document.documentElement);
    const color = (name: string): string => style.getPropertyValue(name).trim();
    const look = { clay: color("--clay"), cut: color("--cut"), edge: color("--edge") };
    picture.apply({ wireframe: false, textures: true, defects: true, changes: false, ...look }, []);
    const { parent } = picture.root;
    this.scene.add(picture.root);
    this.fit(new Box3().setFromObject(picture.root), DIRECTIONS[view]);
    this.renderer.render(this.scene, this.camera);
    if (parent) parent.add(picture.root);
    else picture.root.removeFromParent();
    return this.canvas;
  }

  private fit(box: Box3, direction: Vector3): void {
    const center = box.getCenter(new Vector3());
    const radius = box.getSize(new Vector3()).length() / 2 || 1;
    this.camera.position.copy(center).addScaledVector(direction, 2 * radius);
    this.camera.lookAt(center);
    this.camera.updateMatrixWorld(true);
    // The corners of the box as the camera sees them bound the outline.
    const corners = [box.min.x, box.max.x].flatMap((x) =>
      [box.min.y, box.max.y].flatMap((y) => [box.min.z, box.max.z].map((z) => new Vector3(x, y, z))),
    );
    const seen = new Box3().setFromPoints(corners.map((corner) => this.camera.worldToLocal(corner)));
    const halfHeight = Math.max(seen.max.y, -seen.min.y, (seen.max.x * this.height) / this.width, 1e-6) / FILL_RATIO;
    const halfWidth = (halfHeight * this.width) / this.height;
    Object.assign(this.camera, { left: -halfWidth, right: halfWidth, top: halfHeight, bottom: -halfHeight });
    Object.assign(this.camera, { near: 0.01 * radius, far: 4 * radius });
    this.camera.updateProjectionMatrix();
  }

  dispose(): void {
    this.renderer.dispose();
    this.renderer.forceContextLoss();
  }
}
