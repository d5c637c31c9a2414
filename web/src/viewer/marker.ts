/** Mark of one place: a dot and a ring that face the viewer, and pulse when they appear. */

import {
  CircleGeometry,
  Group,
  Mesh,
  MeshBasicMaterial,
  RingGeometry,
  Vector3,
  type BufferGeometry,
  type OrthographicCamera,
  type PerspectiveCamera,
} from "three";

import type { Triple } from "../types";

const DOT_PIXELS = 6;
const RING_PIXELS = 17;
const PULSE_MS = 900;
/** Pulses after which the mark rests: a view that moves forever takes a processor. */
const PULSE_COUNT = 4;
/** Opacity of a mark that the model hides. */
const HIDDEN_OPACITY = 0.3;

type Shape = Mesh<BufferGeometry, MeshBasicMaterial>;

export class Marker {
  readonly root = new Group();
  private readonly position = new Vector3();
  private readonly pulses: Shape[] = [];
  private readonly colored: MeshBasicMaterial[] = [];
  private start = -Infinity;

  constructor() {
    const ring = new RingGeometry(0.8, 1, 48);
    const dot = new CircleGeometry(1, 32);
    this.root.visible = false;
    // What the model hides is drawn first and faint, for all of the mark; then what can be seen is drawn over it.
    for (const isHidden of [true, false]) {
      const opacity = isHidden ? HIDDEN_OPACITY : 1;
      this.add(new Mesh(dot, toMaterial(isHidden, opacity, "#fff")), DOT_PIXELS + 2);
      const parts = [this.add(new Mesh(dot, toMaterial(isHidden, opacity)), DOT_PIXELS)];
      parts.push(this.add(new Mesh(ring, toMaterial(isHidden, opacity)), RING_PIXELS));
      const pulse = this.add(new Mesh(ring, toMaterial(isHidden, opacity)), RING_PIXELS);
      this.pulses.push(pulse);
      this.colored.push(...[...parts, pulse].map(({ material }) => material));
    }
  }

  private add(mesh: Shape, pixels: number): Shape {
    mesh.scale.setScalar(pixels);
    mesh.renderOrder = 4 + this.root.children.length;
    this.root.add(mesh);
    return mesh;
  }

  show(position: Triple, color: string): void {
    this.position.set(...position);
    for (const material of this.colored) material.color.set(color);
    this.root.visible = true;
    this.start = matchMedia("(prefers-reduced-motion: reduce)").matches ? -Infinity : performance.now();
  }

  hide(): void {
    this.root.visible = false;
  }

  isPulsing(): boolean {
    return this.root.visible && performance.now() - this.start < PULSE_MS * PULSE_COUNT;
  }

  /** Turn the mark to the camera, in its size in pixels. */
  face(camera: PerspectiveCamera | OrthographicCamera, height: number): void {
    const towards = camera.getWorldDirection(new Vector3()).negate();
    const distance = camera.position.clone().sub(this.position).dot(towards);
    const span =
      "fov" in camera
        ? 2 * distance * Math.tan((camera.fov * Math.PI) / 360)
        : (camera.top - camera.bottom) / camera.zoom;
    const pixel = Math.max(span / height, 1e-9);
    this.root.scale.setScalar(pixel);
    this.root.quaternion.copy(camera.quaternion);
    // In front of the surface on which the place is, so that an oblique one does not cut the mark.
    this.root.position.copy(this.position).addScaledVector(towards, Math.min(RING_PIXELS * pixel, distance / 2));
    const phase = this.isPulsing() ? ((performance.now() - this.start) % PULSE_MS) / PULSE_MS : 1;
    this.pulses.forEach((pulse, index) => {
      pulse.scale.setScalar(RING_PIXELS * (1 + 1.6 * phase));
      pulse.material.opacity = (index === 0 ? HIDDEN_OPACITY : 1) * (1 - phase);
    });
  }

  dispose(): void {
    for (const child of this.root.children as Shape[]) {
      child.geometry.dispose();
      child.material.dispose();
    }
    this.root.removeFromParent();
  }
}

function toMaterial(isHidden: boolean, opacity: number, color = "#000"): MeshBasicMaterial {
  return new MeshBasicMaterial({ color, opacity, depthTest: !isHidden, depthWrite: false, transparent: true });
}
