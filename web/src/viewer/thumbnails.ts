/** Small pictures of models, for lists. */

import { AmbientLight, Box3, DirectionalLight, OrthographicCamera, Scene, Vector3, WebGLRenderer } from "three";

import type { Picture } from "./picture";

const WIDTH_PIXELS = 144;
const HEIGHT_PIXELS = 108;
/** From the model to the camera, as in the isometric view. */
const DIRECTION = new Vector3(1, -1.25, 0.85).normalize();
/** Share of the picture that the model fills. */
const FILL_RATIO = 0.9;

export class ThumbnailDrawer {
  private readonly canvas = document.createElement("canvas");
  private readonly renderer = new WebGLRenderer({ canvas: this.canvas, antialias: true, alpha: true });
  private readonly camera = new OrthographicCamera();
  private readonly scene = new Scene();

  /** Throws an Error without WebGL 2. */
  constructor() {
    this.renderer.setSize(WIDTH_PIXELS, HEIGHT_PIXELS, false);
    const lamp = new DirectionalLight(0xffffff, 2.2);
    lamp.position.set(0.4, -1, 1.4);
    this.camera.up.set(0, 0, 1);
    this.scene.add(new AmbientLight(0xffffff, 1.1), lamp);
  }

  /** Return the picture as a data address. The picture must not be part of another scene. */
  draw(picture: Picture): string {
    const style = getComputedStyle(document.documentElement);
    const color = (name: string): string => style.getPropertyValue(name).trim();
    const look = { clay: color("--clay"), cut: color("--cut"), edge: color("--edge") };
    picture.apply({ wireframe: false, textures: true, defects: false, changes: false, ...look }, []);
    this.scene.add(picture.root);
    this.fit(new Box3().setFromObject(picture.root));
    this.renderer.render(this.scene, this.camera);
    picture.root.removeFromParent();
    return this.canvas.toDataURL("image/webp", 0.8);
  }

  private fit(box: Box3): void {
    const center = box.getCenter(new Vector3());
    const radius = box.getSize(new Vector3()).length() / 2 || 1;
    this.camera.position.copy(center).addScaledVector(DIRECTION, 2 * radius);
    this.camera.lookAt(center);
    this.camera.updateMatrixWorld(true);
    // The corners of the box as the camera sees them bound the outline.
    const corners = [box.min.x, box.max.x].flatMap((x) =>
      [box.min.y, box.max.y].flatMap((y) => [box.min.z, box.max.z].map((z) => new Vector3(x, y, z))),
    );
    const seen = new Box3().setFromPoints(corners.map((corner) => this.camera.worldToLocal(corner)));
    const halfHeight =
      Math.max(seen.max.y, -seen.min.y, (seen.max.x * HEIGHT_PIXELS) / WIDTH_PIXELS, 1e-6) / FILL_RATIO;
    const halfWidth = (halfHeight * WIDTH_PIXELS) / HEIGHT_PIXELS;
    Object.assign(this.camera, { left: -halfWidth, right: halfWidth, top: halfHeight, bottom: -halfHeight });
    Object.assign(this.camera, { near: 0.01 * radius, far: 4 * radius });
    this.camera.updateProjectionMatrix();
  }

  dispose(): void {
    this.renderer.dispose();
    this.renderer.forceContextLoss();
  }
}
